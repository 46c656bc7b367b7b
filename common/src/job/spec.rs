//! A job specification holds what an analyst asks of the data owners, every `"auto"` resolved.

use std::collections::BTreeMap;

use super::aggregation::Aggregation;
use super::error::JobError;
use crate::accounting::{Budget, Honest, SamplingProbability};
use crate::diagnostics::Wanted;
use crate::mechanism::{NoiseScale, QueryKind};
use crate::model::{self, Model, OutcomeTable};
use crate::parameter::{Interval, Prior, Transform};
use crate::schema::{ColumnSpec, ModelSpec};

/// A valid job; every `"auto"` that is a public constant is resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The analyst's name for the job.
    pub name: String,
    /// Id of the job whose chains this one continues.
    pub extends: Option<String>,
    /// Which algorithm runs.
    pub algorithm: Algorithm,
    /// Why it is that one, where the job left the choice to `auto`.
    pub chosen: Option<&'static str>,
    /// Names of the parties, at least one, each once.
    pub parties: Vec<String>,
    /// The statistical model.
    pub model: ModelSpec,
    /// The power on its likelihood, in (0, 1]; 1 leaves it as it is.
    pub power: f64,
    /// Whether parties may hold rows that can't be used: they count, and add exactly nothing. See [`JobSpec::spares_inert_rows`].
    pub incomplete_rows: bool,
    /// Public bounds by column name.
    pub columns: BTreeMap<String, ColumnSpec>,
    /// One prior per parameter, in the model's order.
    pub priors: Vec<Prior>,
    /// The parameter box, part of the prior; one interval per parameter.
    pub support: Vec<Interval>,
    /// How the chains run.
    pub sampler: SamplerSpec,
    /// What the job may spend at each party, and how it is noised.
    pub privacy: PrivacySpec,
    /// How the parties' answers are opened.
    pub aggregation: Aggregation,
    /// How a job that releases once spreads its budget; the defaults for any other.
    pub release: ReleaseSpec,
    /// What the analyst guesses of the data. Only the planner reads it.
    pub plan: Option<PlanSpec>,
}

/// `[plan]`: guesses of what can't be known before a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanSpec {
    /// Records per party, in the job's order.
    pub records: Option<Vec<u64>>,
    /// The posterior, per parameter in the model's order, on the scale that priors are declared on.
    pub posterior: Option<Vec<Moments>>,
    /// How its parameters go together, `(one, other, correlation)` by their places in the model's order; pairs that are not named do not.
    /// `None` where the analyst says nothing of it.
    pub correlations: Option<Vec<(usize, usize, f64)>>,
}

/// A guess of one parameter's posterior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f64,
    /// Standard deviation, above 0.
    pub sd: f64,
}

/// Which algorithm a job runs, by its name in the papers.
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

impl Algorithm {
    /// The name in job files and results.
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

    /// Whether every draw takes a question that the parties answer to.
    #[must_use]
    pub fn proposes(self) -> bool {
        !matches!(self, Algorithm::NoisyStatistics | Algorithm::Augmentation | Algorithm::Ops)
    }

    /// Whether its chains walk on noisy log likelihood ratios alone.
    #[must_use]
    pub fn walks_on_ratios(self) -> bool {
        matches!(self, Algorithm::Penalty | Algorithm::Barker)
    }

    /// Whether its chains are driven by released gradients.
    #[must_use]
    pub fn follows_gradients(self) -> bool {
        self == Algorithm::Hmc || self.is_unadjusted()
    }

    /// Whether its chains follow stochastic gradients without any test: their draws are of the posterior up to a bias.
    #[must_use]
    pub fn is_unadjusted(self) -> bool {
        matches!(self, Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs)
    }

