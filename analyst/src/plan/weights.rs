//! The expected error of a regression that may weight its records, with weights and without.

use conclave_common::job::{JobSpec, Weights};
use conclave_inference::planner::{self, Range};
use serde::Serialize;

/// The expected errors, in posterior sds without privacy of the fit that is asked for.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ErrorByWeights {
    never: Range,
    always: Range,
}

impl ErrorByWeights {
    /// Returns the expected errors; `None` for a job that weights no record or releases one table, and where one of them is unknown.
    pub(super) fn of(spec: &JobSpec, records: &[u64]) -> Option<Self> {
        if spec.weights == Weights::Never || spec.is_by_table(spec.build_model().as_ref()) {
            return None;
        }
        let error = |weights| {
            let rows = planner::compare(&JobSpec { weights, ..spec.clone() }, records, &[]).ok()?;
            rows.iter().find(|row| row.algorithm == spec.algorithm.as_str())?.expected_error
        };
        Some(Self { never: error(Weights::Never)?, always: error(Weights::Always)? })
    }

    /// Formats them as a paragraph that follows the plan.
    pub(super) fn text(&self, spec: &JobSpec) -> String {
        let range = |Range { best, worse }: Range| format!("{best:.2} to {worse:.2}");
        let rule = match spec.weights {
            Weights::Auto => "The releases choose \"never\" where its noise is at most half a posterior sd, or hardly larger.",
            _ => "Where the model does not hold, a weighted fit estimates something else than a plain one.",
        };
        format!("\n\nError by model.weights: \"never\" {}, \"always\" {}. {rule}", range(self.never), range(self.always))
    }
}
