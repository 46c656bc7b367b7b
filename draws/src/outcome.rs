//! The driver's record of a finished run.

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_inference::sampler::RunReport;
use serde::Serialize;

use crate::spent::Spent;

/// The reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoppedBy {
    /// All draws were made.
    Draws,
    /// A party's budget was exhausted.
    Budget,
    /// The analyst cancelled the job.
    Cancelled,
    /// A party's owner withdrew consent, or a limit of the owner was reached.
    Policy,
    /// The clip watch found that an explicit clip cuts the ratios of too many records.
    Clip,
    /// All planned releases were made.
    Released,
    /// The draws reached the job's target before all were made.
    Until,
    /// A forecast showed that even the whole budget would yield no usable draws.
    Futility,
    /// An error occurred, which the job's error states. The draws made before it are valid.
    Failure,
}

impl StoppedBy {
    /// Returns the reason for a run's regular end, with `kept` draws per chain. `by_budget` is true if the sampler reports an
    /// exhausted budget.
    #[must_use]
    pub fn regular_end(spec: &JobSpec, kept: u64, by_budget: bool) -> Self {
        match spec.sampler.until {
            _ if by_budget => Self::Budget,
            _ if !spec.algorithm.proposes() => Self::Released,
            Some(_) if kept < spec.sampler.draws => Self::Until,
            _ => Self::Draws,
        }
    }
}

/// The driver's record of a finished run, without the draws.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The reason for the end.
    pub stopped_by: StoppedBy,
    /// The party whose budget ended the run.
    pub budget_party: Option<String>,
    /// Number of rounds, each over all chains.
    pub iterations: u64,
    /// Seconds from the first query to the last draw.
    pub seconds: f64,
    /// The job whose releases these draws reuse, for a refit without queries.
    pub refit_of: Option<String>,
    /// Warnings from the run that the draws do not show.
    pub warnings: Vec<String>,
    /// The algorithm's report beside the draws.
    pub report: RunReport,
    /// Parties in the job's order.
    pub parties: Vec<PartyOutcome>,
}

/// A party's part of the outcome.
#[derive(Debug, Clone)]
pub struct PartyOutcome {
    /// Name.
    pub name: String,
    /// The party's public metadata; `None` if it never opened the job.
    pub metadata: Option<PartyMetadata>,
    /// The job's cost at the party.
    pub spent: Spent,
}
