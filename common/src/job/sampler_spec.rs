//! `[sampler]`: chains, their steps and moves, and the settings of each algorithm.

use crate::job::Wanted;
use conclave_privacy::accounting::SamplingProbability;

/// `[sampler]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerSpec {
    /// Number of chains, 1 to [`super::MAX_CHAINS`].
    pub chains: u32,
    /// True if the job file states the number of chains.
    pub chains_named: bool,
    /// Maximum number of draws per chain after warm-up. The budget may end the run earlier.
    pub draws: u64,
    /// The length of the warm-up.
    pub warmup: Warmup,
    /// The proposal.
    pub proposal: ProposalKind,
    /// Proposal radii.
    pub radius: Radius,
    /// True if the warm-up rotates the moves to the posterior's principal axes.
    pub rotate: bool,
    /// Half width of the random factor around 1 on a one-coordinate radius, in [0, 0.5]. With 0 such a walk only reaches a
    /// lattice of points.
    pub jitter: f64,
    /// Seed of proposals and decisions; never of noise.
    pub seed: u64,
    /// The method of the search for the mode, if there is one.
    pub locate: Locate,
    /// Share of the job's budget (as mu²) for the search for the mode, in [0, 1).
    pub locate_share: f64,
    /// Starting values, one per parameter, if the analyst gave them.
    pub start: Option<Vec<f64>>,
    /// Starting values of each chain, `[chain][parameter]`, used unchanged: no search, no dispersal.
    pub starts: Option<Vec<Vec<f64>>>,
    /// A guess of one party's number of records, for parties that do not publish theirs.
    pub records_guess: Option<u64>,
    /// True if the job runs although the forecast yields no usable draws; for augmentation, regardless of the number of records.
    pub force: bool,
    /// The target precision at which the run ends, leaving the rest of the budget unspent. `draws` is then the maximum.
    pub until: Option<Until>,
    /// Settings of `hmc`; the defaults for any other algorithm.
    pub hmc: HmcSpec,
    /// Settings of `barker`; the defaults for any other algorithm.
    pub barker: BarkerSpec,
    /// Settings of stochastic gradients; the defaults for any other algorithm.
    pub stochastic: StochasticSpec,
    /// Settings of `ops`; the defaults for any other algorithm.
    pub ops: OpsSpec,
    /// The probability that a unit of privacy is in the sample of a chain's release; 1 for all units.
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

/// `[sampler]` of `sgld`, `sghmc`, `sgnht` and `sgfs`. Missing values are derived from public facts of the job and from the
/// releases of its search.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StochasticSpec {
    /// eta, the step size, in posterior standard deviations (for `sgld` and `sgfs`, in their squares).
    pub step: Option<f64>,
    /// a, friction in units of 1 over time.
    pub friction: Option<f64>,
    /// gamma of steps that decrease as `eta_t = a (b + t)^(-gamma)`, in (0, 1]; `None` for constant steps.
    pub decay: Option<f64>,
    /// Steps of each chain before its retained draws.
    pub warmup: Option<u64>,
    /// Share of the job's budget (as mu²) for finding starting values and step settings.
    pub locate_share: Option<f64>,
    /// Share of the job's budget (as mu²) that the posterior sample may cost at which all chains start; `None` if they start near
    /// the search's result or at stated values.
    pub start_share: Option<f64>,
    /// m: sweeps of the guided penalty walk from each chain's last state, with one proposal per coordinate. If positive, the
    /// draws are those of the sweeps.
    pub polish: u64,
}

/// `[sampler]` of `ops`, and of chains that start at a posterior sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpsSpec {
    /// M: the number of candidates of each draw.
    pub candidates: u32,
}

impl Default for OpsSpec {
    fn default() -> Self {
        Self { candidates: 4096 }
    }
}

/// `[sampler]` of `hmc`. Missing values are derived from public facts of the job and from the releases of its search.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HmcSpec {
    /// Length of a step, in posterior standard deviations, above 0 and below 2.
    pub step: Option<f64>,
    /// Friction in units of 1 over time, above 0: a step of length `h` retains `e^(-friction h)` of the momentum on average. Not
    /// used by DP-HMC.
    pub friction: Option<f64>,
    /// Steps of each chain before its retained draws; trajectories for DP-HMC.
    pub warmup: Option<u64>,
    /// Share of the job's budget (as mu²) for finding starting values and step settings, above 0 and below 1.
    pub locate_share: Option<f64>,
    /// The test of a step.
    pub test: HmcTest,
}

