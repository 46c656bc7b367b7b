//! `[privacy]` and `[release]`: the budget of a job and its use.

use conclave_privacy::accounting::Budget;
use conclave_privacy::mechanism::NoiseScale;

/// `[privacy]`.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivacySpec {
    /// The job's budget at each party.
    pub budget: Budget,
    /// Noise of one release at one party while the chains run.
    pub noise: NoiseScale,
    /// Clip of one record's log ratio; `None` for the model's public bound.
    pub clip: Option<ClipRule>,
    /// Share of the budget (as mu²) for noisy clip counts; 0 without an explicit clip.
    pub clip_watch_share: f64,
    /// The minimum noise multiplier of a vector or a remainder: the standard deviation of the protecting noise, divided by the
    /// sensitivity for one unit of privacy. 0 leaves the noise to the budget. No such release costs more than
    /// `1 / noise_multiplier^2` of mu².
    pub noise_multiplier: f64,
    /// The number of blocks into which the planned subsampled releases are divided. Each is charged when it is opened, from the
    /// budget and its reserve. `None` for a job over all records.
    pub blocks: Option<u64>,
}

/// `[release]`: the releases of `noisy-statistics`.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseSpec {
    /// The share of the budget (as mu²) of each stage; `None` derives each stage from earlier releases.
    pub stages: Option<Vec<f64>>,
    /// The share of each stage that goes to the curvature; `None` derives it from earlier releases.
    pub curvature_share: Option<f64>,
    /// The treatment of clamped records in the likelihood of a released statistic.
    pub clamping: Clamping,
}

impl Default for ReleaseSpec {
    fn default() -> Self {
        Self { stages: None, curvature_share: None, clamping: Clamping::Modelled }
    }
}

impl ReleaseSpec {
    /// Maximum number of score stages before the last one, if the job states no shares.
    pub const MOST_LOCATING: usize = 8;
    /// Shares of the budget if a job states the curvature's share but no stages.
    pub const FIXED_SHARES: [f64; 3] = [0.05, 0.15, 0.8];
}

/// The treatment of records beyond their declared bounds, which are clamped to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clamping {
    /// The likelihood of a released statistic uses the law of the clamped record.
    Modelled,
    /// The likelihood ignores the clamping.
    Ignored,
}

/// An explicit clip of one record's log ratio, in log-likelihood units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClipRule {
    /// The same for every step.
    PerRecord(f64),
    /// Proportional to the Euclidean length of the step.
    Slope(f64),
}
