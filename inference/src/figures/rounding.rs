//! Figures of advice: a remedy is stated as it is checked, rounded to the side on which it suffices.

/// Returns the least number with one decimal that is not below `x`; `x` itself if it is not finite or has no decimals.
#[must_use]
pub fn rounded_up(x: f64) -> f64 {
    /// Number from which floats with one decimal are rounded themselves.
    const WHOLE: f64 = 1e14;
    if x.abs() >= WHOLE || !x.is_finite() { x } else { (10.0 * x).ceil() / 10.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_not_less_than_what_it_stands_for() {
        for (x, up) in [(1.5, 1.5), (1.500001, 1.6), (0.03, 0.1), (0.3, 0.3), (-0.25, -0.2), (1e15, 1e15)] {
            assert_eq!(rounded_up(x), up);
            assert!(rounded_up(x) >= x && format!("{up:.1}").parse() == Ok(up), "{x}");
        }
        assert!(rounded_up(f64::NAN).is_nan() && rounded_up(f64::INFINITY).is_infinite());
    }
}
