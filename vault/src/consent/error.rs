//! Errors of the owner's decisions.

use std::path::{Path, PathBuf};

use super::standing::Standing;

/// A decision that cannot be read, entered or carried out.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// The file is of another kind.
    #[error("{}: is not a file of the owner's decisions; move it away", .0.display())]
    Foreign(PathBuf),
    /// The database failed.
    #[error("{}: {reason}", .file.display())]
    Failed {
        /// The file.
        file: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The id stands for another job.
    #[error("job id {0} stands for another job here: what the owner was shown can't be changed; submit a new job")]
    Changed(String),
    /// Too many jobs wait.
    #[error("{0} jobs wait for the owner's decision already; ask the owner to decide on them")]
    Crowded(u64),
    /// Too many jobs of one analyst wait.
    #[error(
        "{1} jobs of analyst {0} wait for the owner's decision already, and others' are to have room too; ask the owner to decide on them"
    )]
    CrowdedBy(String, u64),
    /// The job's text is too long.
    #[error("the job's text is longer than 256 KiB")]
    TooLong,
    /// No such job.
    #[error("no job {0} was asked of this party; `conclave-party jobs` lists those that were")]
    Unknown(String),
    /// The decision does not fit the job's standing.
    #[error("job {job} is {} and can't be {}{}", .standing.as_str(), .decision.as_str(), hint(*.standing, *.decision))]
    Stands {
        /// The job.
        job: String,
        /// The job's standing.
        standing: Standing,
        /// The intended decision.
        decision: Standing,
    },
}

impl ConsentError {
    pub(super) fn failed(file: &Path, error: &rusqlite::Error) -> Self {
        Self::Failed { file: file.to_owned(), reason: error.to_string() }
    }

    /// Returns true where the owner's input is wrong, and not the machine.
    pub fn is_input(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}

fn hint(standing: Standing, decision: Standing) -> &'static str {
    match (standing, decision) {
        (Standing::Approved, Standing::Rejected) => "; `conclave-party revoke` withdraws a consent",
        (Standing::Awaiting, Standing::Revoked) => "; `conclave-party reject` refuses what was never approved",
        (Standing::Rejected | Standing::Revoked, Standing::Approved) => "; the analyst can submit it again",
        _ => "",
    }
}
