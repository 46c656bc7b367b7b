//! The expected error of a job by stochastic gradients before its first query.

use super::algorithm::LOCATE_SHARE;
use super::laws::usual_step;
use super::sgfs::Sgfs;
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::expected::OVERHEAD;
use crate::sampler::noisy_statistics::{Allotment, Outlook, of_scores};
use crate::sampler::target::Target;
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::query::PartyMetadata;

/// Returns the Monte Carlo error of a posterior mean, in posterior sds, in the best case and in a worse one: one over the root of
/// the effective draws.
///
/// Gradients that are released one after the other determine the mean as precisely as one gradient whose noise is that of their
/// average. Subsampled gradients cost the same as full ones at equal noise, and add their own noise.
///
/// # Errors
/// The model has no gradients; the budget is invalid; a query has no price.
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    let target = Target::new(spec);
    let budget = Allotment::new(spec, parties)?;
    let scores = target.model.scores().ok_or(SamplerError::NoScores)?;
    let once = of_scores(&target, scores.as_ref(), parties, &budget)?;
    let (all, theirs) = noise(spec);
    let kappa = (theirs / all).clamp(1e-3, 1.0);
    let asked = f64::from(spec.sampler.chains) * spec.sampler.draws as f64 / all;
    let part = (1.0 - OVERHEAD) / (1.0 - spec.sampler.stochastic.locate_share.unwrap_or(LOCATE_SHARE)) / kappa;
    let error = |once: f64| (once * once * part).max(asked.recip()).sqrt();
    Ok(Outlook { best: error(once.best), worse: error(once.worse) })
}

/// Returns the variance of a gradient's noise in the job's chains, in posterior sds, and the part of it that the parties may add:
/// sampling adds the rest.
pub(crate) fn noise(spec: &JobSpec) -> (f64, f64) {
    let given = spec.sampler.stochastic;
    let (step, friction) = (given.step.unwrap_or(usual_step(spec.algorithm)), given.friction.unwrap_or(1.0));
    let q = spec.sampler.batch.get();
    let samples = spec.power * (1.0 - q) / q;
    match spec.algorithm {
        Algorithm::Sghmc => (2.0 * friction / step, 2.0 * friction / step - samples),
        Algorithm::Sgnht => (2.0 * friction / step + samples, 2.0 * friction / step),
        Algorithm::Sgfs => (Sgfs::mean_variance(step), Sgfs::mean_variance(step) - samples),
        _ => (4.0 / step, 4.0 / step - samples),
    }
}
