use super::*;
use crate::{Interval, interval_of};
use conclave_inference::diagnostics::summarise;

#[test]
fn a_level_is_a_probability_or_a_percentage() {
    for (text, level) in [("0.95", 0.95), ("95%", 0.95), (" 0.5 ", 0.5), ("99.9 %", 0.999)] {
        assert!(close(text.parse::<Level>().unwrap().get(), level), "{text}");
    }
    let level = |text: &str| text.parse::<Level>().unwrap();
    assert_eq!([level("0.9").few_draws(200), level("0.99").few_draws(2000)], [None, None]);
    assert!(level("0.99").few_draws(1999).unwrap().starts_with("about 10.0 of 1999 draws lie beyond either end"));
    for text in ["", "0", "1", "95", "-0.5", "1.5", "nan", "100%", "0%", "x"] {
        let message = text.parse::<Level>().unwrap_err().to_string();
        assert!(message.contains("between 0 and 1") && message.contains("0.95"), "{text}: {message}");
    }
}

/// At 90% an interval has the bits of a summary's `q5` and `q95`; wider levels contain narrower ones.
#[test]
fn intervals_agree_with_the_summaries_of_results() {
    let draws: Vec<f64> = (0..1013_u32).map(|i| (f64::from(i * 7919 % 1013) / 300.0).exp() - 3.0).collect();
    let summary = summarise(&[&draws[..500], &draws[500..1000]]);
    let of = |level: &str| interval_of(draws[..1000].iter().copied(), level.parse().unwrap());
    assert_eq!(of("0.9"), Interval { low: summary.q5, high: summary.q95 });
    assert_eq!(Level::DEFAULT, "0.9".parse().unwrap());
    let (narrow, wide) = (of("0.5"), of("0.99"));
    assert!(wide.low < summary.q5 && summary.q5 < narrow.low && narrow.high < summary.q95 && summary.q95 < wide.high);
    // Halfway between the 25th and 26th of a thousand and one values: type 7 of Hyndman and Fan.
    let whole = interval_of((0..=1000).map(f64::from), "0.95".parse().unwrap());
    assert!(close(whole.low, 25.0) && close(whole.high, 975.0), "{whole:?}");
    assert!(interval_of([1.0, f64::NAN], Level::DEFAULT).low.is_nan() && interval_of([], Level::DEFAULT).low.is_nan());
}
