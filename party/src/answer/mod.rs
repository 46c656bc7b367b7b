//! The answer path, in this order and no other: policy, request, charge, records, noise, ledger, reply.
//!
//! Everything runs on one thread, one message at a time: the ledger, the records and the noise have one owner, and two
//! messages can't race. Neither a refusal nor an answer's length depends on a record.

mod consent;
mod dearest;
mod delay;
#[cfg(test)]
pub(crate) mod fault;
mod measure;
mod open;
mod query;
mod records;
#[cfg(feature = "test-util")]
pub mod simulated;
pub(crate) mod split;
pub(crate) mod stage;
mod sums;
pub(crate) mod thread;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_common::accounting::{Budget, PrivacyUnit};
use conclave_common::job::JobSpec;
use conclave_common::mechanism::SumCache;
use conclave_common::model::{Model, Threads};

use crate::config::{Policy, Precision};
use crate::data::Shard;
use crate::ledger::{Ledger, LedgerError};
use crate::members::Members;
use crate::meters::Meters;
use crate::noise::Noise;

pub use consent::Opening;
pub use delay::ReplyCounts;
pub(crate) use open::MAX_JOB_ID;

use crate::text::clip;
use delay::Pacer;
use measure::JobDelay;
use records::Records;
use split::Split;
use sums::NoSum;

/// Characters of another's text that are logged or kept.
const LONGEST_WORD: usize = 300;

/// Everything that answers: the records, the ledger, the noise, and the jobs that are open.
pub struct Answerer {
    party: String,
    policy: Policy,
    budget: Budget,
    shard: Arc<Shard>,
    ledger: Ledger,
    noise: Noise,
    members: Members,
    jobs: HashMap<String, ActiveJob>,
    threads: Arc<Threads>,
    precision: Precision,
    pacer: Pacer,
    split: Split,
    #[cfg(test)]
    pub(crate) fault: Option<fault::Fault>,
    /// When the shard began to be read for the job that is being opened, and how long that may take.
    reading: Option<(Instant, Duration)>,
    consent: consent::Consent,
    meters: Meters,
}

/// A job that is open: its public constants, and the shard as its model reads it.
struct ActiveJob {
    spec: JobSpec,
    digest: [u8; 32],
    model: Box<dyn Model>,
    records: Records,
    /// The un-noised sums that Algorithm 3 releases under fresh noise again and again: computed once, when the job opens, so that an
    /// answer's cost does not grow with the shard.
    statistics: SumCache,
    /// How long after its service began a reply leaves; `None` for at once.
    delay: Option<JobDelay>,
}

impl ActiveJob {
    /// A job as it opens at a party that protects `unit`.
    fn new(
        spec: JobSpec,
        digest: [u8; 32],
        records: Records,
        (unit, threads): (PrivacyUnit, &Threads),
        delay: Option<JobDelay>,
    ) -> Result<Self, NoSum> {
        let model = spec.build_model();
        let statistics = query::statistics(model.as_ref(), &spec, unit, records.blocks(), threads)?;
        Ok(Self { spec, digest, model, records, statistics, delay })
    }
}

impl Answerer {
    /// Brings together what answers. No job is open yet.
    pub fn new(party: String, policy: Policy, budget: Budget, shard: Shard, ledger: Ledger, noise: Noise) -> Self {
        let pacer = Pacer::default();
        Self {
            party,
            policy,
            budget,
            shard: Arc::new(shard),
            ledger,
            noise,
            members: Members::default(),
            jobs: HashMap::new(),
            threads: Arc::new(Threads::one()),
            precision: Precision::default(),
            split: Split::new(pacer.counter().clone()),
            pacer,
            #[cfg(test)]
            fault: None,
            reading: None,
            consent: consent::Consent::default(),
            meters: Meters::default(),
        }
    }

    /// Says whose jobs are opened; without it, nobody's.
    #[must_use]
    pub fn with_members(mut self, members: Members) -> Self {
        self.members = members;
        self
    }

    /// Makes passes over the records on these threads; without it, on the one that answers.
    #[must_use]
    pub fn with_threads(mut self, threads: Threads) -> Self {
        self.threads = Arc::new(threads);
        self
    }

    /// Holds the jobs' records in this precision; without it, as doubles.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Cleaned record count; public under replacement adjacency.
    pub fn records(&self) -> u64 {
        self.shard.records()
    }

    /// The ledger, to read its totals.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How often replies have left late; for the owner alone.
    pub fn reply_counts(&self) -> ReplyCounts {
        self.pacer.counter().counts()
    }

    /// Ends the answering: the ledger is settled, synced and closed.
    pub fn end(self) {
        if let Err(e) = self.ledger.close() {
            tracing::error!("the ledger did not end well: {e}");
        }
    }

    /// Ends a job at the coordinator's word; a job that isn't open is no error.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] where the ledger can't be written.
    pub fn close(&mut self, job: &str, reason: &str) -> Result<(), LedgerError> {
        let reason = &clip(reason, LONGEST_WORD);
        if self.jobs.remove(job).is_some() {
            tracing::info!(%job, "job closed: {reason:?}");
            drop(tracing::info_span!(target: conclave_ops::EXPORTED, "job closed", %job));
            self.noise.keep(self.jobs.values().map(|job| job.spec.privacy.noise));
        }
        self.forget_consent(job);
        self.ledger.close_job(job, reason)
    }
}

#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod million;
#[cfg(test)]
mod quiet;
#[cfg(test)]
mod race;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing;