    /// Whether the algorithm asks parties for queries of this kind.
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

/// What a parameter's draws are to come to, each of them, in the words of [`diagnostics`](crate::diagnostics).
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

/// `[privacy]`.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivacySpec {
    /// The most that the job may spend at each party.
    pub budget: Budget,
    /// Noise of one release at one party, while the chains run.
    pub noise: NoiseScale,
    /// Clip of one record's log ratio; `None` stands for the model's public bound.
    pub clip: Option<ClipRule>,
    /// Share of the budget (as mu²) for counting what an explicit clip cuts; 0 without one.
    pub clip_watch_share: f64,
    /// The least noise of a vector or a remainder: the standard deviation of what protects it, over how far one unit of privacy moves it; 0
    /// where the budget alone decides. No such release costs more than one over its square, of mu².
    pub noise_multiplier: f64,
    /// How releases over samples are paid for ahead; `None` of a job that asks all records.
    pub blocks: Option<BlockSpec>,
}

/// How a job's releases over samples are paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSpec {
    /// Blocks that the planned releases are cut into.
    pub blocks: u64,
    /// What all of them may take of delta, in units of 2^-60: the budget's reserve.
    pub reserve_units: u64,
}

/// `[release]`: how `noisy-statistics` asks.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseSpec {
    /// The share of the budget (as mu²) of each stage; `None` has each stage decided by what the ones before it
    /// released.
    pub stages: Option<Vec<f64>>,
    /// The share of each stage that goes into the curvature; `None` has it decided likewise.
    pub curvature_share: Option<f64>,
    /// Whether the likelihood of a released statistic is that of records clamped to their bounds, or of
    /// records as if none were.
    pub clamping: Clamping,
}

impl Default for ReleaseSpec {
    fn default() -> Self {
        Self { stages: None, curvature_share: None, clamping: Clamping::Modelled }
    }
}

impl ReleaseSpec {
    /// The most score stages that find the place of the last one, where the job names no shares.
    pub const MOST_LOCATING: usize = 8;
    /// Shares of the budget where a job names the curvature's share and no stages.
    pub const FIXED_SHARES: [f64; 3] = [0.05, 0.15, 0.8];
}

/// What is made of records that lie beyond their declared bounds, and are clamped to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clamping {
    /// The law of the clamped record is what a released statistic is compared with.
    Modelled,
    /// Records are taken for unclamped.
    Ignored,
}

/// An explicit clip of one record's log ratio, in log-likelihood units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClipRule {
    /// The same for every step.
    PerRecord(f64),
    /// Per unit of Euclidean length of the step.
    Slope(f64),
}

impl JobSpec {
    /// Checks that the job asks for nothing that only jobs of before may have.
    ///
    /// # Errors
    /// Turned moves: what few draws of a warm-up say of correlations sent chains away from the posterior, at the price of long moves. A job
    /// that was submitted with them is replayed with them.
    pub fn check_new(&self) -> Result<(), JobError> {
        if !self.sampler.rotate {
            return Ok(());
        }
        let message = "moves are not turned any more, as chains that learn how from few draws can end far from the posterior: leave it out, and \
                       give correlated predictors more draws or an algorithm that releases once (algorithm = \"auto\")";
        Err(JobError::new("sampler.proposal.rotate", message))
    }

    /// Whether the number of chains follows from what the parties' budgets hold, once that is public: a job whose chains gradients of all
    /// records drive, that leaves it open. Then `chains` is the most there can be; [`settled`](crate::sampler::settled) has the number.
    #[must_use]
    pub fn plans_chains(&self) -> bool {
        let SamplerSpec { chains_named, starts, until, batch, .. } = &self.sampler;
        let open = !chains_named && starts.is_none() && until.is_none();
        // Blocks are cut from the releases of all chains.
        open && self.algorithm.follows_gradients() && *batch == SamplingProbability::ONE
    }

    /// How many parties' noise protects each party in what is opened.
    #[must_use]
    pub fn honest(&self) -> Honest {
        self.aggregation.honest(self.parties.len())
    }

    /// The noise of one party's release, and how many parties' noise of that scale protects it: what a price is made of.
    #[must_use]
    pub fn protected(&self, noise: NoiseScale) -> (NoiseScale, Honest) {
        (noise, self.honest())
    }

