//! `[privacy]` and `[release]`: the budget of a job and its use.

use std::ops::Bound::{Excluded, Included};

use crate::settings::{Fault, Value, auto_or, each, one_of, or, within};
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

crate::settings! {
    /// `[release]`: the releases of `noisy-statistics`.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct ReleaseSpec {
        /// The share of the budget (as mu²) of each stage; `None` derives each stage from earlier releases.
        stages: Option<Vec<f64>> = None => auto_or("a list of shares of the budget", stages),
        /// The share of each stage that goes to the curvature; `None` derives it from earlier releases.
        curvature_share: Option<f64> => within((Excluded(0.0), Excluded(1.0))),
        /// True if one table of outcome and categories replaces scores; `None` chooses it where its predicted error is smaller.
        table: Option<bool>,
        /// The public length of a record's contribution, without a choice.
        clip: () = () => or("it is the public length of a record's contribution", one_of(&[("auto", ())])),
        /// The treatment of clamped records in the likelihood of a released statistic.
        clamping: Clamping = Clamping::Modelled => one_of(&[("modelled", Clamping::Modelled), ("ignored", Clamping::Ignored)]),
    }
}

/// Largest number of stages.
const MOST_STAGES: usize = 16;
/// Largest deviation from 1 of the sum of the stages' shares.
const SLIP: f64 = 1e-9;

fn stages(value: &Value) -> Result<Vec<f64>, Fault> {
    let shares = each(within((Excluded(0.0), Included(1.0))))(value)?;
    if !(1..=MOST_STAGES).contains(&shares.len()) {
        return Err(Fault::of(format!("must contain 1 to {MOST_STAGES} shares, not {}", shares.len())));
    }
    let sum: f64 = shares.iter().sum();
    if (sum - 1.0).abs() > SLIP { Err(Fault::of(format!("must add up to 1, not {sum}"))) } else { Ok(shares) }
}

impl ReleaseSpec {
    /// Maximum number of score stages before the last one, if the job states no shares.
    pub const MOST_LOCATING: usize = 8;
    /// Maximum number of rounds of a job that weights records: the number of records, a table of outcomes, 4 stages that learn the frame
    /// and 6 that locate the answer, the last stage and 3 sums of squares.
    pub const MOST_WEIGHTED_ROUNDS: u64 = 16;
    /// Further rounds of a weighted regression of counts, in which sums of squares have no part: its exposures, 2 tables of its tails, 2
    /// informations half way to the answer, and the dispersion there and at each of 6 points before.
    pub const MORE_ROUNDS_OF_COUNTS: u64 = 9;
    /// Largest number of cells per coefficient, plus one in total, of a table that a job uses without naming it. Up to it, a
    /// table's error is no larger than that of score stages that converge, in simulations over designs of up to seven columns.
    pub const CELLS_PER_COEFFICIENT: usize = 3;
    /// Shares of the budget if a job states the curvature's share but no stages.
    pub const FIXED_SHARES: [f64; 3] = [0.05, 0.15, 0.8];
}

/// The treatment of records beyond their declared bounds, which are clamped to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clamping {
    /// The likelihood of a released statistic uses the law of the clamped record.
    #[default]
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
