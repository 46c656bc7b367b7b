//! `algorithm = "penalty"`: chains on noisy log likelihood ratios.

use super::declaration::{Declaration, Parsing, Summand};
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;

pub(super) struct Penalty;

impl Declaration for Penalty {
    fn as_str(&self) -> &'static str {
        "penalty"
    }

    fn asks(&self, kind: QueryKind) -> bool {
        matches!(kind, QueryKind::Ratio | QueryKind::ClipCount)
    }

    fn releases(&self, spec: &JobSpec) -> Vec<&'static str> {
        if spec.locates_by_gradients() { vec!["score", "ratio"] } else { vec!["ratio"] }
    }

    fn walks_on_ratios(&self) -> bool {
        true
    }

    fn own_keys(&self) -> &'static [&'static str] {
        &["locate"]
    }

    fn summand(&self, spec: &JobSpec) -> Summand {
        if !spec.locates_by_gradients() {
            return Summand::RATIO;
        }
        let what = "the slope or the curvature of the log likelihood at a setting of the model, or of how much better one setting explains a record \
                    than another";
        Summand { what, fits_any_model: true }
    }
}

impl Parsing for Penalty {}
