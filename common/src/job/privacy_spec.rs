//! `[privacy]` and `[release]`: what a job may spend, and how.

use conclave_privacy::accounting::Budget;
use conclave_privacy::mechanism::NoiseScale;

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
    /// Blocks that the planned releases over samples are cut into, each paid for ahead of the budget and its reserve; `None` of a job that asks
    /// all records.
    pub blocks: Option<u64>,
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
