//! An identity that holds for correct draws, in words: the deviation of a mean from its expected value, and its standard error.

use serde_json::Value;

use crate::precision::{by_sd, rough};

/// Formats a figure that should be 0, with its distance from 0 in standard errors.
pub(crate) fn identity(of: &Value) -> String {
    let Some(error) = of["error"].as_f64() else { return "-".to_owned() };
    match of["standard_error"].as_f64() {
        Some(se) if se > 0.0 => format!("{} ({:.1} standard errors)", by_sd(error, se), error.abs() / se),
        _ => format!("{} (too few steps for a standard error)", rough(error)),
    }
}
