//! A replayed job: the results of its log after the last round, and the coordinator's claims about them.

use conclave_common::job::JobSpec;
use conclave_inference::sampler::RunReport;
use conclave_proto::v1::LogHeader;
use serde_json::Value;

use super::answers::End;
use super::check::Check;
use super::drawn::Drawn;

/// The coordinator's claim about a job's end.
pub(super) struct Claim {
    pub(super) state: String,
    /// The result; null if there is none.
    pub(super) result: Value,
}

impl Claim {
    pub(super) fn of(header: &LogHeader) -> Self {
        let result = match header.result_json.as_str() {
            "" => Value::Null,
            // An unreadable result makes no true statement.
            text => serde_json::from_str(text).unwrap_or(Value::Bool(false)),
        };
        Self { state: header.state.clone(), result }
    }

    /// Returns true if the job has ended.
    pub(super) fn over(&self) -> bool {
        matches!(self.state.as_str(), "finished" | "cancelled" | "failed")
    }

    pub(super) fn end(&self) -> End {
        match self.over() {
            false => End::Open,
            true if ["draws", "released", "until"].iter().any(|end| self.result["stopped_by"] == *end) => End::Complete,
            // Chains that plan for their budget end by it at no particular party.
            true if self.result["stopped_by"] == "budget" && self.result["budget_party"].is_null() => End::Complete,
            true => End::Early,
        }
    }
}

/// A completed replay.
pub(super) struct Replayed {
    pub(super) spec: JobSpec,
    pub(super) drawn: Drawn,
    /// The algorithm's report beside its draws; empty if no sampler was started.
    pub(super) report: RunReport,
    /// True if the releases forecast no usable draws.
    pub(super) futility: bool,
    /// True if it ended by its budget as planned.
    pub(super) by_budget: bool,
    pub(super) count: u64,
    /// True if the log was replayed to its last round.
    pub(super) whole: bool,
    pub(super) claim: Claim,
    pub(super) checks: Vec<Check>,
}
