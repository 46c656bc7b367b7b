//! The faults of a ledger as the coordinator sees them, and the bound of what is quoted.

use conclave_proto::error::{ErrorCode, Fault};

use crate::ledger::LedgerError;

/// The longest job id; a UUID has 36 characters.
pub const MAX_JOB_ID: usize = 64;

/// Returns the refusal of a job that its permit does not cover, with what its analyst can do. The consent stays.
#[must_use]
pub fn lapsed(party: &str, why: &str) -> Fault {
    let remedy = match why.starts_with("permit_expired:") {
        true => "ask the owner for a new permit, then submit the job again, or continue from its draws with `conclave extend`",
        false => "ask the owner",
    };
    Fault::new(ErrorCode::Revoked, format!("the owner of {party} no longer answers this job: {why}; {remedy}"))
}

/// Returns the fault by which a job is refused for this error of the ledger.
pub(super) fn ledger_fault(error: LedgerError) -> Fault {
    match error {
        LedgerError::Job(message) => Fault::new(ErrorCode::Conflict, message),
        // Nothing is wrong with the job: it waits until the owner has repaired this.
        LedgerError::Behind { .. } => {
            let message = "its ledger is behind what it has answered: its owner has to restore or unlock it";
            Fault::new(ErrorCode::Unreachable, message)
        }
        LedgerError::Data(_) => {
            Fault::new(ErrorCode::Unreachable, "its data have changed: its owner has to put them back or confirm the refresh")
        }
        LedgerError::Accounting(e) => Fault::new(ErrorCode::InvalidInput, format!("[privacy]: {e}")),
        // Nothing is wrong with the job here either. Only the owner may know what failed; the log has it.
        _ => Fault::new(ErrorCode::Unreachable, "the ledger has failed: its owner has to repair that and start the party again"),
    }
}
