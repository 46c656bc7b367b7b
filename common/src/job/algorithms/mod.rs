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

use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;
use declaration::Declaration;

pub use declaration::{ANY_MODEL, Summand};
pub(in crate::job) use declaration::{OwnSettings, UsualLength};
pub(in crate::job) use hmc::noise as noise_of_tests;
pub(in crate::job) use noisy_statistics::{MOST_PARAMETERS, release};

/// The algorithm that a job runs, by its name in the papers: an index into the registry of declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Algorithm 2 (Algorithm 1 is its case of one owner).
    Penalty,
    /// Algorithm 3: noisy sufficient statistics of an exponential family, any number of owners.
    PenaltyExpFamily,
    /// A few noisy vectors, released once; the posterior given what was released.
    NoisyStatistics,
    /// One release of a statistic or of tables, then data augmentation: Ju, Awan, Gong & Rao, *Data Augmentation MCMC for Bayesian
    /// Inference from Privatized Data* (2022).
    Augmentation,
    /// Hamiltonian Monte Carlo whose kicks are noisy gradients and whose friction takes their noise up, with a penalty test on what
    /// the gradients leave of each step's log ratio.
    Hmc,
    /// The noise-corrected Barker test on noisy log likelihood ratios: Heikkilä, Jälkö, Dikmen & Honkela, *Differentially Private Markov
    /// Chain Monte Carlo* (2019).
    Barker,
    /// Stochastic gradient Langevin dynamics on released gradients: Wang, Fienberg & Smola, *Privacy for Free* (2015).
    Sgld,
    /// Stochastic gradient Hamiltonian Monte Carlo (the same).
    Sghmc,
    /// The stochastic gradient Nosé-Hoover thermostat (the same).
    Sgnht,
    /// Stochastic gradient Fisher scoring (the same).
    Sgfs,
    /// One posterior sample: the exponential mechanism over public candidates, at one owner (the same).
    Ops,
}

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

// Every algorithm stands at its own index.
const _: () = {
    let mut at = 0;
    while at < ALL.len() {
        assert!(ALL[at].0 as usize == at);
        at += 1;
    }
};

impl Algorithm {
    /// The algorithm of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|(_, declared)| declared.name == name).map(|(algorithm, _)| algorithm)
    }

    /// The names of all algorithms.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.into_iter().map(|(_, declared)| declared.name)
    }

    pub(in crate::job) fn declaration(self) -> &'static Declaration {
        ALL[self as usize].1
    }

    /// The name in job files and results.
    pub fn as_str(self) -> &'static str {
        self.declaration().name
    }

    /// Whether every draw takes a question that the parties answer to.
    #[must_use]
    pub fn proposes(self) -> bool {
        self.declaration().proposes
    }

    /// Whether its chains walk on noisy log likelihood ratios alone.
    #[must_use]
    pub fn walks_on_ratios(self) -> bool {
        self.declaration().walks_on_ratios
    }

    /// Whether its chains are driven by released gradients.
    #[must_use]
    pub fn follows_gradients(self) -> bool {
        self.declaration().follows_gradients
    }

    /// Whether its chains follow stochastic gradients without any test: their draws are of the posterior up to a bias.
    #[must_use]
    pub fn is_unadjusted(self) -> bool {
        self.declaration().is_unadjusted
    }

    /// Whether the algorithm asks parties for queries of this kind.
    #[must_use]
    pub fn asks(self, kind: QueryKind) -> bool {
        (self.declaration().asks)(kind)
    }

    /// Whether `[sampler]` may hold this key, which not every algorithm takes.
    #[must_use]
    pub fn takes(self, key: &str) -> bool {
        self.declaration().own_keys.contains(&key)
    }
}

/// What the declaration of a job's algorithm states of the job.
impl JobSpec {
    /// The oldest protocol that speaks of what the algorithm asks.
    #[must_use]
    pub fn algorithm_protocol(&self) -> u32 {
        (self.algorithm.declaration().protocol)(self)
    }

    /// The data that a job asks for round after round, and how often, as words for an owner.
    #[must_use]
    pub fn asked_for(&self) -> String {
        (self.algorithm.declaration().asked_for)(self)
    }

    /// The quantity that each released number sums over the records.
    #[must_use]
    pub fn summand(&self) -> Summand {
        (self.algorithm.declaration().summand)(self)
    }

    /// The noise of a job's releases and its part in the posterior, as a paragraph of the report; `sd` is the job's noise in figures.
    #[must_use]
    pub fn words_on_noise(&self, sd: &str) -> String {
        (self.algorithm.declaration().noise)(self, sd)
    }
}
