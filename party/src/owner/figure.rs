//! Formatting of figures for owners.

/// Formats a number with at most six significant digits.
pub(crate) fn figure(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) {
        let digits = 5 - (x.abs().max(1e-3).log10().floor() as i32).clamp(-3, 5);
        let text = format!("{x:.*}", digits as usize);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_keep_their_digits() {
        for (x, shown) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.001, "0.001"),
            (1.234_567_89, "1.23457"),
            (123_456.7, "123457"),
            (100.0, "100"),
            (1e-6, "1e-6"),
            (2e7, "2e7"),
            (-0.5, "-0.5"),
        ] {
            assert_eq!(figure(x), shown);
        }
    }
}