    /// Number of parameters.
    pub fn dimension(&self) -> usize {
        self.priors.len()
    }

    /// The statistical model: its kernels and public bounds.
    #[must_use]
    pub fn build_model(&self) -> Box<dyn Model> {
        model::build(&self.model, &self.columns, self.power, self.incomplete_rows)
    }

    /// Whether a row that can't be used adds exactly nothing to whatever the job asks for: it says that rows may be incomplete, or a
    /// column's levels leave room for a value that is none of them.
    #[must_use]
    pub fn spares_inert_rows(&self) -> bool {
        let has_levels = |name: &str| matches!(self.columns.get(name), Some(ColumnSpec::Levels(_)));
        self.incomplete_rows
            || match &self.model {
                // A sum of levels alone is read as that of so many usable rows.
                ModelSpec::Multinomial { .. } => self.algorithm != Algorithm::NoisyStatistics,
                ModelSpec::NaiveBayes { .. } => true,
                ModelSpec::Regression(regression) => regression.design.columns().any(has_levels),
                _ => false,
            }
    }

    /// Whether the model's sufficient statistic itself tells how many rows could be used, where rows may be incomplete.
    pub(crate) fn statistic_spares_inert_rows(&self) -> bool {
        matches!(self.model, ModelSpec::Multinomial { .. } | ModelSpec::NaiveBayes { .. } | ModelSpec::Regression(_))
    }

    /// The transforms between the parameters and the unconstrained values that the chains walk in.
    pub fn transform(&self) -> Transform {
        Transform::new(&self.model.constraints())
    }

    /// Whether it is a chain of ratios, or a choice, that finds the mode by gradients.
    #[must_use]
    pub fn locates_by_gradients(&self) -> bool {
        matches!(self.algorithm, Algorithm::Penalty | Algorithm::Ops) && self.sampler.locate == Locate::Gradients
    }

    /// Whether its chains are those of DP-HMC: gradients without friction, and a test on the whole log ratio.
    #[must_use]
    pub fn runs_dp_hmc(&self) -> bool {
        self.algorithm == Algorithm::Hmc && matches!(self.sampler.hmc.test, HmcTest::Ratio { .. })
    }

    /// Whether chains without a test end in penalty sweeps, which the draws are of.
    #[must_use]
    pub fn is_polished(&self) -> bool {
        self.algorithm.is_unadjusted() && self.sampler.stochastic.polish > 0
    }

    /// Draws of each chain that the job asks for: those of the sweeps, where sweeps end its chains.
    #[must_use]
    pub fn draws_asked(&self) -> u64 {
        let sweeps = self.sampler.stochastic.polish;
        if self.is_polished() { sweeps.saturating_mul(self.dimension() as u64) } else { self.sampler.draws }
    }

