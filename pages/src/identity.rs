//! An identity that right draws keep, in words: how far a mean is from what it should be, and its standard error.

use serde_json::Value;

use crate::text::number;

/// A figure that should be 0, with how sure it is.
pub(crate) fn identity(of: &Value) -> String {
    let Some(error) = of["error"].as_f64() else { return "-".to_owned() };
    match of["standard_error"].as_f64() {
        Some(se) if se > 0.0 => format!("{} ({:.1} standard errors)", number(error), error.abs() / se),
        _ => format!("{} (too few steps for a standard error)", number(error)),
    }
}
