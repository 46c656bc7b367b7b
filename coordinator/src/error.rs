//! Errors that stop the daemon.

use std::process::ExitCode;

/// Reason why the coordinator did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration, the identity folder or the command line is wrong: exit code 2.
    #[error("{0}")]
    Input(String),
    /// The machine failed (a port in use, a full disk, a locked store): exit code 1.
    #[error("{0}")]
    System(String),
}

impl RunError {
    /// Exit code of the process.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::System(_) => ExitCode::from(1),
        }
    }
}
