//! How exactly proposals were decided by Barker's test: the object `barker` of a result, in words.

use serde_json::Value;

use crate::text::{number, percent};

/// What there is to say in sentences; `None` of a result without.
#[must_use]
pub fn told(result: &Value) -> Option<String> {
    let of = &result["barker"];
    let figure = |key: &str| of[key].as_f64();
    let (correction, error) = (figure("correction")?, figure("sup_error")?);
    let (wider, noise) = (figure("variance_small_steps")?, figure("noise_variance")?);
    let mut words = format!(
        "A step is taken by a noisy Barker test with correction {correction}: nearly, not exactly. The probability of taking a step is within {error:.1e} of one that \
         is exact, and by short steps posterior variances come out {:.1}% wider. Of the test’s noise variance of {correction} the owners’ noise makes {}.",
        100.0 * (wider - 1.0),
        number(noise)
    );
    if let Some(assumed) = figure("sampling_variance_assumed") {
        words += &format!(
            " Each answer is made of a hidden sample of {} of the records, whose variance of {} at most is assumed from the search’s curvature, not \
             known: if the true one is greater by e, posterior precisions come out at about 1 - e/4 of theirs.",
            percent(figure("batch").unwrap_or(f64::NAN)),
            number(assumed)
        );
        let checked = |key: &str| of["checked"][key].as_f64();
        if let (Some(looks), Some(ratio), Some(error)) = (checked("looks"), checked("ratio"), checked("standard_error")) {
            words +=
                &format!(" By {looks} noisy sums of the records’ squares it is {ratio:.2} ± {error:.2} times what was assumed.");
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_inexact_is_told_in_words() {
        assert_eq!(told(&json!({"posterior": []})), None);
        let of = |assumed: Value| {
            told(&json!({"barker": {"correction": 2.0, "sup_error": 5.874e-4, "acceptance_at_zero": 0.5, "variance_small_steps": 1.00604,
                "noise_variance": 1.9999, "batch": 0.3, "sampling_variance_assumed": assumed}}))
            .unwrap()
        };
        let whole = of(Value::Null);
        assert!(whole.contains("5.9e-4") && whole.contains("0.6%") && !whole.contains("sample"), "{whole}");
        assert!(of(json!(0.5)).contains("assumed from the search’s curvature") && !of(json!(0.5)).contains("noisy sums"));
        let checked = told(
            &json!({"barker": {"correction": 2.0, "sup_error": 5.874e-4, "variance_small_steps": 1.00604, "noise_variance": 1.9999,
            "batch": 0.3, "sampling_variance_assumed": 0.5, "checked": {"looks": 50, "ratio": 1.904, "standard_error": 0.07}}}),
        );
        assert!(checked.unwrap().contains("By 50 noisy sums of the records’ squares it is 1.90 ± 0.07 times"));
    }
}
