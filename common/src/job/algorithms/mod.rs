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

use std::ops::Deref;

pub use declaration::{ANY_MODEL, Declaration, Summand, UsualLength};
pub(in crate::job) use declaration::{OwnSettings, Parsing};
pub(in crate::job) use hmc::noise as noise_of_tests;
pub(in crate::job) use noisy_statistics::{MOST_PARAMETERS, release};

/// The algorithm that a job runs, by its name in the papers: an index into the registry, which dereferences to the [`Declaration`].
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
const ALL: [(Algorithm, &dyn Parsing); 11] = [
    (Algorithm::Penalty, &penalty::Penalty),
    (Algorithm::PenaltyExpFamily, &penalty_exp_family::PenaltyExpFamily),
    (Algorithm::NoisyStatistics, &noisy_statistics::NoisyStatistics),
    (Algorithm::Augmentation, &augmentation::Augmentation),
    (Algorithm::Hmc, &hmc::Hmc),
    (Algorithm::Barker, &barker::Barker),
    (Algorithm::Sgld, &stochastic::SGLD),
    (Algorithm::Sghmc, &stochastic::SGHMC),
    (Algorithm::Sgnht, &stochastic::SGNHT),
    (Algorithm::Sgfs, &stochastic::SGFS),
    (Algorithm::Ops, &ops::Ops),
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
        ALL.into_iter().find(|(_, declared)| declared.as_str() == name).map(|(algorithm, _)| algorithm)
    }

    /// The names of all algorithms.
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        ALL.into_iter().map(|(_, declared)| declared.as_str())
    }

    pub(in crate::job) fn parsing(self) -> &'static dyn Parsing {
        ALL[self as usize].1
    }

    /// Whether `[sampler]` may hold this key, which not every algorithm takes.
    #[must_use]
    pub fn takes(self, key: &str) -> bool {
        self.own_keys().contains(&key)
    }
}

impl Deref for Algorithm {
    type Target = dyn Declaration;

    fn deref(&self) -> &Self::Target {
        self.parsing()
    }
}
