//! The algorithms by name, and the kinds of query that each uses.

use conclave_privacy::mechanism::QueryKind;

/// The algorithm of a job, by its name in the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Algorithm 2 (Algorithm 1 is the case of one owner).
    Penalty,
    /// Algorithm 3: noisy sufficient statistics of an exponential family, any number of owners.
    PenaltyExpFamily,
    /// Noisy vectors, released once or a few times, then draws from the posterior given these releases.
    NoisyStatistics,
    /// One release of a statistic or of tables, then data augmentation: Ju, Awan, Gong & Rao, *Data Augmentation MCMC for
    /// Bayesian Inference from Privatized Data* (2022).
    Augmentation,
    /// Hamiltonian Monte Carlo. Its kicks are noisy gradients, its friction absorbs their noise, and a penalty test applies to
    /// the remainder of each step's log ratio.
    Hmc,
    /// The noise-corrected Barker test on noisy log likelihood ratios: Heikkilä, Jälkö, Dikmen & Honkela, *Differentially Private
    /// Markov Chain Monte Carlo* (2019).
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

impl Algorithm {
    /// Returns the name used in job files and results.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Penalty => "penalty",
            Algorithm::PenaltyExpFamily => "penalty-exp-family",
            Algorithm::NoisyStatistics => "noisy-statistics",
            Algorithm::Augmentation => "augmentation",
            Algorithm::Hmc => "hmc",
            Algorithm::Barker => "barker",
            Algorithm::Sgld => "sgld",
            Algorithm::Sghmc => "sghmc",
            Algorithm::Sgnht => "sgnht",
            Algorithm::Sgfs => "sgfs",
            Algorithm::Ops => "ops",
        }
    }

    /// Returns whether every draw requires a query to the parties.
    #[must_use]
    pub fn proposes(self) -> bool {
        !matches!(self, Algorithm::NoisyStatistics | Algorithm::Augmentation | Algorithm::Ops)
    }

    /// Returns whether the chains use noisy log likelihood ratios only.
    #[must_use]
    pub fn walks_on_ratios(self) -> bool {
        matches!(self, Algorithm::Penalty | Algorithm::Barker)
    }

    /// Returns whether released gradients drive the chains.
    #[must_use]
    pub fn follows_gradients(self) -> bool {
        self == Algorithm::Hmc || self.is_unadjusted()
    }

    /// Returns whether the chains follow stochastic gradients without a test, so that their draws have a bias.
    #[must_use]
    pub fn is_unadjusted(self) -> bool {
        matches!(self, Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs)
    }

    /// Returns whether the algorithm uses queries of this kind.
    #[must_use]
    pub fn asks(self, kind: QueryKind) -> bool {
        match self {
            Algorithm::Penalty => matches!(kind, QueryKind::Ratio | QueryKind::ClipCount),
            Algorithm::Barker => {
                matches!(kind, QueryKind::Ratio | QueryKind::SampledRatio | QueryKind::SecondMoment | QueryKind::ClipCount)
            }
            Algorithm::PenaltyExpFamily => matches!(kind, QueryKind::Statistic { .. }),
            Algorithm::NoisyStatistics => matches!(
                kind,
                QueryKind::Statistic { .. }
                    | QueryKind::Moments { .. }
                    | QueryKind::Gradient { .. }
                    | QueryKind::Curvature { .. }
                    | QueryKind::Table { .. }
            ),
            Algorithm::Hmc => {
                matches!(kind, QueryKind::Gradient { .. } | QueryKind::Curvature { .. } | QueryKind::Remainder { .. })
            }
            Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs => {
                matches!(kind, QueryKind::Gradient { .. } | QueryKind::SampledGradient { .. } | QueryKind::Curvature { .. })
            }
            Algorithm::Augmentation => matches!(kind, QueryKind::Statistic { .. } | QueryKind::Table { .. }),
            Algorithm::Ops => matches!(kind, QueryKind::Ratio | QueryKind::Choice { .. }),
        }
    }
}
