//! Holds the records, the ledger, the noise and the open jobs, in one place and on one thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use conclave_ops::answer_times::AnswerTiming;
use conclave_privacy::accounting::Budget;
use conclave_privacy::pass::Threads;
use conclave_proto::PROTOCOL;

use super::active_job::ActiveJob;
use super::answer_timing::OwnTimes;
use super::consent_state::ConsentState;
use super::delay::Pacer;
#[cfg(any(test, feature = "test-util"))]
use super::delay::ReplyCounts;
use super::requested_jobs::RequestedJobs;
use super::secrecy::AtWork;
use crate::config::Policy;
use crate::data::Precision;
use crate::data::Shard;
use crate::ledger::{Ledger, LedgerError};
use crate::members::Members;
use crate::noise::Noise;
use crate::ports::{DelayMeter, Endless, Observer, Permission, Unobserved};
use crate::text::clip;

/// Maximum length of another party's text that is logged or stored, in characters.
pub(super) const LONGEST_WORD: usize = 300;

/// The parts of an answering party: the records, the ledger, the noise, and the open jobs.
pub struct Answerer {
    pub(super) party: String,
    pub(super) policy: Policy,
    pub(super) budget: Budget,
    pub(super) shard: Arc<Shard>,
    pub(super) ledger: Ledger,
    pub(super) noise: Noise,
    pub(super) members: Members,
    pub(super) jobs: HashMap<String, ActiveJob>,
    pub(super) threads: Arc<Threads>,
    pub(super) precision: Precision,
    pub(super) pacer: Pacer,
    pub(super) timing: AnswerTiming,
    pub(super) times: OwnTimes,
    /// Start of reading the shard for the job that is being opened, and the delay of the reply from then on. Set by `load_job` before it reads
    /// a record, and taken by `open_held`, which waits.
    pub(super) reading: Option<(Instant, Duration)>,
    pub(super) consent: ConsentState,
    pub(super) observer: Box<dyn Observer>,
    /// The ends of the owner's permits.
    pub(super) permission: Box<dyn Permission>,
    /// Measures reply delays; without one only a fixed delay or none can be kept.
    pub(super) meter: Option<Arc<dyn DelayMeter>>,
    /// Version of the protocol agreed with the coordinator.
    pub(super) spoken: u32,
    /// The coordinator's clock at the newest welcome, and this party's moment then.
    pub(super) coordinator_clock: Option<(SystemTime, Instant)>,
    /// Start of this process.
    pub(super) started: Instant,
    /// Jobs that the coordinator has asked for on the newest stream.
    pub(super) requested: RequestedJobs,
    /// The parts for jobs whose answers leave masked.
    pub(super) secrecy: Option<AtWork>,
}

impl Answerer {
    /// Makes a party without open jobs.
    pub fn new(party: String, policy: Policy, budget: Budget, shard: Shard, ledger: Ledger, noise: Noise) -> Self {
        let pacer = Pacer::default();
        let times = OwnTimes { counter: pacer.counter().clone(), ..OwnTimes::default() };
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
            timing: AnswerTiming::new(times.latest.clone()),
            times,
            pacer,
            reading: None,
            consent: ConsentState::default(),
            observer: Box::new(Unobserved),
            permission: Box::new(Endless),
            meter: None,
            spoken: PROTOCOL,
            coordinator_clock: None,
            started: Instant::now(),
            requested: RequestedJobs::default(),
            secrecy: None,
        }
    }

    /// Sets the consortium whose jobs are opened; without it, no job is.
    #[must_use]
    pub fn with_members(mut self, members: Members) -> Self {
        self.members = members;
        self
    }

    /// Opens and charges jobs only while these permits last; without it, a consent has no end.
    #[must_use]
    pub fn permitted_by(mut self, permission: Box<dyn Permission>) -> Self {
        self.permission = permission;
        self
    }

    /// Makes passes over the records on these threads; without it, on the answering thread.
    #[must_use]
    pub fn with_threads(mut self, threads: Threads) -> Self {
        self.threads = Arc::new(threads);
        self
    }

    /// Measures reply delays with this meter.
    #[must_use]
    pub fn with_delay_meter(mut self, meter: Arc<dyn DelayMeter>) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Holds the jobs' records in this precision; without it, as doubles.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Returns the number of records; public where rows are protected against replacement.
    pub fn records(&self) -> u64 {
        self.shard.records()
    }

    /// Returns the ledger, to read its totals.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns how often replies have left late.
    #[cfg(any(test, feature = "test-util"))]
    pub fn reply_counts(&self) -> ReplyCounts {
        self.pacer.counter().counts()
    }

    /// Settles, syncs and closes the ledger.
    pub fn end(self) {
        if let Err(e) = self.ledger.close() {
            tracing::error!("the ledger did not end well: {e}");
        }
    }

    /// Releases a job that may be asked for again. A masked job keeps its key, and its end is not entered, since it could not be opened
    /// after that. Any other job is closed.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] where the ledger can't be written.
    pub(super) fn let_go(&mut self, job: &str, reason: &str) -> Result<(), LedgerError> {
        if !self.ledger.is_masked(job) {
            return self.close(job, reason);
        }
        if self.jobs.remove(job).is_some() {
            tracing::info!(%job, "job set aside with its key: {:?}", clip(reason, LONGEST_WORD));
            self.noise.keep(self.jobs.values().map(|job| job.spec.privacy.noise));
        }
        self.forget_consent(job);
        Ok(())
    }

    /// Ends a job at the coordinator's request; a job that is not open is no error.
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
        let masked = self.ledger.is_masked(job);
        self.ledger.close_job(job, reason)?;
        // After its end is entered: a key that is still there when the party starts is deleted then.
        if masked {
            self.forget_key(job);
        }
        Ok(())
    }
}
