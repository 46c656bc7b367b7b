//! A [`StartError`] says why a party can't start or a command can't be carried out, and with which exit
//! code it ends.

use conclave_proto::error::Fault;

use crate::config::ConfigError;
use conclave_vault::consent::ConsentError;
use conclave_vault::data::DataError;
use conclave_vault::ledger::LedgerError;

/// Why a party can't start.
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
    /// What the owner asked for on the command line.
    #[error("{0}")]
    Input(String),
    /// The daemon does not run.
    #[error("{0}")]
    NotRunning(String),
    /// A job's published log does not stand up to a check.
    #[error(
        "job {job} does not stand up to a check ({failed}): do not rely on its result, and ask the coordinator's operator why"
    )]
    NotVerified {
        /// The job.
        job: String,
        /// The checks that fail.
        failed: String,
    },
    /// Whoever read standard output has read enough, as `head` does: no error, and nothing more to write.
    #[error("standard output was closed")]
    HungUp,
    /// The operating system.
    #[error("{0}")]
    System(String),
}

impl StartError {
    /// The exit code: 2 where the owner's files are wrong, 1 where the machine is.
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
