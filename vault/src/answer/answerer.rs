//! The answerer holds the records, the ledger, the noise and the open jobs, in one place and on one thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_privacy::accounting::{Budget, Honest, PrivacyUnit};
use conclave_privacy::mechanism::{QueryKind, SumCache};
use conclave_privacy::pass::{KeptWeights, PoissonSampling, Threads};
use conclave_proto::PROTOCOL;

use super::answer_timing::AnswerTiming;
use super::asked::Asked;
use super::consent_state::ConsentState;
use super::delay::{JobDelay, Pacer, ReplyCounts};
use super::masking::Masking;
use super::records::Records;
use super::secrecy::AtWork;
use super::sums::{NoSum, fixed_sums};
use crate::config::Policy;
use crate::data::Precision;
use crate::data::Shard;
use crate::ledger::{Ledger, LedgerError};
use crate::members::Members;
use crate::noise::Noise;
use crate::ports::{Observer, Unobserved};
use crate::text::clip;

/// Characters of another's text that are logged or kept.
pub(super) const LONGEST_WORD: usize = 300;

/// Everything that answers: the records, the ledger, the noise, and the jobs that are open.
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
    /// When the shard began to be read for the job that is being opened, and how long that may take.
    pub(super) reading: Option<(Instant, Duration)>,
    pub(super) consent: ConsentState,
    pub(super) observer: Box<dyn Observer>,
    /// The protocol that is spoken with the coordinator.
    pub(super) spoken: u32,
    /// What the coordinator has asked for on the newest stream.
    pub(super) asked: Asked,
    /// For jobs whose answers leave masked.
    pub(super) secrecy: Option<AtWork>,
}

/// A job that is open: its public constants, and the shard as its model reads it.
pub(super) struct ActiveJob {
    pub(super) spec: JobSpec,
    pub(super) digest: [u8; 32],
    pub(super) model: Box<dyn Model>,
    pub(super) records: Records,
    /// The un-noised sums that are asked of no point, as Algorithm 3's are, and released under fresh noise again and again: computed
    /// once, when the job opens, so that an answer's cost does not grow with the shard.
    pub(super) fixed_sums: SumCache,
    /// What the job's last gradients left for the remainders of the same steps.
    pub(super) kept_weights: KeptWeights,
    /// The law of the samples that its releases add up; `None` where they add up all records.
    pub(super) sampling: Option<PoissonSampling>,
    /// How long after its service began a reply leaves; `None` for at once.
    pub(super) delay: Option<JobDelay>,
    /// How its answers leave.
    pub(super) masking: Masking,
    /// How many parties' noise protects an answer by the owner's limits on noise; see [`crate::secure::SecureSettings::trusted`].
    pub(super) trusted: Honest,
    /// When it was opened, or answered something new, last; and how long before it had been opened it had answered nothing new.
    pub(super) used: (Instant, Duration),
    /// The most rounds in which it may ask, each kind once, where it releases once; see [`JobSpec::most_rounds`].
    pub(super) most_rounds: Option<u64>,
}

impl ActiveJob {
    /// A job as it opens at a party that protects `unit`.
    pub(super) fn new(
        spec: JobSpec,
        digest: [u8; 32],
        records: Records,
        (unit, threads): (PrivacyUnit, &Threads),
        (delay, masking, idle): (Option<JobDelay>, Masking, Duration),
    ) -> Result<Self, NoSum> {
        let model = spec.build_model();
        let fixed_sums = fixed_sums(model.as_ref(), &spec, unit, records.blocks(), threads)?;
        let most_rounds = spec.most_rounds();
        let gradients =
            if spec.algorithm.asks(QueryKind::Remainder { parameters: 0 }) { spec.sampler.chains as usize } else { 0 };
        let kept_weights = KeptWeights::new((records.blocks().records(), records.blocks().count()), gradients);
        let sampling = spec.privacy.blocks.map(|_| PoissonSampling::new(records.blocks().units(), spec.sampler.batch));
        let used = (Instant::now(), idle);
        // Whom the owner trusts is for whoever opens the job to say.
        let trusted = Honest::ALONE;
        Ok(Self { spec, digest, model, records, fixed_sums, kept_weights, sampling, delay, masking, trusted, used, most_rounds })
    }

    /// How long it has answered nothing new.
    pub(super) fn idle(&self, now: Instant) -> Duration {
        now.duration_since(self.used.0).saturating_add(self.used.1)
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
            timing: AnswerTiming::new(pacer.counter().clone()),
            pacer,
            reading: None,
            consent: ConsentState::default(),
            observer: Box::new(Unobserved),
            spoken: PROTOCOL,
            asked: Asked::default(),
            secrecy: None,
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

    /// Number of records; public where rows are protected against replacement.
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

    /// Lets a job go that may be asked for again: of a masked one the key stays, and its end is not entered, since it could not be opened after
    /// that. Any other is closed.
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
        let masked = self.ledger.is_masked(job);
        self.ledger.close_job(job, reason)?;
        // After its end is entered: a key that is there still when the party starts is deleted then.
        if masked {
            self.forget_key(job);
        }
        Ok(())
    }
}
