//! The algorithms by name.

/// The algorithm that a job runs, by its name in the papers: an index into the registry of declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Algorithm 2; Algorithm 1 is its special case with one owner.
    Penalty,
    /// Algorithm 3: noisy sufficient statistics of an exponential family, any number of owners.
    PenaltyExpFamily,
    /// A few noisy vectors, released once; the posterior given these releases.
    NoisyStatistics,
    /// One release of a statistic or of tables, then data augmentation: Ju, Awan, Gong & Rao, *Data Augmentation MCMC for Bayesian
    /// Inference from Privatized Data* (2022).
    Augmentation,
    /// Hamiltonian Monte Carlo with noisy gradients, whose noise the friction dissipates, and a penalty test on the remainder of
    /// each step's log ratio.
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