/// The test of a step of `hmc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HmcTest {
    /// A penalty test on the remainder of the step's log ratio.
    #[default]
    Remainder,
    /// A penalty test on the whole log ratio of a trajectory of `kicks` kicks, without friction: DP-HMC of Räisä, Koskela &
    /// Honkela (2021).
    Ratio {
        /// Kicks of a trajectory, after which the momentum is drawn again.
        kicks: u32,
    },
    /// No test: the draws have a bias, except for a normal posterior.
    None,
}

impl HmcTest {
    /// Default number of kicks of a trajectory without friction.
    pub(super) const KICKS: u32 = 10;
    /// All tests.
    pub(super) const ALL: [Self; 3] = [Self::Remainder, Self::Ratio { kicks: Self::KICKS }, Self::None];

    /// Returns whether no friction absorbs the noise, and the whole ratio of a trajectory is tested.
    #[must_use]
    pub fn kicks_freely(self) -> bool {
        matches!(self, Self::Ratio { .. })
    }

    /// Returns the number of gradients of a step.
    #[must_use]
    pub fn kicks(self) -> u32 {
        if let Self::Ratio { kicks } = self { kicks } else { 1 }
    }

    /// Returns the name used in job files and results.
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
    /// Returns the target precision of the draws: that of the job, or the default.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        self.until.map_or(Wanted::usual(self.chains), |Until { ess, rhat }| Wanted { ess, rhat })
    }
}

/// The target precision of each parameter's draws, in terms of [`diagnostics`](conclave_inference::diagnostics).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Minimum bulk and tail effective sample size, over all chains.
    pub ess: f64,
    /// Maximum rank-normalised split R-hat, above 1.
    pub rhat: f64,
}

/// Length of the warm-up, in sweeps. A sweep is one proposal per coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warmup {
    /// A fixed number of sweeps.
    Sweeps(u64),
    /// Until split R-hat of the second half of the warm-up is below `rhat` for every parameter, for at most `max` sweeps.
    UntilRhat {
        /// Threshold above 1.
        rhat: f64,
        /// Maximum number of sweeps.
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
    /// All coordinates, Gaussian, each truncated at twice its radius.
    ///
    /// Assumption A3 of Yıldırım, *On the use of penalty MCMC for differential privacy*, section 3.2.1: no coordinate moves
    /// further than c n^−α. With radii proportional to the posterior's sd, α is 1/2, the largest value that the paper allows.
    /// Together with a Lipschitz bound of the log likelihood (A2; `Model::bound`) it bounds the cost of every release in advance.
    TruncatedWalk,
}

impl ProposalKind {
    /// All proposals.
    pub(super) const ALL: [Self; 4] = [Self::Guided, Self::Componentwise, Self::RandomWalk, Self::TruncatedWalk];

    /// Returns the name used in job files.
    pub fn as_str(self) -> &'static str {
        match self {
            ProposalKind::Guided => "guided",
            ProposalKind::Componentwise => "componentwise",
            ProposalKind::RandomWalk => "random_walk",
            ProposalKind::TruncatedWalk => "truncated_walk",
        }
    }

    /// The radius of a measured one-coordinate move, in posterior sds of that coordinate given the others.
    pub const ONE_COORDINATE: f64 = 0.44;

    /// Returns the total noise standard deviation, over all parties, at which this proposal uses a budget best.
    pub fn total_noise_sd(self) -> f64 {
        match self {
            ProposalKind::Guided => 1.75,
            ProposalKind::Componentwise | ProposalKind::RandomWalk | ProposalKind::TruncatedWalk => 2.4,
        }
    }
}

/// The method by which a chain of ratios finds the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locate {
    /// Ratios along one coordinate after another.
    #[default]
    Ratios,
    /// A few gradients, and the information at the same points.
    Gradients,
}

/// Proposal radii, on the unconstrained scale of each parameter: that of the priors for real parameters,
/// the logarithm of positive ones, the logit of probabilities.
#[derive(Debug, Clone, PartialEq)]
pub enum Radius {
    /// Derived from the posterior's curvature, measured on releases during `locate` or at the start of the warm-up.
    Auto,
    /// One per parameter, set manually; the last of a simplex is not used.
    Fixed(Vec<f64>),
}