    /// The kinds of release that the job asks its parties for, by the words of [`QueryKind::release`].
    #[must_use]
    pub fn releases(&self) -> Vec<&'static str> {
        match self.algorithm {
            Algorithm::Penalty if self.locates_by_gradients() => vec!["score", "ratio"],
            Algorithm::Penalty => vec!["ratio"],
            Algorithm::PenaltyExpFamily => vec!["statistic"],
            Algorithm::NoisyStatistics if self.outcome_table(self.build_model().as_ref()).is_some() => vec!["table"],
            Algorithm::NoisyStatistics => match self.build_model().scores() {
                Some(scores) if scores.moments_outcome().is_some() => vec!["moments", "score"],
                Some(_) => vec!["score"],
                None => vec!["statistic"],
            },
            Algorithm::Augmentation if self.build_model().tables().is_some() => vec!["table"],
            Algorithm::Augmentation => vec!["statistic"],
            Algorithm::Hmc => match self.sampler.hmc.test {
                HmcTest::Remainder => vec!["score", "remainder"],
                HmcTest::Ratio { .. } => vec!["score", "ratio"],
                HmcTest::None => vec!["score"],
            },
            Algorithm::Barker => vec!["ratio"],
            Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs if self.is_polished() => {
                vec!["score", "ratio"]
            }
            Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs => vec!["score"],
            Algorithm::Ops if self.locates_by_gradients() => vec!["score", "choice"],
            Algorithm::Ops if self.sampler.locate_share > 0.0 => vec!["ratio", "choice"],
            Algorithm::Ops => vec!["choice"],
        }
    }

    /// Whether the job asks parties for queries of this kind.
    #[must_use]
    pub fn asks(&self, kind: QueryKind) -> bool {
        let of_a_stage = matches!(kind, QueryKind::Gradient { .. } | QueryKind::Curvature { .. });
        let of_a_step = match kind {
            QueryKind::Ratio if self.runs_dp_hmc() || self.is_polished() => return true,
            QueryKind::Remainder { .. } => self.sampler.hmc.test == HmcTest::Remainder,
            _ => true,
        };
        let sampled = !(kind.is_sampled() || kind == QueryKind::SecondMoment) || self.privacy.blocks.is_some();
        sampled && of_a_step && self.algorithm.asks(kind) || self.locates_by_gradients() && of_a_stage
    }

    /// The table of its model's outcome and predictors, where a job that releases once asks for it, and for nothing else. Stages are of
    /// scores: a job that says something of them has them.
    #[must_use]
    pub fn outcome_table(&self, model: &dyn Model) -> Option<OutcomeTable> {
        let stages = self.release.stages.is_some() || self.release.curvature_share.is_some();
        let asked = self.algorithm == Algorithm::NoisyStatistics && !stages;
        asked.then(|| model.outcome_table()).flatten()
    }

    /// The most rounds in which a job that releases once asks its parties; `None` for jobs that ask round after round.
    #[must_use]
    pub fn most_rounds(&self) -> Option<u64> {
        match self.algorithm {
            Algorithm::Augmentation => return Some(1),
            Algorithm::NoisyStatistics => {}
            _ => return None,
        }
        let stages = || match (&self.release.stages, self.release.curvature_share) {
            (Some(shares), _) => shares.len() as u64,
            (None, Some(_)) => ReleaseSpec::FIXED_SHARES.len() as u64,
            (None, None) => ReleaseSpec::MOST_LOCATING as u64 + 1,
        };
        // The last stage asks for its gradient, and then twice for information.
        let rounds = || stages() + 2;
        let model = self.build_model();
        Some(match model.scores() {
            Some(_) if self.outcome_table(model.as_ref()).is_some() => 1,
            // Second moments, and then they or a score once more.
            Some(scores) if scores.moments_outcome().is_some() => 2,
            Some(_) => rounds(),
            None => 1,
        })
    }

    /// Whether `theta` lies inside the parameter box.
    pub fn in_support(&self, theta: &[f64]) -> bool {
        theta.len() == self.support.len() && theta.iter().zip(&self.support).all(|(x, s)| s.contains(*x))
    }

    /// Whether `theta` lies inside the parameter box made wider by half its width at either end, on the unconstrained scale: where the
    /// middle of a step may lie, of which a gradient is asked.
    #[must_use]
    pub fn in_wider_support(&self, theta: &[f64]) -> bool {
        let transform = self.transform();
        let boxes = transform.unconstrained_box(&self.support);
        let inside = |(u, box_): (&f64, &Interval)| {
            let more = 0.5 * (box_.max - box_.min);
            u.is_finite() && *u >= box_.min - more && *u <= box_.max + more
        };
        theta.len() == self.support.len()
            && theta.iter().all(|x| x.is_finite())
            && transform.unconstrain(theta).iter().zip(&boxes).all(inside)
    }

    /// Log prior density up to a constant.
    pub fn log_prior(&self, theta: &[f64]) -> f64 {
        theta.iter().zip(&self.priors).map(|(x, p)| p.log_density(*x)).sum()
    }
}
