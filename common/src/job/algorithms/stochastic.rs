//! `algorithm = "sgld"`, `"sghmc"`, `"sgnht"` and `"sgfs"`: the settings of their chains, and the models that they support.

use super::declaration::{ANY_MODEL, Declaration, OwnSettings, Summand, TO_BEGIN_WITH};
use super::hmc::{MOST_FRICTION, below, sizes, warmup};
use super::unused::of_gradients_alone;
use crate::job::error::JobError;
use crate::job::raw::RawSampler;
use crate::job::sampler_spec::StochasticSpec;
use crate::job::spec::JobSpec;
use crate::text::figure;
use conclave_privacy::mechanism::QueryKind;

/// Upper limits of a step. Beyond them a step of `sgld` or `sgfs` overshoots the posterior, and one with momenta becomes unstable
/// earlier.
const MOST_STEP: f64 = 2.0;
const MOST_HEAVY_STEP: f64 = 1.0;
const MOST_SWEEPS: u64 = 1_000_000;

/// The common part of the four algorithms.
const STOCHASTIC: Declaration = Declaration {
    asks: |kind| matches!(kind, QueryKind::Gradient { .. } | QueryKind::SampledGradient { .. } | QueryKind::Curvature { .. }),
    releases: |spec| if spec.is_polished() { vec!["score", "ratio"] } else { vec!["score"] },
    follows_gradients: true,
    is_unadjusted: true,
    own_keys: &["step", "polish", "batch"],
    protocol: |_| 5,
    asked_for,
    summand: |spec| {
        let what = if spec.is_polished() {
            "the slope of the log likelihood at a setting of the model, or of how much better one setting explains a record than another"
        } else {
            "the slope of the log likelihood at a setting of the model"
        };
        Summand { what, fits_any_model: true }
    },
    noise,
    unused: of_gradients_alone,
    settings: |raw| own_settings(raw, MOST_STEP),
    check,
    ..Declaration::OF_RATIOS
};

/// The algorithms whose chains have momenta.
const HEAVY: Declaration = Declaration {
    own_keys: &["step", "friction", "polish", "batch"],
    settings: |raw| own_settings(raw, MOST_HEAVY_STEP),
    ..STOCHASTIC
};

pub(super) const SGLD: Declaration = Declaration { name: "sgld", ..STOCHASTIC };
pub(super) const SGHMC: Declaration = Declaration { name: "sghmc", ..HEAVY };
pub(super) const SGNHT: Declaration = Declaration { name: "sgnht", ..HEAVY };
pub(super) const SGFS: Declaration = Declaration { name: "sgfs", ..STOCHASTIC };

fn asked_for(spec: &JobSpec) -> String {
    let sampled = match spec.privacy.blocks {
        Some(_) => {
            format!(
                ", each from a secret random sample of the records or persons with sampling rate {}",
                figure(spec.sampler.batch.get())
            )
        }
        None => String::new(),
    };
    let sweeps = match spec.is_polished() {
        true => {
            "; then, over all of them, how much better one setting of the model explains the records than another, one number at a time"
        }
        false => "",
    };
    format!(
        "{TO_BEGIN_WITH}; then, for each chain and each step, the gradient at the chain's current position, one number per \
             parameter{sampled}{sweeps}. {ANY_MODEL}"
    )
}

fn noise(spec: &JobSpec, sd: &str) -> String {
    if spec.is_polished() {
        return format!(
            "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator: in every component of every gradient at the scale that a step of the chains \
                 requires, and with standard deviation {sd} log-likelihood units in every ratio of the final sweeps. Steps have no test; the sweeps \
                 correct for their noise (the penalty method of Ceperley & Dewing, 1999; Yıldırım): the draws are theirs, and of the posterior that all records in one \
                 place would have given once the sweeps have mixed."
        );
    }
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of every gradient, at the scale that a step of \
         the chains requires: it moves them (Wang, Fienberg & Smola, 2015). Steps have no test: the draws are approximately of the posterior that \
         all records in one place would have given, and the run reports what is known of the difference."
            .to_owned()
}

fn own_settings(raw: &RawSampler, most_step: f64) -> Result<OwnSettings, JobError> {
    Ok(OwnSettings { stochastic: settings(raw, most_step)?, ..OwnSettings::default() })
}

fn settings(raw: &RawSampler, most_step: f64) -> Result<StochasticSpec, JobError> {
    let spec = StochasticSpec {
        step: below("step", raw.step, most_step)?,
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
fn check(spec: &JobSpec) -> Result<(), JobError> {
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
