//! Formatting of figures for owners.

pub(crate) use conclave_common::text::figure;

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
