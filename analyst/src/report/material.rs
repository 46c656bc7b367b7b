//! Inputs of a report.

use conclave_common::job::JobSpec;
use conclave_draws::Draws;
use conclave_proto::v1::JobStatus;
use serde_json::Value;

use super::units::Units;

/// Inputs of a report.
pub(super) struct Material<'a> {
    pub(super) status: &'a JobStatus,
    /// The job file, byte for byte.
    pub(super) source: &'a str,
    pub(super) spec: &'a JobSpec,
    /// The run's object, as `summary --json` prints it.
    pub(super) result: &'a Value,
    /// `None` if the coordinator has none any more.
    pub(super) draws: Option<&'a Draws>,
    /// The units that coefficients stand for.
    pub(super) units: &'a Units,
    /// The digest of the job's log; `None` if the coordinator does not send the whole log.
    pub(super) log: Option<&'a str>,
    /// The coordinator's address.
    pub(super) coordinator: &'a str,
}
