//! Tests of the views, over ledgers that the vault writes.
#![allow(clippy::unwrap_used)]

mod blocks;
mod charging;
mod conversion;
mod exports;
mod figures;
mod masked;
#[cfg(unix)]
mod place;
mod releases_view;
mod reserve;
mod reserved_vectors;
mod vectors;

use std::path::PathBuf;

use conclave_privacy::mechanism::Components;
use conclave_privacy::pass::LatticeSum;
use conclave_vault::ledger::*;
use conclave_vault::noise::Noise;
use conclave_vault::testing::{JOB, budget, entry};
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::export;

/// A ledger in a folder of its own.
struct Fixture {
    folder: TempDir,
    noise: Noise,
    settings: LedgerSettings,
}

/// Returns the digest of the job's text: an export's checker compares the two.
fn digest() -> [u8; 32] {
    Sha256::digest(b"text").into()
}

impl Fixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// Makes a ledger under other settings.
    fn with(change: impl FnOnce(&mut LedgerSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget());
        change(&mut settings);
        settings.init().unwrap();
        Self { folder, noise: Noise::from_os().unwrap(), settings }
    }

    fn path(&self) -> PathBuf {
        self.settings.ledger.clone()
    }

    /// Opens the ledger and the job.
    fn open(&self) -> Ledger {
        let mut ledger = Ledger::open_kept(&self.settings).unwrap();
        ledger.open_job(&JobEntry { spec_digest: &digest(), ..entry(JOB, self.settings.budget) }).unwrap();
        ledger
    }

    fn sql(&self, statement: &str) {
        Connection::open(self.path()).unwrap().execute_batch(statement).unwrap();
    }

    /// Charges, releases and records one message; gives each query's integers.
    fn answer(&mut self, ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) -> Vec<Vec<i64>> {
        let ChargeOutcome::Granted(grants) = ledger.charge(JOB, iteration, keys).unwrap() else { panic!("refused") };
        self.record(ledger, grants)
    }

    /// Releases and records what was granted; gives each query's integers.
    fn record(&mut self, ledger: &mut Ledger, grants: Vec<Grant>) -> Vec<Vec<i64>> {
        let each = grants.into_iter().map(|grant| {
            let recorded = match grant {
                Grant::Answered(recorded) => recorded,
                Grant::Charged(receipt) => {
                    let sum = LatticeSum::of_components_for_test(
                        Components::new(&vec![1 << 40; receipt.cover().priced.components() as usize]).unwrap(),
                    );
                    ledger.record(vec![release(receipt, sum, &mut self.noise)]).unwrap().remove(0)
                }
            };
            recorded.integers().to_vec()
        });
        each.collect()
    }
}

/// Ends an export without a signature.
fn seal(file: &mut Vec<u8>) {
    let seal = export::Seal { signature: String::new(), scheme: String::new(), certificate: String::new() };
    export::write_line(file, &seal).unwrap();
}
