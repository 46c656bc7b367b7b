//! Numbers of the run's object, exact and rounded.

use conclave_pages::table::Cell;
use conclave_pages::text::{number, thousands};
use maud::{Markup, html};
use serde_json::Value;

/// Formats a number of the object as a cell: rounded by `show` for people, with all digits for programs; a dash for `null`.
pub(super) fn cell(value: &Value, show: impl Fn(f64) -> String) -> Cell {
    match value.as_f64() {
        Some(x) => Cell::Exact { value: value.to_string(), shown: show(x) },
        None => Cell::Number("-".to_owned()),
    }
}

/// Formats a number of the object within a sentence.
pub(super) fn inline(value: &Value, show: impl Fn(f64) -> String) -> Markup {
    match value.as_f64() {
        Some(x) => html! { data value=(value.to_string()) { (show(x)) } },
        None => html! { "-" },
    }
}

/// Formats four decimals, as for the posterior.
pub(super) fn decimals(x: f64) -> String {
    number(x)
}

/// Formats a whole number.
pub(super) fn whole(x: f64) -> String {
    // Counts are below 2^53; an effective sample size is rounded to the nearest integer.
    if (0.0..9e15).contains(&x) { thousands(x.round() as u64) } else { format!("{x:.0}") }
}

/// Formats three decimals, as for R-hat.
pub(super) fn thousandths(x: f64) -> String {
    format!("{x:.3}")
}

/// Formats a number as in a job file.
pub(super) fn plain(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// Returns the objects of an array.
pub(super) fn rows<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a text.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}
