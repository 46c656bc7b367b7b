//! `algorithm = "sgld"`, `"sghmc"`, `"sgnht"` and `"sgfs"`: the settings of their chains, and the models that they support.

use super::hmc::{MOST_FRICTION, below, sizes, warmup};
use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::raw::RawSampler;
use crate::job::sampler_spec::StochasticSpec;
use crate::job::spec::JobSpec;

/// Upper limits of a step. Beyond them a step of `sgld` or `sgfs` overshoots the posterior, and one with momenta becomes unstable
/// earlier.
const MOST_STEP: f64 = 2.0;
const MOST_HEAVY_STEP: f64 = 1.0;
const MOST_SWEEPS: u64 = 1_000_000;

/// Reads the settings. Those of another algorithm are refused elsewhere.
pub(super) fn settings(raw: &RawSampler, algorithm: Algorithm) -> Result<StochasticSpec, JobError> {
    if !algorithm.is_unadjusted() {
        return Ok(StochasticSpec::default());
    }
    let heavy = matches!(algorithm, Algorithm::Sghmc | Algorithm::Sgnht);
    let spec = StochasticSpec {
        step: below("step", raw.step, if heavy { MOST_HEAVY_STEP } else { MOST_STEP })?,
        friction: below("friction", raw.friction, MOST_FRICTION)?,
        warmup: warmup(raw)?,
        locate_share: below("locate_share", raw.locate_share, 1.0)?,
        polish: polish(raw)?,
    };
    if let (Some(step), Some(friction)) = (spec.step, spec.friction)
        && step * friction >= 1.0
    {
        let message = format!("{friction} times a step of {step} must stay below 1: a step retains the rest of the momentum");
        return Err(JobError::new("sampler.friction", message));
    }
    Ok(spec)
}

/// Reads the number of penalty sweeps at the end of each chain.
fn polish(raw: &RawSampler) -> Result<u64, JobError> {
    let Some(written) = raw.polish else { return Ok(0) };
    let fault = |message: String| Err(JobError::new("sampler.polish", message));
    let Some(sweeps) = u64::try_from(written).ok().filter(|sweeps| *sweeps <= MOST_SWEEPS) else {
        return fault(format!("must be a number of sweeps from 0 to {MOST_SWEEPS}, not {written}"));
    };
    if sweeps > 0 && raw.until.is_some() {
        return fault(
            "polish fixes the number of draws, those of its sweeps: leave out either sampler.until or polish".to_owned(),
        );
    }
    Ok(sweeps)
}

/// Checks that the model has gradients.
///
/// # Errors
/// A model without them, or more parameters or chains than a message can request.
pub(super) fn check(spec: &JobSpec) -> Result<(), JobError> {
    if !spec.algorithm.is_unadjusted() {
        return Ok(());
    }
    let (model, kind) = (spec.build_model(), spec.model.kind());
    let Some(scores) = model.scores() else {
        let message = format!("the model `{kind}` has no gradient that could be released: use algorithm = \"penalty\"");
        return Err(JobError::new("algorithm", message));
    };
    if spec.model.is_bent() {
        let message = format!(
            "the posterior of the model `{kind}` is curved, and chains without a test assume a normal one: use algorithm = \"hmc\" or \"penalty\""
        );
        return Err(JobError::new("algorithm", message));
    }
    sizes(spec, scores.parameters())
}

#[cfg(test)]
#[path = "../tests/stochastic.rs"]
mod tests;
