//! `[model]`: which model, on which columns.

use std::collections::BTreeMap;

use super::{regression, required};
use crate::job::keys::nearest;
use crate::job::raw::RawModel;
use crate::job::{ColumnSpec, Family, JobError, ModelSpec, model_spec};

/// A known standard deviation, in half widths of the outcome's bounds.
const SCALED_SD: (f64, f64) = (1e-6, 1e6);

/// The greatest count: beyond it the arithmetic loses whole numbers.
const MOST_COUNT: f64 = 1e9;

/// Least power on the likelihood: below it a posterior is a prior whatever the data are.
const LEAST_POWER: f64 = 1e-6;
/// Least declared time, as a share of the greatest: logarithms of shorter ones are lost in the rounding of scaled values.
const LEAST_TIME: f64 = 1e-9;
/// Least weight of a mixture's component.
const LEAST_WEIGHT: f64 = 1e-6;
/// Greatest magnitude of the banana's known constants, and reciprocal of its least precision.
const MOST_CONSTANT: f64 = 1e12;

/// The keys that each kind takes, besides `power`.
const TAKES: &[(&str, &[&str])] = &[
    ("logistic", &["outcome", "predictors", "intercept", "offset"]),
    ("linear", &["outcome", "predictors", "intercept", "offset", "sd"]),
    ("poisson", &["outcome", "predictors", "intercept", "offset", "exposure"]),
    ("negative_binomial", &["outcome", "predictors", "intercept", "offset", "exposure"]),
    ("student_t", &["outcome", "predictors", "intercept", "offset", "df"]),
    ("gaussian_mean", &["outcome", "sd"]),
    ("bernoulli", &["outcome"]),
    ("poisson_mean", &["outcome"]),
    ("multinomial", &["outcome"]),
    ("gaussian_mixture", &["outcome", "sd", "weight"]),
    ("weibull", &["outcome", "event"]),
    ("banana", &["outcome", "second_outcome", "a", "tau1", "tau2"]),
];

pub(super) fn model(raw: RawModel, columns: &BTreeMap<String, ColumnSpec>) -> Result<ModelSpec, JobError> {
    check_keys(&raw)?;
    let outcome = required("model.outcome", raw.outcome.clone())?;
    let spec = match raw.kind.as_str() {
        "logistic" | "linear" | "poisson" | "negative_binomial" | "student_t" => {
            return regression::regression(raw, columns).map(ModelSpec::Regression);
        }
        "bernoulli" => ModelSpec::Bernoulli { outcome },
        "poisson_mean" => ModelSpec::PoissonMean { outcome },
        "gaussian_mean" => ModelSpec::GaussianMean { outcome, sd: required("model.sd", raw.sd)? },
        "multinomial" => ModelSpec::Multinomial { levels: levels(&outcome, columns), outcome },
        "gaussian_mixture" => ModelSpec::GaussianMixture {
            outcome,
            sd: required("model.sd", raw.sd)?,
            weight: within("model.weight", raw.weight.unwrap_or(0.5), LEAST_WEIGHT, 1.0 - LEAST_WEIGHT)?,
        },
        "weibull" => ModelSpec::Weibull { outcome, event: required("model.event", raw.event)? },
        "banana" => ModelSpec::Banana {
            outcome,
            second_outcome: required("model.second_outcome", raw.second_outcome)?,
            bend: within("model.a", required("model.a", raw.a)?, -MOST_CONSTANT, MOST_CONSTANT)?,
            precision: [precision("model.tau1", raw.tau1)?, precision("model.tau2", raw.tau2)?],
        },
        kind => return Err(unknown(kind)),
    };
    check_columns(&spec, columns)?;
    if let (ModelSpec::GaussianMean { sd, .. } | ModelSpec::GaussianMixture { sd, .. }, Some(column)) =
        (&spec, columns.get(spec.outcome()))
    {
        check_sd("model.sd", *sd, spec.outcome(), column)?;
    }
    Ok(spec)
}

/// The power on the likelihood.
pub(super) fn power(raw: &RawModel) -> Result<f64, JobError> {
    let power = raw.power.unwrap_or(1.0);
    if (LEAST_POWER..=1.0).contains(&power) {
        return Ok(power);
    }
    let message = format!("must lie between {LEAST_POWER:e} and 1 (1 leaves the likelihood as it is), not {power}");
    Err(JobError::new("model.power", message))
}

fn within(key: &str, value: f64, least: f64, greatest: f64) -> Result<f64, JobError> {
    if (least..=greatest).contains(&value) {
        return Ok(value);
    }
    Err(JobError::new(key, format!("must lie between {least:e} and {greatest:e}, not {value}")))
}

fn precision(key: &str, written: Option<f64>) -> Result<f64, JobError> {
    within(key, required(key, written)?, MOST_CONSTANT.recip(), MOST_CONSTANT)
}

/// The levels of an outcome, none where it has no levels: [`check_columns`] finds that.
fn levels(outcome: &str, columns: &BTreeMap<String, ColumnSpec>) -> Vec<String> {
    match columns.get(outcome) {
        Some(ColumnSpec::Levels(levels)) => levels.clone(),
        _ => Vec::new(),
    }
}

fn unknown(kind: &str) -> JobError {
    let known = model_spec::BUILT.join(", ");
    let hint = nearest(kind, model_spec::BUILT.iter().copied()).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
    JobError::new("model.kind", format!("unknown model `{kind}`{hint}; known are {known}"))
}

