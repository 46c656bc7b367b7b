//! `[sampler]`: chains, their steps and moves, and what each algorithm has of its own.

use crate::job::Wanted;
use conclave_privacy::accounting::SamplingProbability;

/// `[sampler]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerSpec {
    /// Number of chains, 1 to [`super::MAX_CHAINS`].
    pub chains: u32,
    /// Whether the job file says how many.
    pub chains_named: bool,
    /// Draws per chain after warm-up, at most: a budget may end the run first.
    pub draws: u64,
    /// How long the warm-up runs.
    pub warmup: Warmup,
    /// Which proposal.
    pub proposal: ProposalKind,
    /// Proposal radii.
    pub radius: Radius,
    /// Whether the warm-up turns the moves into the posterior's principal axes.
    pub rotate: bool,
    /// Half width of the factor around 1 on a one-coordinate radius, in [0, 0.5]. With 0 such a walk
    /// only reaches a lattice of points.
    pub jitter: f64,
    /// Seed of proposals and decisions; never of noise.
    pub seed: u64,
    /// What the mode is found by, where it is searched for.
    pub locate: Locate,
    /// Share of the job's budget (as mu²) for finding the mode, in [0, 1).
    pub locate_share: f64,
    /// Starting values, one per parameter, where the analyst gave them.
    pub start: Option<Vec<f64>>,
    /// Starting values of each chain, `[chain][parameter]`, taken as they are: no search, no dispersal.
    pub starts: Option<Vec<Vec<f64>>>,
    /// A guess of one party's number of records, used for parties that don't publish theirs.
    pub records_guess: Option<u64>,
    /// Whether the job runs although no answer can be expected; and augmentation however many records there are.
    pub force: bool,
    /// What the run is to come to, and end there with the rest of the budget unspent; `draws` is then the most there are.
    pub until: Option<Until>,
    /// How `hmc` moves; the defaults for any other algorithm.
    pub hmc: HmcSpec,
    /// How `barker` accepts; the defaults for any other algorithm.
    pub barker: BarkerSpec,
    /// How stochastic gradients move; the defaults for any other algorithm.
    pub stochastic: StochasticSpec,
    /// What `ops` draws from; the defaults for any other algorithm.
    pub ops: OpsSpec,
    /// The probability with which a unit of privacy is in the sample that a chain's release is made of; 1 where all are.
    pub batch: SamplingProbability,
}

/// `[sampler]` of `barker`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BarkerSpec {
    /// C: the variance of the normal part of the logistic noise, 2, 1.5 or 1.
    pub correction: f64,
}

impl Default for BarkerSpec {
    fn default() -> Self {
        Self { correction: 2.0 }
    }
}

/// `[sampler]` of `sgld`, `sghmc`, `sgnht` and `sgfs`: what is not given is decided by what is public of the job and by what its search released.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StochasticSpec {
    /// eta, the step size, in posterior standard deviations (of `sgld` and `sgfs` in their squares).
    pub step: Option<f64>,
    /// a, friction in units of 1 over time.
    pub friction: Option<f64>,
    /// Steps of each chain before its kept draws.
    pub warmup: Option<u64>,
    /// Share of the job's budget (as mu²) for finding where the chains start and how they are to move.
    pub locate_share: Option<f64>,
    /// m: sweeps of the guided penalty walk from each chain's last state, a proposal for each coordinate; where there are any, the draws are theirs.
    pub polish: u64,
}

/// `[sampler]` of `ops`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpsSpec {
    /// M: how many candidates one of which is drawn.
    pub candidates: u32,
}

impl Default for OpsSpec {
    fn default() -> Self {
        Self { candidates: 4096 }
    }
}

/// `[sampler]` of `hmc`: what is not given is decided by what is public of the job and by what its search released.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HmcSpec {
    /// Length of a step, in posterior standard deviations, above 0 and below 2.
    pub step: Option<f64>,
    /// Friction in units of 1 over time, above 0: a step of length `h` keeps `e^(-friction h)` of the momentum on average. None of DP-HMC.
    pub friction: Option<f64>,
    /// Steps of each chain before its kept draws, trajectories of DP-HMC.
    pub warmup: Option<u64>,
    /// Share of the job's budget (as mu²) for finding where the chains start and how they are to move, above 0 and below 1.
    pub locate_share: Option<f64>,
    /// What ends a step.
    pub test: HmcTest,
}

