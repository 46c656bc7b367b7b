//! An open job: its public constants, and the shard as its model reads it.

use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_privacy::accounting::{Honest, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{CachedBlocks, HiddenSample, NoSum, PoissonSampling, SumCache, Threads, WeightCache};

use super::masking::Masking;
use super::records::Records;
use super::sums::{Pass, SumQuery, Sums, fixed_sums, sampled_sums, sums};
use crate::ports::JobDelay;

/// An open job: its public constants, and the shard as its model reads it.
pub(super) struct ActiveJob {
    pub(super) spec: JobSpec,
    pub(super) digest: [u8; 32],
    pub(super) model: Box<dyn Model>,
    pub(super) records: Records,
    /// The un-noised sums that depend on no point, as those of Algorithm 3. They are computed once, when the job opens, so that the time of an
    /// answer does not grow with the shard. Each release of one has its own charge and its own noise.
    pub(super) fixed_sums: SumCache,
    /// Weights of the job's last gradients, kept for the remainders of the same steps.
    pub(super) weight_cache: WeightCache,
    /// The sampling law of its subsampled releases; `None` where every release sums over all records.
    pub(super) sampling: Option<PoissonSampling>,
    /// Delay from the start of a message's service to its reply; `None` for no delay.
    pub(super) delay: Option<JobDelay>,
    /// The form in which its answers leave, masked or not.
    pub(super) masking: Masking,
    /// Number of parties whose noise protects an answer, as the owner counts them; see [`crate::secure::SecureSettings::trusted`].
    pub(super) trusted: Honest,
    /// Start of the idle time, and the idle time before it: the last new release and zero, or the opening and the time that the job had been
    /// idle when it was opened.
    pub(super) used: (Instant, Duration),
    /// Limit on the rounds of a job that releases once, in each of which it may ask each kind once; `None` for any other job. See
    /// [`JobSpec::most_rounds`].
    pub(super) most_rounds: Option<u64>,
}

/// The parts of a job that is being opened.
pub(super) struct NewJob {
    pub(super) spec: JobSpec,
    pub(super) digest: [u8; 32],
    pub(super) records: Records,
    pub(super) delay: Option<JobDelay>,
    pub(super) masking: Masking,
    pub(super) trusted: Honest,
    /// Time without a new release before the job was opened.
    pub(super) idle: Duration,
}

impl ActiveJob {
    /// Opens a job at a party that protects `unit`, and computes its fixed sums.
    pub(super) fn new(parts: NewJob, unit: PrivacyUnit, threads: &Threads) -> Result<Self, NoSum> {
        let NewJob { spec, digest, records, delay, masking, trusted, idle } = parts;
        let model = spec.build_model();
        let pass = Pass { model: model.as_ref(), blocks: records.blocks(), threads };
        let fixed_sums = fixed_sums(&pass, &spec, unit)?;
        let most_rounds = spec.most_rounds();
        let gradients =
            if spec.algorithm.asks(QueryKind::Remainder { parameters: 0 }) { spec.sampler.chains as usize } else { 0 };
        let weight_cache = WeightCache::new((records.blocks().records(), records.blocks().count()), gradients);
        let sampling = spec.privacy.blocks.map(|_| PoissonSampling::new(records.blocks().units(), spec.sampler.batch));
        let used = (Instant::now(), idle);
        Ok(Self { spec, digest, model, records, fixed_sums, weight_cache, sampling, delay, masking, trusted, used, most_rounds })
    }

    /// Returns how long the job has released nothing new.
    pub(super) fn idle(&self, now: Instant) -> Duration {
        now.duration_since(self.used.0).saturating_add(self.used.1)
    }
}

/// Sums each query over an open job's records: over all units in one pass, over the samples of others in another.
///
/// # Errors
/// [`NoSum`].
pub(super) fn job_sums(
    job: &ActiveJob,
    threads: &Threads,
    whole: &[SumQuery<'_>],
    sampled: Vec<(SumQuery<'_>, HiddenSample)>,
) -> Result<Sums, NoSum> {
    let (model, records) = (job.model.as_ref(), job.records.blocks());
    // The weights of a gradient are cached for passes over all records, not for samples.
    let cached = CachedBlocks::new(records, &job.weight_cache);
    let mut all = sums(&Pass { model, blocks: &cached, threads }, &job.fixed_sums, whole)?;
    all.extend(sampled_sums(&Pass { model, blocks: records, threads }, sampled)?);
    Ok(all)
}
