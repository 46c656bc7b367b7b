//! A ledger with an open job, and a receipt for an answer.
#![allow(clippy::unwrap_used)]
use tempfile::TempDir;

use crate::ledger::*;
use crate::testing::{JOB, budget, entry, key};

/// Creates a ledger with an open job, in a folder of its own.
pub(super) fn opened(durability: Durability) -> (TempDir, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        LedgerSettings { durability, ..LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget()) };
    settings.init().unwrap();
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    ledger.open_job(&entry(JOB, budget())).unwrap();
    (folder, ledger)
}

/// Returns the receipt of a new charge.
pub(super) fn charged(ledger: &mut Ledger, round: u64) -> ChargeReceipt {
    match ledger.charge(JOB, round, &[key(0, 1, 1000)]).unwrap() {
        ChargeOutcome::Granted(mut grants) => match grants.remove(0) {
            Grant::Charged(receipt) => receipt,
            Grant::Answered(_) => panic!("answered before"),
        },
        ChargeOutcome::Refused(refusal) => panic!("{refusal}"),
    }
}
