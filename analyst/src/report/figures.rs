//! Numbers of the run's object, as they are and as they are shown.

use conclave_pages::table::Cell;
use conclave_pages::text::{number, thousands};
use maud::{Markup, html};
use serde_json::Value;

/// A number of the object as a cell: rounded for people by `show`, with all its digits for programs; a dash for `null`.
pub(super) fn cell(value: &Value, show: impl Fn(f64) -> String) -> Cell {
    match value.as_f64() {
        Some(x) => Cell::Exact { value: value.to_string(), shown: show(x) },
        None => Cell::Number("-".to_owned()),
    }
}

/// The same within a sentence.
pub(super) fn inline(value: &Value, show: impl Fn(f64) -> String) -> Markup {
    match value.as_f64() {
        Some(x) => html! { data value=(value.to_string()) { (show(x)) } },
        None => html! { "-" },
    }
}

/// Four decimals, as the posterior's figures are shown.
pub(super) fn decimals(x: f64) -> String {
    number(x)
}

/// A whole number.
pub(super) fn whole(x: f64) -> String {
    // Counts are below 2^53; an effective sample size is rounded to its nearest.
    if (0.0..9e15).contains(&x) { thousands(x.round() as u64) } else { format!("{x:.0}") }
}

/// Three decimals, as R-hat is shown.
pub(super) fn thousandths(x: f64) -> String {
    format!("{x:.3}")
}

/// A number as it was written in a job file.
pub(super) fn plain(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// The objects of an array.
pub(super) fn rows<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}
