//! The answer path, in this order and no other: policy, request, charge, records, noise, ledger, reply.
//!
//! Everything runs on one thread, one message at a time: the ledger, the records and the noise have one owner, and two
//! messages can't race. Neither a refusal nor an answer's length depends on a record.

mod open;
mod query;
pub(crate) mod thread;

use std::collections::HashMap;

use conclave_common::accounting::Budget;
use conclave_common::job::JobSpec;
use conclave_common::model::{Model, ModelData};

use crate::config::Policy;
use crate::data::Shard;
use crate::ledger::{Ledger, LedgerError};
use crate::noise::Noise;

/// Everything that answers: the records, the ledger, the noise, and the jobs that are open.
pub struct Answerer {
    party: String,
    policy: Policy,
    budget: Budget,
    shard: Shard,
    ledger: Ledger,
    noise: Noise,
    jobs: HashMap<String, ActiveJob>,
}

/// A job that is open: its public constants, and the shard as its model reads it.
struct ActiveJob {
    spec: JobSpec,
    digest: [u8; 32],
    model: Box<dyn Model>,
    data: ModelData,
}

impl Answerer {
    /// Brings together what answers. No job is open yet.
    pub fn new(party: String, policy: Policy, budget: Budget, shard: Shard, ledger: Ledger, noise: Noise) -> Self {
        Self { party, policy, budget, shard, ledger, noise, jobs: HashMap::new() }
    }

    /// Cleaned record count; public under replacement adjacency.
    pub fn records(&self) -> u64 {
        self.shard.records()
    }

    /// The ledger, to read its totals.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Ends a job at the coordinator's word; a job that isn't open is no error.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] where the ledger can't be written.
    pub fn close(&mut self, job: &str, reason: &str) -> Result<(), LedgerError> {
        if self.jobs.remove(job).is_some() {
            tracing::info!("job {job} closed: {reason:?}");
        }
        self.ledger.close_job(job, reason)
    }
}

#[cfg(test)]
mod tests;
