//! Rounding of figures to the digits that their error supports. JSON objects and data elements keep every digit.

use conclave_common::text::figure;
use serde_json::Value;

use crate::text::number;

/// Maximum number of decimals; a figure that needs more is written in powers of ten.
const MOST_DECIMALS: f64 = 9.0;
/// Effective draws that rule out a probability of this many over their number, where none of them lies on its side (the rule of three).
const RULE_OF_THREE: f64 = 3.0;

/// Returns the decimals that show two significant digits of an sd; `None` for an sd that determines none.
#[must_use]
pub fn decimals(sd: f64) -> Option<usize> {
    let needed = 1.0 - libm::log10(sd).floor();
    // Bounded, so the conversion is exact.
    (sd > 0.0 && sd.is_finite() && needed <= MOST_DECIMALS).then(|| needed.max(0.0) as usize)
}

/// Formats a figure of a row by the row's `sd`: means, quantiles and the sd itself have the same decimals.
#[must_use]
pub fn of_row(row: &Value, x: f64) -> String {
    by_sd(x, row["sd"].as_f64().unwrap_or(f64::NAN))
}

/// Formats a figure whose error has this sd; a dash if it is not finite.
#[must_use]
pub fn by_sd(x: f64, sd: f64) -> String {
    match decimals(sd) {
        _ if !x.is_finite() => "-".to_owned(),
        Some(decimals) if x.abs() < 1e7 => without_signed_zero(format!("{x:.decimals$}")),
        _ => number(x),
    }
}

/// Formats a figure without a known error, such as a p-value or a diagnostic, to three significant digits.
#[must_use]
pub fn rough(x: f64) -> String {
    if !x.is_finite() {
        return "-".to_owned();
    }
    figure(format!("{x:.2e}").parse().unwrap_or(x))
}

/// Formats a figure with the decimals that an interval of this width needs, two at least.
#[must_use]
pub fn by_width(x: f64, width: f64) -> String {
    if !x.is_finite() {
        return "-".to_owned();
    }
    if x.abs() >= 1e6 || !width.is_finite() {
        return number(x);
    }
    let decimals = match width {
        width if width >= 1000.0 => 0,
        width if width >= 100.0 => 1,
        width if width > 0.0 => (-libm::log10(width).floor()).clamp(2.0, 6.0) as usize,
        _ => 2,
    };
    without_signed_zero(format!("{x:.decimals$}"))
}

/// Formats a ratio with two significant digits at least, and never as 1 unless it is 1: a bound on the other side of 1 is another result.
#[must_use]
pub fn ratio(x: f64, width: f64) -> String {
    let text = by_width(x, width);
    if !(x > 0.0 && x < 1e6) {
        return text;
    }
    let least = match x {
        x if x >= 100.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 1.0 => 2,
        x => (1.0 - libm::log10(x).floor()).min(MOST_DECIMALS) as usize,
    };
    let of_width = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let at = |decimals: usize| format!("{x:.decimals$}");
    let is_one = |text: &str| text.parse() == Ok(1.0) && x != 1.0;
    let mut decimals = least.max(of_width);
    while decimals < 9 && is_one(&at(decimals)) {
        decimals += 1;
    }
    at(decimals)
}

/// Formats a probability from this many effective draws: to one decimal where its error exceeds 0.05, else to two, and beyond the bound
/// that the draws can resolve as `<0.01` or `>0.99`. An unknown number of draws (`NaN`) has two decimals.
#[must_use]
pub fn probability(p: f64, effective: f64) -> String {
    if !p.is_finite() {
        return "-".to_owned();
    }
    let effective = if effective.is_nan() { f64::INFINITY } else { effective.max(1.0) };
    let decimals = if (p * (1.0 - p) / effective).sqrt() > 0.05 { 1 } else { 2 };
    // The bound is a whole number of hundredths, so that it is no more exact than the probability.
    let bound = ((100.0 * RULE_OF_THREE / effective).ceil() / 100.0).clamp(0.01, 0.5);
    match p {
        p if p < bound && p < 0.5 => format!("<{bound}"),
        p if 1.0 - p < bound && p > 0.5 => format!(">{}", (100.0 * (1.0 - bound)).round() / 100.0),
        p => format!("{p:.decimals$}"),
    }
}

