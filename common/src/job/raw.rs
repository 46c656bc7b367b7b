//! The tables of a job file: every key with its type, its range, and its default unless that depends on the algorithm.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};

use super::aggregation::{KeyFingerprint, NoFingerprint};
use super::limits::MAX_CHAINS;
use super::privacy_spec::{ClipRule, ReleaseSpec};
use super::sampler_spec::{HmcTest, Locate, OpsSpec, ProposalKind, Warmup};
use super::spec::{Moments, StudySpec};
use super::weights::Weights;
use crate::schema::ColumnSpec;
use crate::settings::{Fault, Keys, Setting, Value, above, auto_or, each_named, one_of, positive, within};
use conclave_privacy::mechanism::QueryKind;

/// Every key of a job file.
pub const KEYS: Keys = RawJob::KEYS;

const MOST_SWEEPS: u64 = 100_000_000;
const MOST_RECORDS: u64 = 1_000_000_000_000;
/// Least power on the likelihood. Below it a posterior equals the prior for any data.
const LEAST_POWER: f64 = 1e-6;
/// Least weight of a mixture's component.
const LEAST_WEIGHT: f64 = 1e-6;
/// The cumulative hazard at which a record's follow-up ends. The noise is least at 1 to 1.2; a larger cap
/// matters less where the model does not hold.
const HAZARD_CAP: f64 = 1.5;
const LEAST_HAZARD_CAP: f64 = 0.1;
const MOST_HAZARD_CAP: f64 = 10.0;
/// The largest noise multiplier. Beyond it a release carries no information.
const MOST_NOISE_MULTIPLIER: f64 = 1e5;
/// Largest precision of the banana, and the reciprocal of the least.
pub(super) const MOST_CONSTANT: f64 = 1e12;

crate::settings! {
    pub(super) struct RawJob {
        name: String,
        extends: Option<String>,
        algorithm: String = "penalty".to_owned(),
        parties: Vec<String>,
        model: RawModel,
        columns: BTreeMap<String, ColumnSpec>,
        prior: BTreeMap<String, String>,
        parameters: BTreeMap<String, RawInterval>,
        sampler: RawSampler,
        privacy: RawPrivacy,
        aggregation: Option<RawAggregation>,
        release: ReleaseSpec,
        plan: Option<RawPlan>,
        study: StudySpec,
    }
}

crate::settings! {
    /// Each kind takes some of the keys.
    pub(super) struct RawModel {
        /// Empty in a file with a formula, until the formula is read.
        kind: String = String::new(),
        outcome: String = String::new(),
        formula: Option<String>,
        family: Option<String>,
        predictors: Option<Vec<String>>,
        intercept: bool = true,
        sd: Option<f64> => positive,
        weight: f64 = 0.5 => within(LEAST_WEIGHT..=1.0 - LEAST_WEIGHT),
        event: Option<String>,
        entry: Option<String>,
        cuts: Option<Vec<f64>>,
        by: Option<String>,
        hazard_cap: f64 = HAZARD_CAP => within(LEAST_HAZARD_CAP..=MOST_HAZARD_CAP),
        second_outcome: Option<String>,
        a: Option<f64> => within(-MOST_CONSTANT..=MOST_CONSTANT),
        tau1: Option<f64> => within(MOST_CONSTANT.recip()..=MOST_CONSTANT),
        tau2: Option<f64> => within(MOST_CONSTANT.recip()..=MOST_CONSTANT),
        power: f64 = 1.0 => within(LEAST_POWER..=1.0),
        power_prior: bool = false,
        incomplete_rows: bool = false,
        df: Option<f64> => within(0.5..=1e6),
        offset: Option<String>,
        exposure: Option<String>,
        exposure_fixed: bool = false,
        weights: Weights = Weights::Never => one_of(&Weights::ALL.map(|weights| (weights.as_str(), weights))),
    }
}

crate::settings! {
    /// A parameter's box, and the grouping by which it varies.
    pub(super) struct RawInterval { min: Option<f64>, max: Option<f64>, by: Option<String> }
}

crate::settings! {
    pub(super) struct RawSampler {
        chains: Option<u32> => within(1..=MAX_CHAINS),
        draws: Option<u64> => within(1..=MOST_SWEEPS),
        warmup: Option<Warmup>,
        proposal: RawProposal,
        seed: u64 = 1,
        locate: Option<Locate> => one_of(&[("ratios", Locate::Ratios), ("gradients", Locate::Gradients)]),
        locate_share: Option<f64> => within(0.0..1.0),
        start: Option<RawStart>,
        start_share: Option<f64> => within((Excluded(0.0), Excluded(1.0))),
        starts: Option<Vec<BTreeMap<String, f64>>>,
        records_guess: Option<u64> => within(1..=MOST_RECORDS),
        force: bool = false,
        until: Option<RawUntil>,
        step: Option<f64>,
        friction: Option<f64>,
        decay: Option<f64> => within((Excluded(0.0), Included(1.0))),
        test: Option<HmcTest> => one_of(&HmcTest::ALL.map(|test| (test.as_str(), test))),
        /// Kicks of a trajectory without friction.
        refresh: Option<u32> => within(1..=1000),
        correction: f64 = 2.0,
        polish: u64 = 0 => within(0..=1_000_000),
        candidates: u32 = OpsSpec::default().candidates => within(2..=QueryKind::most_candidates(0)),
        batch: f64 = 1.0,
    }
}

