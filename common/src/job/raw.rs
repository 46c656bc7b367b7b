//! The job file as written, before validation.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::schema::keys::Keys;

/// Every key of a job file.
pub const KEYS: Keys = Keys::Table(&[
    ("name", Keys::Any),
    ("extends", Keys::Any),
    ("algorithm", Keys::Any),
    ("parties", Keys::Any),
    (
        "model",
        Keys::Table(&[
            ("kind", Keys::Any),
            ("outcome", Keys::Any),
            ("predictors", Keys::Any),
            ("intercept", Keys::Any),
            ("sd", Keys::Any),
            ("weight", Keys::Any),
            ("event", Keys::Any),
            ("second_outcome", Keys::Any),
            ("a", Keys::Any),
            ("tau1", Keys::Any),
            ("tau2", Keys::Any),
            ("power", Keys::Any),
            ("incomplete_rows", Keys::Any),
            ("df", Keys::Any),
            ("offset", Keys::Any),
            ("exposure", Keys::Any),
        ]),
    ),
    (
        "columns",
        Keys::Named(&Keys::Table(&[("min", Keys::Any), ("max", Keys::Any), ("binary", Keys::Any), ("levels", Keys::Any)])),
    ),
    ("prior", Keys::Any),
    ("parameters", Keys::Named(&Keys::Table(&[("min", Keys::Any), ("max", Keys::Any)]))),
    (
        "sampler",
        Keys::Table(&[
            ("chains", Keys::Any),
            ("draws", Keys::Any),
            ("warmup", Keys::Table(&[("until_rhat", Keys::Any), ("max", Keys::Any)])),
            (
                "proposal",
                Keys::Table(&[("kind", Keys::Any), ("radius", Keys::Any), ("rotate", Keys::Any), ("jitter", Keys::Any)]),
            ),
            ("seed", Keys::Any),
            ("locate", Keys::Any),
            ("locate_share", Keys::Any),
            ("start", Keys::Any),
            ("starts", Keys::Any),
            ("records_guess", Keys::Any),
            ("force", Keys::Any),
            ("until", Keys::Table(&[("ess", Keys::Any), ("rhat", Keys::Any)])),
            ("step", Keys::Any),
            ("friction", Keys::Any),
            ("test", Keys::Any),
            ("refresh", Keys::Any),
            ("correction", Keys::Any),
            ("polish", Keys::Any),
            ("candidates", Keys::Any),
            ("batch", Keys::Any),
        ]),
    ),
    (
        "privacy",
        Keys::Table(&[
            ("epsilon", Keys::Any),
            ("delta", Keys::Any),
            ("noise_sd", Keys::Any),
            ("clip", Keys::Table(&[("slope", Keys::Any)])),
            ("clip_watch_share", Keys::Any),
            ("noise_multiplier", Keys::Any),
            ("blocks", Keys::Any),
            ("delta_reserve", Keys::Any),
        ]),
    ),
    ("aggregation", Keys::Table(&[("mode", Keys::Any), ("colluders", Keys::Any), ("members", Keys::Any)])),
    (
        "release",
        Keys::Table(&[("stages", Keys::Any), ("curvature_share", Keys::Any), ("clip", Keys::Any), ("clamping", Keys::Any)]),
    ),
    (
        "plan",
        Keys::Table(&[
            ("records", Keys::Any),
            ("posterior", Keys::Named(&Keys::Table(&[("mean", Keys::Any), ("sd", Keys::Any)]))),
            ("correlations", Keys::Any),
        ]),
    ),
]);

#[derive(Deserialize)]
pub(super) struct RawJob {
    pub name: String,
    pub extends: Option<String>,
    #[serde(default = "penalty")]
    pub algorithm: String,
    pub parties: Vec<String>,
    pub model: RawModel,
    pub columns: BTreeMap<String, RawColumn>,
    #[serde(default)]
    pub prior: BTreeMap<String, String>,
    #[serde(default)]
    pub parameters: BTreeMap<String, RawInterval>,
    #[serde(default)]
    pub sampler: RawSampler,
    pub privacy: RawPrivacy,
    pub aggregation: Option<RawAggregation>,
    pub release: Option<RawRelease>,
    pub plan: Option<RawPlan>,
}