/// What ends a step of `hmc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HmcTest {
    /// A penalty test on what the gradient leaves of the step's log ratio.
    #[default]
    Remainder,
    /// A penalty test on the whole log ratio of a trajectory of so many kicks, without friction: DP-HMC of Räisä, Koskela & Honkela (2021).
    Ratio {
        /// Kicks of a trajectory, after which the momentum is drawn afresh.
        kicks: u32,
    },
    /// None: the draws are of the posterior up to a bias, which a normal one has not.
    None,
}

impl HmcTest {
    /// Whether nothing takes up the noise's heat: the whole ratio of a trajectory is tested.
    #[must_use]
    pub fn kicks_freely(self) -> bool {
        matches!(self, Self::Ratio { .. })
    }

    /// Gradients of a step.
    #[must_use]
    pub fn kicks(self) -> u32 {
        if let Self::Ratio { kicks } = self { kicks } else { 1 }
    }

    /// The name in job files and results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remainder => "remainder",
            Self::Ratio { .. } => "ratio",
            Self::None => "none",
        }
    }
}

impl SamplerSpec {
    /// What the draws are to come to: what the job says, or what is usual.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        self.until.map_or(Wanted::usual(self.chains), |Until { ess, rhat }| Wanted { ess, rhat })
    }
}

/// What a parameter's draws are to come to, each of them, in the words of [`diagnostics`](conclave_inference::diagnostics).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Least bulk and tail effective sample size, over all chains.
    pub ess: f64,
    /// Greatest rank-normalised split R-hat, above 1.
    pub rhat: f64,
}

/// Length of the warm-up, in sweeps of one proposal per coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warmup {
    /// This many sweeps.
    Sweeps(u64),
    /// Until split R-hat of the warm-up's later half is below `rhat` for every parameter, at most `max`
    /// sweeps.
    UntilRhat {
        /// Threshold above 1.
        rhat: f64,
        /// Most sweeps.
        max: u64,
    },
}

/// The proposal of the chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalKind {
    /// One coordinate, fixed radius; keeps that coordinate's sign after an acceptance, flips it after a
    /// rejection (Gustafson 1998).
    Guided,
    /// One coordinate, fixed radius, random sign.
    Componentwise,
    /// All coordinates, Gaussian.
    RandomWalk,
    /// All coordinates, Gaussian, each cut off at twice its radius.
    ///
    /// Assumption A3 of Yıldırım, *On the use of penalty MCMC for differential privacy*, section 3.2.1:
    /// no coordinate moves further than c n^−α. With radii in proportion to the posterior's sd, α is the
    /// 1/2 that the paper allows at most. Together with a Lipschitz bound of the log likelihood (A2;
    /// `Model::bound`) it bounds the cost of every release beforehand.
    TruncatedWalk,
}

impl ProposalKind {
    /// The name in job files.
    pub fn as_str(self) -> &'static str {
        match self {
            ProposalKind::Guided => "guided",
            ProposalKind::Componentwise => "componentwise",
            ProposalKind::RandomWalk => "random_walk",
            ProposalKind::TruncatedWalk => "truncated_walk",
        }
    }

    /// The radius of a move of one coordinate where it is measured, in posterior sds of that coordinate given the others.
    pub const ONE_COORDINATE: f64 = 0.44;

    /// Total noise standard deviation, over all parties, at which this proposal makes the most of a budget.
    pub fn total_noise_sd(self) -> f64 {
        match self {
            ProposalKind::Guided => 1.75,
            ProposalKind::Componentwise | ProposalKind::RandomWalk | ProposalKind::TruncatedWalk => 2.4,
        }
    }
}

/// What a chain of ratios finds the mode by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locate {
    /// Ratios along one coordinate after the other.
    #[default]
    Ratios,
    /// A few gradients, with the information beside them.
    Gradients,
}

/// Proposal radii, on the unconstrained scale of each parameter: that of the priors for real parameters,
/// the logarithm of positive ones, the logit of probabilities.
#[derive(Debug, Clone, PartialEq)]
pub enum Radius {
    /// From the posterior's curvature, measured on released values during `locate` or at the start of
    /// the warm-up.
    Auto,
    /// One per parameter, set by hand; the last of a simplex is not used.
    Fixed(Vec<f64>),
}
