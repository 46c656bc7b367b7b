//! The algorithms: one declaration each, registered here once.

mod augmentation;
mod barker;
mod declaration;
mod hmc;
mod noisy_statistics;
mod ops;
mod penalty;
mod penalty_exp_family;
mod stochastic;
pub(in crate::job) mod unused;
mod weighted_chains;

use crate::job::algorithm::Algorithm;
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;
use declaration::Declaration;

pub use declaration::{ANY_MODEL, ReleasedQuantity};
pub(in crate::job) use declaration::{OwnSettings, UsualLength};
pub(in crate::job) use noisy_statistics::MOST_PARAMETERS;

/// The registry.
const ALL: [(Algorithm, &Declaration); 11] = [
    (Algorithm::Penalty, &penalty::PENALTY),
    (Algorithm::PenaltyExpFamily, &penalty_exp_family::PENALTY_EXP_FAMILY),
    (Algorithm::NoisyStatistics, &noisy_statistics::NOISY_STATISTICS),
    (Algorithm::Augmentation, &augmentation::AUGMENTATION),
    (Algorithm::Hmc, &hmc::HMC),
    (Algorithm::Barker, &barker::BARKER),
    (Algorithm::Sgld, &stochastic::SGLD),
    (Algorithm::Sghmc, &stochastic::SGHMC),
    (Algorithm::Sgnht, &stochastic::SGNHT),
    (Algorithm::Sgfs, &stochastic::SGFS),
    (Algorithm::Ops, &ops::OPS),
];

// Every algorithm is at its own index.
const _: () = {
    let mut at = 0;
    while at < ALL.len() {
        assert!(ALL[at].0 as usize == at);
        at += 1;
    }
};

impl Algorithm {
    /// Returns the algorithm with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|(_, declared)| declared.name == name).map(|(algorithm, _)| algorithm)
    }

    /// Returns the names of all algorithms.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.into_iter().map(|(_, declared)| declared.name)
    }

    pub(in crate::job) fn declaration(self) -> &'static Declaration {
        ALL[self as usize].1
    }

    /// Returns the name in job files and results.
    pub fn as_str(self) -> &'static str {
        self.declaration().name
    }

    /// Returns true if every draw requires a query.
    #[must_use]
    pub fn proposes(self) -> bool {
        self.declaration().proposes
    }

    /// Returns true if its chains use noisy log likelihood ratios only.
    #[must_use]
    pub fn walks_on_ratios(self) -> bool {
        self.declaration().walks_on_ratios
    }

    /// Returns true if released gradients drive its chains.
    #[must_use]
    pub fn follows_gradients(self) -> bool {
        self.declaration().follows_gradients
    }

    /// Returns true if its chains follow stochastic gradients without an acceptance test: their draws have a bias.
    #[must_use]
    pub fn is_unadjusted(self) -> bool {
        self.declaration().is_unadjusted
    }

    /// Returns true if the algorithm makes queries of this kind.
    #[must_use]
    pub fn asks(self, kind: QueryKind) -> bool {
        (self.declaration().asks)(kind)
    }

    /// Returns true if `[sampler]` may contain this key, which some algorithms do not take.
    #[must_use]
    pub fn takes(self, key: &str) -> bool {
        self.declaration().own_keys.contains(&key)
    }
}

/// Facts about a job from the declaration of its algorithm.
impl JobSpec {
    /// Returns the oldest protocol with the algorithm's queries.
    #[must_use]
    pub fn algorithm_protocol(&self) -> u32 {
        (self.algorithm.declaration().protocol)(self)
    }

    /// Returns the queries of a job that queries round after round, and their number, described for an owner.
    #[must_use]
    pub fn query_description(&self) -> String {
        (self.algorithm.declaration().query_description)(self)
    }

    /// Returns the quantity that each released number sums over the records.
    #[must_use]
    pub fn released_quantity(&self) -> ReleasedQuantity {
        (self.algorithm.declaration().released_quantity)(self)
    }

    /// Returns the paragraph of the report on the noise of a job's releases; `sd` is the formatted sd of the noise.
    #[must_use]
    pub fn noise_paragraph(&self, sd: &str) -> String {
        (self.algorithm.declaration().noise)(self, sd)
    }
}