/// Leaves out the sign of a zero.
fn without_signed_zero(text: String) -> String {
    let digits = text.trim_start_matches('-');
    if digits.chars().all(|c| matches!(c, '0' | '.')) { digits.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_two_digits_of_its_sd() {
        let shown = |mean: f64, sd: f64| [by_sd(mean, sd), by_sd(sd, sd)];
        assert_eq!(shown(0.413_27, 0.067_41), ["0.413", "0.067"]);
        assert_eq!(shown(-0.000_3, 0.067_41), ["0.000", "0.067"]);
        assert_eq!(shown(54_321.4, 123.2), ["54321", "123"]);
        assert_eq!(shown(12.3456, 1.0), ["12.3", "1.0"]);
        // No sd determines the decimals of a chain that never moved, and none of the usual ones suffice here.
        assert_eq!([by_sd(0.5, 0.0), by_sd(0.5, f64::NAN), by_sd(1e-11, 3e-12)], ["0.5000", "0.5000", "1.000e-11"]);
        assert_eq!(of_row(&json!({"sd": 0.02}), 0.4126), "0.413");
        assert_eq!(of_row(&json!({}), 0.4126), "0.4126");
    }

    #[test]
    fn a_figure_of_unknown_error_has_three_digits() {
        let shown = [0.0, 10.0, 0.5, 0.412_345, 1234.5, 1.234e-5, -0.056_78].map(rough);
        assert_eq!(shown, ["0", "10", "0.5", "0.412", "1230", "1.23e-5", "-0.0568"]);
        assert_eq!(rough(f64::NAN), "-");
    }

    #[test]
    fn figures_have_the_decimals_that_their_interval_needs() {
        assert_eq!(
            [by_width(0.9634, 0.22), by_width(1.0034, 0.005), by_width(-0.001, 0.3), by_width(-0.25, 0.3)],
            ["0.96", "1.003", "0.00", "-0.25"]
        );
        assert_eq!([by_width(12_345.6, 3_000.0), by_width(f64::NAN, 1.0)], ["12346", "-"]);
        // Ratios keep two digits, and a bound beside 1 is not rounded onto it.
        assert_eq!(
            [
                ratio(35.0, 1500.0),
                ratio(0.8, 1500.0),
                ratio(0.0004, 0.02),
                ratio(0.996, 0.3),
                ratio(1.0, 0.3),
                ratio(0.9634, 0.22)
            ],
            ["35.0", "0.80", "0.00040", "0.996", "1.00", "0.96"]
        );
    }

    /// With 30 effective draws, 3 of 30 is the smallest probability that none of them rules out.
    #[test]
    fn a_probability_has_the_digits_of_its_draws() {
        let many = |p: f64| probability(p, 4000.0);
        assert_eq!([0.0, 0.004, 0.29, 0.994, 0.996, 1.0].map(many), ["<0.01", "<0.01", "0.29", ">0.99", ">0.99", ">0.99"]);
        let few = |p: f64| probability(p, 30.0);
        assert_eq!([0.0, 0.09, 0.29, 0.5, 0.95, 1.0].map(few), ["<0.1", "<0.1", "0.3", "0.5", ">0.9", ">0.9"]);
        let some = |p: f64| probability(p, 60.0);
        assert_eq!([0.0, 0.04, 0.12, 0.5, 1.0].map(some), ["<0.05", "<0.05", "0.12", "0.5", ">0.95"]);
        assert_eq!([probability(0.0, f64::NAN), probability(f64::NAN, 1.0), probability(0.3, 0.0)], ["<0.01", "-", "<0.5"]);
    }
}
