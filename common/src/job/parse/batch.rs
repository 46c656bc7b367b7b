//! `batch`: releases over hidden random samples of the units, in blocks that are charged when opened.

use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::raw::RawPrivacy;
use crate::job::spec::JobSpec;
use conclave_privacy::accounting::{RESERVE_LOG2, SamplingProbability, grantable_reserve_units};

/// Default number of blocks of a job's planned releases.
const DEFAULT_BLOCKS: u64 = 20;
/// Default share of a job's delta that pays for blocks.
const RESERVE_SHARE: f64 = 0.1;

/// Reads the probability that a unit is in the sample of a release.
pub(super) fn batch(algorithm: Algorithm, value: f64) -> Result<SamplingProbability, JobError> {
    let fault = |message: String| Err(JobError::new("sampler.batch", message));
    let Ok(batch) = SamplingProbability::at_least(value) else {
        return fault(format!("must be a probability from 2^-20 (about 1e-6) to 1, not {value}"));
    };
    if batch != SamplingProbability::ONE && !algorithm.takes("batch") {
        return fault(format!(
            "a value below 1 requires barker, sgld, sghmc, sgnht or sgfs: \"{}\" queries all records, since it does not allow for the \
             variance of samples",
            algorithm.as_str()
        ));
    }
    Ok(batch)
}

/// Removes samples and their blocks from a job whose algorithm queries all records. Its reserve becomes part of delta again.
pub(super) fn forget(spec: &mut JobSpec) {
    if spec.algorithm.takes("batch") {
        return;
    }
    if spec.privacy.blocks.take().is_some() {
        spec.privacy.budget.delta = spec.privacy.budget.promised_delta();
        spec.privacy.budget = spec.privacy.budget.reserving(0);
    }
    spec.sampler.batch = SamplingProbability::ONE;
}

/// Reads the number of blocks and their total reserve of delta, in units of 2^-60; `None` for a job over all records.
pub(super) fn blocks(raw: &RawPrivacy, batch: SamplingProbability) -> Result<Option<(u64, u64)>, JobError> {
    if batch == SamplingProbability::ONE {
        for (key, written) in [("blocks", raw.blocks.is_some()), ("delta_reserve", raw.delta_reserve.is_some())] {
            if written {
                let message = "is for a job whose sampler.batch is below 1: leave it out";
                return Err(JobError::new(format!("privacy.{key}"), message));
            }
        }
        return Ok(None);
    }
    let blocks = raw.blocks.unwrap_or(DEFAULT_BLOCKS);
    let reserve = raw.delta_reserve.unwrap_or(RESERVE_SHARE * raw.delta);
    if !(reserve > 0.0 && reserve < raw.delta) {
        let message = format!("must be a part of delta, above 0 and below {}, not {reserve}", raw.delta);
        return Err(JobError::new("privacy.delta_reserve", message));
    }
    let reserve_units = (reserve * (1_u64 << RESERVE_LOG2) as f64) as u64;
    // Each block uses at least one grantable unit.
    if grantable_reserve_units(reserve_units) < blocks {
        let message =
            format!("{reserve} is too small a part of delta to be cut into {blocks} blocks: raise it, or ask for fewer blocks");
        return Err(JobError::new("privacy.delta_reserve", message));
    }
    Ok(Some((blocks, reserve_units)))
}

/// Checks the settings that exclude samples.
pub(super) fn check(spec: &JobSpec) -> Result<(), JobError> {
    if spec.sampler.batch != SamplingProbability::ONE && spec.aggregation.is_secure() {
        let message =
            "a value below 1 requires answers that are opened one by one: leave it out with [aggregation] mode = \"secure\"";
        return Err(JobError::new("sampler.batch", message));
    }
    Ok(())
}