#[derive(Deserialize)]
pub(super) struct RawAggregation {
    pub mode: String,
    pub colluders: Option<i64>,
    #[serde(default)]
    pub members: BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub(super) struct RawRelease {
    pub stages: Option<RawStages>,
    pub curvature_share: Option<f64>,
    pub clip: Option<AutoOr>,
    pub clamping: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawStages {
    Word(String),
    Shares(Vec<f64>),
}

fn penalty() -> String {
    "penalty".to_owned()
}

#[derive(Deserialize)]
pub(super) struct RawModel {
    pub kind: String,
    pub outcome: Option<String>,
    pub predictors: Option<Vec<String>>,
    pub intercept: Option<bool>,
    pub sd: Option<f64>,
    pub weight: Option<f64>,
    pub event: Option<String>,
    pub second_outcome: Option<String>,
    pub a: Option<f64>,
    pub tau1: Option<f64>,
    pub tau2: Option<f64>,
    pub power: Option<f64>,
    pub incomplete_rows: Option<bool>,
    pub df: Option<f64>,
    pub offset: Option<String>,
    pub exposure: Option<String>,
}

impl RawModel {
    /// Returns the keys in the file, besides `kind`, `power` and `incomplete_rows`, which every kind accepts.
    pub(super) fn written(&self) -> Vec<&'static str> {
        let all = [
            ("outcome", self.outcome.is_some()),
            ("predictors", self.predictors.is_some()),
            ("intercept", self.intercept.is_some()),
            ("sd", self.sd.is_some()),
            ("weight", self.weight.is_some()),
            ("event", self.event.is_some()),
            ("second_outcome", self.second_outcome.is_some()),
            ("a", self.a.is_some()),
            ("tau1", self.tau1.is_some()),
            ("tau2", self.tau2.is_some()),
            ("df", self.df.is_some()),
            ("offset", self.offset.is_some()),
            ("exposure", self.exposure.is_some()),
        ];
        all.into_iter().filter_map(|(key, written)| written.then_some(key)).collect()
    }
}

#[derive(Deserialize)]
pub(super) struct RawColumn {
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub binary: Option<bool>,
    pub levels: Option<Vec<RawLevel>>,
}

/// A level in the file: a text, or a number that is read as its text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawLevel {
    Text(String),
    Whole(i64),
    Number(f64),
}

impl RawLevel {
    pub(super) fn is_number(&self) -> bool {
        !matches!(self, RawLevel::Text(_))
    }

    pub(super) fn text(&self) -> String {
        match self {
            RawLevel::Text(text) => text.clone(),
            RawLevel::Whole(value) => value.to_string(),
            RawLevel::Number(value) => value.to_string(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct RawInterval {
    pub min: Option<f64>,
    pub max: Option<f64>,
}

#[derive(Deserialize)]
#[serde(default)]
pub(super) struct RawSampler {
    pub chains: Option<i64>,
    pub draws: Option<i64>,
    pub warmup: Option<RawWarmup>,
    pub proposal: Option<RawProposal>,
    pub seed: u64,
    pub locate: Option<String>,
    pub locate_share: Option<f64>,
    pub start: Option<BTreeMap<String, f64>>,
    pub starts: Option<Vec<BTreeMap<String, f64>>>,
    pub records_guess: Option<i64>,
    pub force: Option<bool>,
    pub until: Option<RawUntil>,
    pub step: Option<f64>,
    pub friction: Option<f64>,
    pub test: Option<String>,
    pub refresh: Option<i64>,
    pub correction: Option<f64>,
    pub polish: Option<i64>,
    pub candidates: Option<i64>,
    pub batch: Option<f64>,
}

impl Default for RawSampler {
    fn default() -> Self {
        Self {
            chains: None,
            draws: None,
            warmup: None,
            proposal: None,
            seed: 1,
            locate: None,
            locate_share: None,
            start: None,
            starts: None,
            records_guess: None,
            force: None,
            until: None,
            step: None,
            friction: None,
            test: None,
            refresh: None,
            correction: None,
            polish: None,
            candidates: None,
            batch: None,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct RawUntil {
    pub ess: Option<f64>,
    pub rhat: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawWarmup {
    Sweeps(i64),
    Until { until_rhat: f64, max: i64 },
}

#[derive(Deserialize)]
#[serde(default)]
pub(super) struct RawProposal {
    pub kind: String,
    pub radius: RawRadius,
    pub rotate: bool,
    pub jitter: f64,
}

impl Default for RawProposal {
    fn default() -> Self {
        Self { kind: "guided".to_owned(), radius: RawRadius::Word("auto".to_owned()), rotate: false, jitter: 0.1 }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawRadius {
    Word(String),
    One(f64),
    Each(BTreeMap<String, f64>),
}

#[derive(Deserialize)]
pub(super) struct RawPrivacy {
    pub epsilon: f64,
    pub delta: f64,
    pub noise_sd: Option<AutoOr>,
    pub clip: Option<RawClip>,
    pub clip_watch_share: Option<f64>,
    pub noise_multiplier: Option<f64>,
    pub blocks: Option<i64>,
    pub delta_reserve: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawClip {
    Word(String),
    Value(f64),
    Slope { slope: f64 },
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum AutoOr {
    Word(String),
    Value(f64),
}

#[derive(Deserialize)]
pub(super) struct RawPlan {
    pub records: Option<RawRecords>,
    #[serde(default)]
    pub posterior: BTreeMap<String, RawMoments>,
    pub correlations: Option<Vec<(String, String, f64)>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawRecords {
    All(i64),
    Each(BTreeMap<String, i64>),
}

#[derive(Deserialize)]
pub(super) struct RawMoments {
    pub mean: f64,
    pub sd: f64,
}
