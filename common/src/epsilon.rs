//! An epsilon as people read it: two decimals, or three significant digits below 1. JSON objects and ledgers keep every digit.

/// Least number of decimals, and of significant digits.
const DECIMALS: f64 = 2.0;
/// Below this, and from 10^6 on, an epsilon is written in powers of ten.
const LEAST: f64 = 1e-3;
/// Difference that counts as an error of the computation, and part of an epsilon below 1: 1.2000000001 is shown as 1.20.
const ERROR: f64 = 1e-6;

/// Formats an epsilon that is spent or promised. It is rounded up, so that no reader takes the protection for better than it is.
#[must_use]
pub fn spent(epsilon: f64) -> String {
    rounded(epsilon - error(epsilon), f64::ceil)
}

/// Formats an epsilon that may still be asked for. It is rounded down, so that a job of the shown epsilon is admitted.
#[must_use]
pub fn room(epsilon: f64) -> String {
    rounded(epsilon + error(epsilon), f64::floor)
}

fn error(epsilon: f64) -> f64 {
    ERROR * epsilon.clamp(0.0, 1.0)
}

fn rounded(epsilon: f64, round: fn(f64) -> f64) -> String {
    if !epsilon.is_finite() {
        return "-".to_owned();
    }
    if epsilon == 0.0 {
        return "0".to_owned();
    }
    let size = epsilon.abs();
    let decimals = |size: f64| (DECIMALS - libm::log10(size).floor()).max(DECIMALS);
    if (LEAST..1e6).contains(&size) {
        let steps = libm::pow(10.0, decimals(size));
        let shown = round(epsilon * steps) / steps;
        // Rounding may reach the next power of ten: 0.099999 is shown as 0.100. Bounded by the range, so the conversion is exact.
        let digits = decimals(shown.abs().max(size)) as usize;
        return format!("{shown:.digits$}");
    }
    let unit = libm::pow(10.0, libm::log10(size).floor() - DECIMALS);
    format!("{:.2e}", round(epsilon / unit) * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epsilon_has_two_decimals_or_three_digits() {
        let shown = [0.0, 3.0, 1.2, 24.987_3, 123.456, 0.5, 0.123_45, 0.012_34, 1.234e-5, 2e7].map(spent);
        assert_eq!(shown, ["0", "3.00", "1.20", "24.99", "123.46", "0.500", "0.124", "0.0124", "1.24e-5", "2.00e7"]);
        assert_eq!((spent(12_345.678), room(12_345.678)), ("12345.68".into(), "12345.67".into()));
        // The cost of a job is a little below its budget.
        assert_eq!([0.099_999_99, 0.999_999_9, 9.999_999_9].map(spent), ["0.100", "1.00", "10.00"]);
        assert_eq!([f64::NAN, f64::INFINITY].map(spent), ["-", "-"]);
    }

    /// No spending is shown as less than it is, and no room as more, but for the error of the computation.
    #[test]
    fn spending_is_rounded_up_and_room_down() {
        assert_eq!(
            (spent(1.201), room(1.209), spent(2.999_999_9), room(2.999_999_9)),
            ("1.21".into(), "1.20".into(), "3.00".into(), "3.00".into())
        );
        assert_eq!((spent(1.200_000_000_1), room(1.199_999_999_9), room(7.125)), ("1.20".into(), "1.20".into(), "7.12".into()));
        for step in 1..4000 {
            let epsilon = f64::from(step) * 0.007_3;
            let [up, down] = [spent(epsilon), room(epsilon)].map(|text| text.parse().unwrap_or(f64::NAN));
            let off = 0.01_f64.max(0.01 * epsilon);
            assert!(up >= epsilon * (1.0 - 2e-6) && up < epsilon + off, "{epsilon}: {up}");
            assert!(down <= epsilon * (1.0 + 2e-6) && down > epsilon - off, "{epsilon}: {down}");
        }
    }
}
