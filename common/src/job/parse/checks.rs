//! Checks shared by several tables of a job file: names, column bounds and numeric limits.

use std::collections::BTreeMap;

use crate::job::error::JobError;
use crate::job::limits::MAX_NAME;
use crate::schema::{ColumnSpec, Family, LifeTable, ModelSpec};
use crate::spelling::nearest;
use crate::text;

/// A known standard deviation, in half widths of the outcome's bounds.
const SCALED_SD: (f64, f64) = (1e-6, 1e6);

/// The largest count. Beyond it the arithmetic loses integers.
const MOST_COUNT: f64 = 1e9;

/// Least declared time, as a share of the greatest. The rounding of scaled values would lose the logarithms of shorter times.
const LEAST_TIME: f64 = 1e-9;

/// Checks a name that the analyst chose, of a job, a column or a level. Owners read it before they consent, so it must contain
/// nothing that acts on a display.
pub(super) fn short(key: &str, name: &str) -> Result<(), JobError> {
    one_line(key, name, MAX_NAME)
}

/// Checks the analyst's words as [`short`] does a name, up to a number of bytes.
pub(super) fn one_line(key: &str, name: &str, most: usize) -> Result<(), JobError> {
    let start = || -> String { name.chars().take(20).collect() };
    if name.len() > most {
        return Err(JobError::new(text::one_line(key), format!("{:?}… is longer than {most} bytes", start())));
    }
    if !text::is_plain(name) {
        let message = format!("{:?}… contains control characters or bidirectional marks", start());
        return Err(JobError::new(text::one_line(key), message));
    }
    Ok(())
}

/// Checks that every key of a table is a parameter of the model or one of `also`.
pub(super) fn known_parameters<'a>(
    table: &str,
    written: impl Iterator<Item = &'a String>,
    names: &[String],
    also: &[&str],
) -> Result<(), JobError> {
    for key in written {
        if !names.contains(key) && !also.contains(&key.as_str()) {
            let hint =
                nearest(key, names.iter().map(String::as_str)).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
            let message = format!("the model has no parameter `{key}`{hint}; it has {}", names.join(", "));
            return Err(JobError::new(format!("{table}.{key}"), message));
        }
    }
    Ok(())
}

/// Returns the value of a key that the model needs.
pub(super) fn required<T>(key: &str, value: Option<T>) -> Result<T, JobError> {
    value.ok_or_else(|| JobError::new(key, "missing; the model needs it"))
}

/// Checks a standard deviation. Beyond these limits the arithmetic on scaled values loses digits.
pub(super) fn check_sd(sd: f64, outcome: &str, column: &ColumnSpec) -> Result<(), JobError> {
    let scaled = sd / column.half_width();
    if (SCALED_SD.0..=SCALED_SD.1).contains(&scaled) {
        return Ok(());
    }
    let message = format!(
        "{sd} is {scaled:e} of the half width of the bounds of `{outcome}`; it must lie between {:e} and {:e}",
        SCALED_SD.0, SCALED_SD.1
    );
    Err(JobError::new("model.sd", message))
}

/// Returns a column's public bounds. `role` is its role in the model.
pub(super) fn bounds<'a>(role: &str, name: &str, columns: &'a BTreeMap<String, ColumnSpec>) -> Result<&'a ColumnSpec, JobError> {
    columns.get(name).ok_or_else(|| {
        let hint =
            nearest(name, columns.keys().map(String::as_str)).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
        let remedy =
            format!("add `{name} = {{ min = …, max = … }}`, `{{ binary = true }}` or `{{ levels = […] }}` under [columns]");
        JobError::new(format!("columns.{name}"), format!("the {role} `{name}` has no public bounds{hint}; {remedy}"))
    })
}

/// Checks that the outcome, and the second column if there is one, are declared as the model requires.
pub(super) fn check_columns(spec: &ModelSpec, columns: &BTreeMap<String, ColumnSpec>) -> Result<(), JobError> {
    let outcome = bounds("outcome", spec.outcome(), columns)?;
    match outcome_fault(spec, outcome) {
        Some(needs) => {
            let message = format!("the outcome of {} must be declared {needs}", spec.kind());
            Err(JobError::new(format!("columns.{}", spec.outcome()), message))
        }
        None => check_second(spec, columns),
    }
}

/// Checks the second column, if a model has one.
fn check_second(spec: &ModelSpec, columns: &BTreeMap<String, ColumnSpec>) -> Result<(), JobError> {
    let (key, name, role, needs, met): (_, _, _, _, fn(&ColumnSpec) -> bool) = match spec {
        ModelSpec::Weibull { event, .. } | ModelSpec::LifeTable(LifeTable { event, .. }) => {
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

/// Returns the declaration that the outcome requires, if it is declared otherwise.
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
        ModelSpec::PiecewiseExponential(_) | ModelSpec::LifeTable(_) => {
            ("{ min = …, max = … } with min at least 0", matches!(outcome, ColumnSpec::Numeric { min, .. } if *min >= 0.0))
        }
        ModelSpec::Multinomial { .. } => {
            ("{ levels = […] } with at least two levels", matches!(outcome, ColumnSpec::Levels(levels) if levels.len() > 1))
        }
        ModelSpec::NaiveBayes { .. } => {
            ("{ levels = […] } or { binary = true }", matches!(outcome, ColumnSpec::Levels(_) | ColumnSpec::Binary))
        }
        ModelSpec::PoissonMean { .. } => ("{ min = …, max = … } with min at least 0 and max at most 1e9", count),
    };
    (!met).then_some(needs)
}