crate::settings! {
    pub(super) struct RawProposal {
        kind: ProposalKind = ProposalKind::Guided => one_of(&ProposalKind::ALL.map(|kind| (kind.as_str(), kind))),
        radius: RawRadius = RawRadius::Auto,
        rotate: bool = false,
        /// A share of the radius.
        jitter: f64 = 0.1 => within(0.0..=0.5),
    }
}

pub(super) enum RawRadius {
    Auto,
    One(f64),
    Each(BTreeMap<String, f64>),
}

impl Setting for RawRadius {
    fn read(value: &Value) -> Result<Self, Fault> {
        if value.is_table() {
            return each_named(positive)(value).map(Self::Each);
        }
        Ok(auto_or("a number or a table of numbers", positive)(value)?.map_or(Self::Auto, Self::One))
    }
}

/// `start`: values, or the algorithm that draws them.
pub(super) enum RawStart {
    Values(BTreeMap<String, f64>),
    /// A posterior sample.
    Ops,
}

impl Setting for RawStart {
    fn read(value: &Value) -> Result<Self, Fault> {
        if value.is_table() {
            return BTreeMap::read(value).map(Self::Values);
        }
        match value.as_str() {
            Some("ops") => Ok(Self::Ops),
            _ => Err(Fault::of("must be a table of a value for each parameter, or \"ops\"")),
        }
    }
}

crate::settings! {
    struct UntilRhat { until_rhat: f64 => above(1.0), max: u64 => within(1..=MOST_SWEEPS) }
}

impl Setting for Warmup {
    const KEYS: Keys = UntilRhat::KEYS;

    fn read(value: &Value) -> Result<Self, Fault> {
        if !value.is_table() {
            return within(0..=MOST_SWEEPS)(value).map(Self::Sweeps);
        }
        let UntilRhat { until_rhat: rhat, max } = UntilRhat::read(value)?;
        Ok(Self::UntilRhat { rhat, max })
    }
}

crate::settings! {
    pub(super) struct RawUntil { ess: Option<f64> => positive, rhat: Option<f64> => above(1.0) }
}

crate::settings! {
    pub(super) struct RawPrivacy {
        epsilon: f64 => positive,
        delta: f64 => within((Excluded(0.0), Excluded(1.0))),
        noise_sd: Option<f64> = None => auto_or("a number", f64::read),
        clip: RawClip,
        clip_watch_share: Option<f64> => within((Excluded(0.0), Included(0.5))),
        noise_multiplier: f64 = 0.0 => within((Excluded(0.0), Included(MOST_NOISE_MULTIPLIER))),
        blocks: Option<u64> => within(1..=10_000),
        delta_reserve: Option<f64>,
    }
}

pub(super) struct RawClip(pub Option<ClipRule>);

crate::settings! {
    struct Slope { slope: f64 => positive }
}

impl Setting for RawClip {
    const KEYS: Keys = Slope::KEYS;

    fn read(value: &Value) -> Result<Self, Fault> {
        if value.is_table() {
            return Slope::read(value).map(|Slope { slope }| Self(Some(ClipRule::Slope(slope))));
        }
        Ok(Self(auto_or("a number or { slope = a number }", positive)(value)?.map(ClipRule::PerRecord)))
    }

    fn absent() -> Option<Self> {
        Some(Self(None))
    }
}

crate::settings! {
    pub(super) struct RawAggregation {
        /// True for `secure`.
        mode: bool => one_of(&[("local", false), ("secure", true)]),
        colluders: Option<i64>,
        members: BTreeMap<String, KeyFingerprint>,
    }
}

impl Setting for KeyFingerprint {
    fn read(value: &Value) -> Result<Self, Fault> {
        String::read(value)?.parse().map_err(|e: NoFingerprint| Fault::of(e.to_string()))
    }
}

crate::settings! {
    pub(super) struct RawPlan {
        records: Option<RawRecords>,
        posterior: BTreeMap<String, Moments>,
        correlations: Option<Vec<Correlation>>,
    }
}

pub(super) enum RawRecords {
    All(u64),
    Each(BTreeMap<String, u64>),
}

impl Setting for RawRecords {
    fn read(value: &Value) -> Result<Self, Fault> {
        let count = within(1..=MOST_RECORDS);
        if value.is_table() { each_named(count)(value).map(Self::Each) } else { count(value).map(Self::All) }
    }
}

/// Two parameters and their correlation.
pub(super) struct Correlation(pub String, pub String, pub f64);

impl Setting for Correlation {
    fn read(value: &Value) -> Result<Self, Fault> {
        match value.as_array().map(Vec::as_slice) {
            Some([one, other, correlation]) => Ok(Self(String::read(one)?, String::read(other)?, f64::read(correlation)?)),
            _ => Err(Fault::of("must be a list of two parameters and their correlation")),
        }
    }
}