/// A kind takes its own keys and no other's: a key that is not read would leave its writer believing that it was.
fn check_keys(raw: &RawModel) -> Result<(), JobError> {
    let (_, takes) = TAKES.iter().find(|(kind, _)| *kind == raw.kind).ok_or_else(|| unknown(&raw.kind))?;
    match raw.written().into_iter().find(|key| !takes.contains(key)) {
        None => Ok(()),
        Some(key) => Err(JobError::new(format!("model.{key}"), format!("the model `{}` does not take it", raw.kind))),
    }
}

/// Beyond these, the arithmetic on scaled values loses its digits.
pub(super) fn check_sd(key: &str, sd: f64, outcome: &str, column: &ColumnSpec) -> Result<(), JobError> {
    if !(sd.is_finite() && sd > 0.0) {
        return Err(JobError::new(key, format!("the known standard deviation must be positive, not {sd}")));
    }
    let scaled = sd / column.half_width();
    if (SCALED_SD.0..=SCALED_SD.1).contains(&scaled) {
        return Ok(());
    }
    let message = format!(
        "{sd} is {scaled:e} of the half width of the bounds of `{outcome}`; between {:e} and {:e} can be computed",
        SCALED_SD.0, SCALED_SD.1
    );
    Err(JobError::new(key, message))
}

/// A column's public bounds; `role` is its part in the model.
pub(super) fn bounds<'a>(role: &str, name: &str, columns: &'a BTreeMap<String, ColumnSpec>) -> Result<&'a ColumnSpec, JobError> {
    columns.get(name).ok_or_else(|| {
        let hint =
            nearest(name, columns.keys().map(String::as_str)).map(|n| format!(" (`{n}` has; a slip?)")).unwrap_or_default();
        let remedy =
            format!("add `{name} = {{ min = …, max = … }}`, `{{ binary = true }}` or `{{ levels = […] }}` under [columns]");
        JobError::new(format!("columns.{name}"), format!("the {role} `{name}` has no public bounds{hint}; {remedy}"))
    })
}

fn check_columns(spec: &ModelSpec, columns: &BTreeMap<String, ColumnSpec>) -> Result<(), JobError> {
    let outcome = bounds("outcome", spec.outcome(), columns)?;
    match outcome_fault(spec, outcome) {
        Some(needs) => {
            let message = format!("the outcome of {} must be declared {needs}", spec.kind());
            Err(JobError::new(format!("columns.{}", spec.outcome()), message))
        }
        None => check_second(spec, columns),
    }
}

/// The column beside the outcome, where a model has one.
fn check_second(spec: &ModelSpec, columns: &BTreeMap<String, ColumnSpec>) -> Result<(), JobError> {
    let (key, name, role, needs, met): (_, _, _, _, fn(&ColumnSpec) -> bool) = match spec {
        ModelSpec::Weibull { event, .. } => {
            ("model.event", event, "event", "{ binary = true }", |c| matches!(c, ColumnSpec::Binary))
        }
        ModelSpec::Banana { second_outcome, .. } => {
            ("model.second_outcome", second_outcome, "second outcome", "{ min = …, max = … }", |c| {
                matches!(c, ColumnSpec::Numeric { .. })
            })
        }
        _ => return Ok(()),
    };
    if name == spec.outcome() {
        return Err(JobError::new(key, format!("column `{name}` is the outcome already")));
    }
    if met(bounds(role, name, columns)?) {
        return Ok(());
    }
    Err(JobError::new(format!("columns.{name}"), format!("the {role} of {} must be declared {needs}", spec.kind())))
}

/// What the outcome must be declared as, where it is declared otherwise.
pub(super) fn outcome_fault(spec: &ModelSpec, outcome: &ColumnSpec) -> Option<&'static str> {
    let numeric = matches!(outcome, ColumnSpec::Numeric { .. });
    let count = matches!(outcome, ColumnSpec::Numeric { min, max } if *min >= 0.0 && *max <= MOST_COUNT);
    let (needs, met) = match spec {
        ModelSpec::Regression(regression) => match regression.family {
            Family::Logistic => ("{ binary = true }", matches!(outcome, ColumnSpec::Binary)),
            Family::Linear { .. } | Family::StudentT { .. } => ("{ min = …, max = … }", numeric),
            Family::Poisson | Family::NegativeBinomial => ("{ min = …, max = … } with min at least 0 and max at most 1e9", count),
        },
        ModelSpec::Bernoulli { .. } => ("{ binary = true }", matches!(outcome, ColumnSpec::Binary)),
        ModelSpec::GaussianMean { .. } | ModelSpec::GaussianMixture { .. } | ModelSpec::Banana { .. } => {
            ("{ min = …, max = … }", numeric)
        }
        ModelSpec::Weibull { .. } => {
            let times = |min: f64, max: f64| min > 0.0 && min >= LEAST_TIME * max;
            (
                "{ min = …, max = … } with min above 0, at least 1e-9 of max",
                matches!(outcome, ColumnSpec::Numeric { min, max } if times(*min, *max)),
            )
        }
        ModelSpec::Multinomial { .. } => {
            ("{ levels = […] } with at least two levels", matches!(outcome, ColumnSpec::Levels(levels) if levels.len() > 1))
        }
        ModelSpec::PoissonMean { .. } => ("{ min = …, max = … } with min at least 0 and max at most 1e9", count),
    };
    (!met).then_some(needs)
}
