//! The weights of a job that states none.
//!
//! The meaning of a job without `model.weights` never changes, so that earlier jobs replay identically. The analyst's program writes
//! the choice into a job before it is signed.

use super::algorithm::Algorithm;
use super::edit::{read, with_lines};
use super::spec::JobSpec;

/// The line of the choice.
const CHOSEN: &str = "weights = \"auto\" # chosen: the releases decide if a weighted fit is sharper";

impl JobSpec {
    /// Returns the text of a job with `model.weights = "auto"` if it is a linear or logistic regression that releases once and
    /// states neither weights nor another strategy; else the text.
    #[must_use]
    pub fn with_chosen_weights(text: &str) -> String {
        let (Ok(spec), Ok(file)) = (Self::parse(text), read(text)) else { return text.to_owned() };
        let stated = file.get("model").and_then(|model| model.get("weights")).is_some();
        let once = spec.algorithm == Algorithm::NoisyStatistics && matches!(spec.model.kind(), "linear" | "logistic");
        if stated || !once || spec.is_by_table(spec.build_model().as_ref()) {
            return text.to_owned();
        }
        let written = with_lines(text, "model", &[CHOSEN]);
        // A job with stages of its own takes no weights.
        if Self::parse(&written).is_ok() { written } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(kind: &str, more: &str) -> String {
        format!(
            "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\npredictors = [\"x\"]\n\
             [columns]\ny = {{ min = 0, max = 9 }}\nx = {{ min = 0, max = 9 }}\n[privacy]\nepsilon = 1\ndelta = 1e-6\n{more}"
        )
    }

    #[test]
    fn a_regression_that_states_no_weights_gets_auto() {
        let written = JobSpec::with_chosen_weights(&job("linear", ""));
        assert!(written.contains("[model]\nweights = \"auto\""), "{written}");
        assert_eq!(JobSpec::with_chosen_weights(&written), written);
        let binary = job("logistic", "").replace("y = { min = 0, max = 9 }", "y = { binary = true }");
        assert!(JobSpec::with_chosen_weights(&binary).contains("weights = \"auto\""));
        // By a table, nothing is learnt.
        let by_table = binary.replace("x = { min = 0, max = 9 }", "x = { binary = true }");
        assert_eq!(JobSpec::with_chosen_weights(&by_table), by_table);
        let never = job("linear", "").replace("[columns]", "weights = \"never\"\n[columns]");
        let chain = job("linear", "").replace("\"auto\"", "\"penalty\"");
        for text in [never, chain, job("poisson", ""), job("linear", "[release]\nstages = [0.5, 0.5]\n"), "no job".to_owned()] {
            assert_eq!(JobSpec::with_chosen_weights(&text), text);
        }
    }
}
