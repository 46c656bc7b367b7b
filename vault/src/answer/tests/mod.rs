//! Tests of the answer path.

use std::path::Path;
use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::Budget;
use conclave_privacy::pass::Threads;

use super::active_job::{ActiveJob, NewJob};
use super::answerer::Answerer;
use super::open::Opening;
use crate::config::Policy;
use crate::data::Shard;
use crate::ledger::state::LedgerState;
use crate::ledger::{Ledger, schema, verify};
use crate::noise::Noise;

pub(crate) mod answers;
mod choice;
mod concurrency;
mod consent;
mod hostile;
mod measured;
mod memory;
mod moments;
mod non_interference;
mod permits;
mod random_operations;
mod sampled;
mod sampled_records;
mod timing;

/// Adds up the entries of a ledger that a party may hold.
fn state_of(ledger: &Path) -> LedgerState {
    let connection = schema::connect_read_only(ledger).expect("a ledger");
    verify::read(&connection, ledger, &verify::Layout::PRESENT, |_, _| Ok(())).expect("entries that follow from one another")
}

/// Counts the queries that a ledger has charged.
fn queries_of(ledger: &Path) -> u64 {
    state_of(ledger).jobs().iter().map(|job| job.queries).sum()
}
