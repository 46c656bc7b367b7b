//! The exactness of Barker's test: the object `barker` of a result, in words.

use serde_json::Value;

use crate::precision::rough;
use crate::text::percent;

/// Returns a paragraph on the test's errors; `None` for a result without the object.
#[must_use]
pub fn summary(result: &Value) -> Option<String> {
    let of = &result["barker"];
    let figure = |key: &str| of[key].as_f64();
    let (correction, error) = (figure("correction")?, figure("sup_error")?);
    let (wider, noise) = (figure("variance_small_steps")?, figure("noise_variance")?);
    let mut words = format!(
        "Steps are accepted by a noisy Barker test with correction {correction}, which is approximate: the acceptance probability is within {error:.1e} of \
         an exact one, and with short steps posterior variances are {:.1}% larger. The owners’ noise contributes {} of the test’s noise variance of \
         {correction}.",
        100.0 * (wider - 1.0),
        rough(noise)
    );
    if let Some(assumed) = figure("sampling_variance_assumed") {
        words += &format!(
            " Each answer uses a hidden subsample of {} of the records. The subsample’s variance of at most {} is assumed from the search’s curvature, \
             not known: if the true variance is larger by e, posterior precisions are about 1 - e/4 times the right ones.",
            percent(figure("batch").unwrap_or(f64::NAN)),
            rough(assumed)
        );
        let checked = |key: &str| of["checked"][key].as_f64();
        if let (Some(looks), Some(ratio), Some(error)) = (checked("looks"), checked("ratio"), checked("standard_error")) {
            words += &format!(
                " By {looks} noisy sums of the records’ squares, it is {ratio:.2} ± {error:.2} times the assumed variance."
            );
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
    fn the_errors_are_stated_in_words() {
        assert_eq!(summary(&json!({"posterior": []})), None);
        let of = |assumed: Value| {
            summary(&json!({"barker": {"correction": 2.0, "sup_error": 5.874e-4, "acceptance_at_zero": 0.5, "variance_small_steps": 1.00604,
                "noise_variance": 1.9999, "batch": 0.3, "sampling_variance_assumed": assumed}}))
            .unwrap()
        };
        let whole = of(Value::Null);
        assert!(whole.contains("5.9e-4") && whole.contains("0.6%") && !whole.contains("sample"), "{whole}");
        assert!(of(json!(0.5)).contains("assumed from the search’s curvature") && !of(json!(0.5)).contains("noisy sums"));
        let checked = summary(
            &json!({"barker": {"correction": 2.0, "sup_error": 5.874e-4, "variance_small_steps": 1.00604, "noise_variance": 1.9999,
            "batch": 0.3, "sampling_variance_assumed": 0.5, "checked": {"looks": 50, "ratio": 1.904, "standard_error": 0.07}}}),
        );
        assert!(checked.unwrap().contains("By 50 noisy sums of the records’ squares, it is 1.90 ± 0.07 times"));
    }
}
