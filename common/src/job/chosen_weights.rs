//! The weights of a job that states none.
//!
//! The meaning of a job without `model.weights` never changes, so that earlier jobs replay identically. The analyst's program writes
//! the choice into a job before it is signed.

use super::algorithm::Algorithm;
use super::edit::{read, with_lines};
use super::spec::JobSpec;

/// The line of the choice.
const CHOSEN: &str = "weights = \"auto\" # chosen: the releases decide if a weighted fit is sharper";

/// The regressions of which a job that states no weights gets some. A negative binomial one takes the weights that a job states: on real data
/// whose law it does not describe, the interval of its weighted fit is too narrow.
const WEIGHTED: [&str; 3] = ["linear", "logistic", "poisson"];

impl JobSpec {
    /// Returns whether the outcome is a count with an exposure or an offset that may depend on it, as a follow-up time does.
    #[must_use]
    pub fn has_open_exposure(&self) -> bool {
        let is_count = matches!(self.model.kind(), "poisson" | "negative_binomial");
        is_count && !self.exposure_fixed && self.model.design().is_some_and(|design| design.offset.is_some())
    }

    /// Returns the text of a job with `model.weights = "auto"` if it is a regression with weights that releases once and states
    /// neither weights nor another strategy; else the text. With an exposure that may depend on the outcome, a count has no weighted fit.
    #[must_use]
    pub fn with_chosen_weights(text: &str) -> String {
        let (Ok(spec), Ok(file)) = (Self::parse(text), read(text)) else { return text.to_owned() };
        let stated = file.get("model").and_then(|model| model.get("weights")).is_some();
        let once = spec.algorithm == Algorithm::NoisyStatistics && WEIGHTED.contains(&spec.model.kind());
        if stated || !once || spec.has_open_exposure() || spec.is_by_table(spec.build_model().as_ref()) {
            return text.to_owned();
        }
        let written = with_lines(text, "model", &[CHOSEN]);
        // A job with stages of its own takes no weights.
        if Self::parse(&written).is_ok() { written } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        for kind in ["poisson", "negative_binomial"] {
            let is_chosen = |text: &str| JobSpec::with_chosen_weights(text).contains("[model]\nweights = \"auto\"");
            assert_eq!(is_chosen(&job(kind, "")), kind == "poisson");
            // An exposure may depend on the outcome, unless the job says that it was fixed.
            let exposed = job(kind, "").replace("[columns]", "exposure = \"e\"\n[columns]\ne = { min = 1, max = 2 }");
            assert_eq!(JobSpec::with_chosen_weights(&exposed), exposed);
            let weighted = |weights: &str| exposed.replace("[columns]\ne", &format!("weights = \"{weights}\"\n[columns]\ne"));
            assert!(JobSpec::parse(&weighted("always")).unwrap_err().to_string().contains("follow-up time"));
            assert!(JobSpec::parse(&weighted("auto")).is_ok());
            let without = JobSpec::parse(&job(kind, "").replace("[columns]", "exposure_fixed = true\n[columns]")).unwrap_err();
            assert!(without.key == "model.exposure_fixed" && without.to_string().contains("the model has none"), "{without}");
            let fixed = exposed.replace("exposure = \"e\"", "exposure = \"e\"\nexposure_fixed = true");
            assert_eq!(is_chosen(&fixed), kind == "poisson");
            assert!(
                JobSpec::parse(&fixed.replace("exposure_fixed = true", "weights = \"always\"\nexposure_fixed = true")).is_ok()
            );
        }
        for text in [never, chain, job("linear", "[release]\nstages = [0.5, 0.5]\n"), "no job".to_owned()] {
            assert_eq!(JobSpec::with_chosen_weights(&text), text);
        }
    }
}
