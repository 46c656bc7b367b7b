//! The errors with which a party fails to start or a command fails, and their exit codes.

use conclave_proto::error::Fault;

use crate::config::ConfigError;
use conclave_vault::consent::ConsentError;
use conclave_vault::data::DataError;
use conclave_vault::ledger::LedgerError;

/// The reason why a party can't start or a command fails.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data file.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The owner's decisions.
    #[error(transparent)]
    Consent(#[from] ConsentError),
    /// The identity folder.
    #[error(transparent)]
    Identity(#[from] Fault),
    /// Invalid input on the command line.
    #[error("{0}")]
    Input(String),
    /// The daemon does not run.
    #[error("{0}")]
    NotRunning(String),
    /// A job's published log fails verification.
    #[error(
        "job {job} fails verification ({failed}): do not rely on its result, and ask the coordinator's operator for the reason"
    )]
    NotVerified {
        /// The job.
        job: String,
        /// The checks that fail.
        failed: String,
    },
    /// The reader of standard output has hung up, as `head` does: not an error, but nothing more can be written.
    #[error("standard output was closed")]
    HungUp,
    /// The operating system.
    #[error("{0}")]
    System(String),
}

impl StartError {
    /// Returns the exit code: 2 for faults in the owner's files, 1 for faults of the machine.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Data(_) | Self::Input(_) => 2,
            Self::Ledger(
                LedgerError::Exists(_)
                | LedgerError::Earlier { .. }
                | LedgerError::Missing(_)
                | LedgerError::Foreign { .. }
                | LedgerError::Former(_)
                | LedgerError::Party { .. }
                | LedgerError::Budget { .. }
                | LedgerError::Unit { .. }
                | LedgerError::Secret { .. }
                | LedgerError::NotBehind
                | LedgerError::NoReason
                | LedgerError::Accounting(_),
            ) => 2,
            Self::Consent(e) => {
                if e.is_input() {
                    2
                } else {
                    1
                }
            }
            Self::Identity(fault) => fault.code.exit_code(),
            Self::NotRunning(_) => 4,
            Self::NotVerified { .. } => 3,
            Self::HungUp => 0,
            Self::Ledger(_) | Self::System(_) => 1,
        }
    }
}
