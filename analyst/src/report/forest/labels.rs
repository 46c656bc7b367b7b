//! The labels of a forest plot's rows.

use conclave_common::job::JobSpec;
use conclave_common::schema::{ColumnSpec, Factor, Feature};

use crate::report::units::{Units, is_of_spline};

/// Returns the label of a coefficient, and the number of units that it stands for.
pub(super) fn coefficient(spec: &JobSpec, units: &Units, feature: &Feature) -> (String, f64) {
    let is_binary = |factor: &Factor| matches!(spec.columns.get(&factor.column), Some(ColumnSpec::Binary));
    let numeric: Vec<&Factor> = feature.factors.iter().filter(|factor| factor.level.is_none() && !is_binary(factor)).collect();
    let scale = numeric.iter().map(|factor| units.number(&factor.column)).product();
    let name = |factor: &Factor| match factor.level {
        Some(at) => format!("{} = {}", factor.column, level(spec, &factor.column, at)),
        None => factor.column.clone(),
    };
    let names: Vec<String> = feature.factors.iter().map(name).collect();
    let per = match numeric[..] {
        // The coefficient of one term of a spline stands for no number of units.
        [..] if numeric.iter().any(|factor| is_of_spline(&factor.column)) => String::new(),
        [] if feature.factors.len() == 1 && is_binary(&feature.factors[0]) => ", 1 against 0".to_owned(),
        [] => String::new(),
        [factor] => format!(", per {}", units.words(&factor.column)),
        _ => format!(", per {}", numeric.iter().map(|factor| units.words(&factor.column)).collect::<Vec<_>>().join(" × ")),
    };
    (names.join(" × ") + &per, scale)
}

/// Returns the name of a column's level.
pub(super) fn level(spec: &JobSpec, column: &str, at: usize) -> String {
    let levels = if let Some(ColumnSpec::Levels(levels)) = spec.columns.get(column) { levels.get(at) } else { None };
    levels.cloned().unwrap_or_else(|| format!("level {}", at + 1))
}

/// Returns the name of a factor's reference level: the one level without a coefficient.
pub(super) fn reference(spec: &JobSpec, column: &str, features: &[&Feature]) -> Option<String> {
    let Some(ColumnSpec::Levels(levels)) = spec.columns.get(column) else { return None };
    let has_coefficient =
        |at: usize| features.iter().any(|feature| feature.factors.iter().any(|factor| factor.level == Some(at)));
    (0..levels.len()).find(|at| !has_coefficient(*at)).map(|at| level(spec, column, at))
}
