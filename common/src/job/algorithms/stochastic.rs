//! `algorithm = "sgld"`, `"sghmc"`, `"sgnht"` and `"sgfs"`: the settings of their chains, and the models that they support.

use super::declaration::{ANY_MODEL, Declaration, OwnSettings, ReleasedQuantity, SEARCH_BY_SCORES};
use super::hmc::{MOST_FRICTION, below, sizes, warmup};
use super::unused::unused_with_gradients;
use crate::job::error::JobError;
use crate::job::raw::RawSampler;
use crate::job::sampler_spec::StochasticSpec;
use crate::job::spec::JobSpec;
use crate::text::figure;
use conclave_privacy::mechanism::QueryKind;

/// Largest step of `sgld` and `sgfs`, which overshoot the posterior beyond it; chains with momenta diverge earlier.
const MOST_STEP: f64 = 2.0;
const MOST_HEAVY_STEP: f64 = 1.0;

/// Base declaration of the four.
const STOCHASTIC: Declaration = Declaration {
    asks: |kind| matches!(kind, QueryKind::Gradient { .. } | QueryKind::SampledGradient { .. } | QueryKind::Curvature { .. }),
    releases: |spec| if spec.is_polished() { vec!["score", "ratio"] } else { vec!["score"] },
    follows_gradients: true,
    is_unadjusted: true,
    own_keys: &["step", "polish", "batch"],
    protocol: |_| 5,
    query_description,
    released_quantity: |spec| {
        let words = if spec.is_polished() {
            "the slope of the log likelihood at a setting of the model, or of how much better one setting explains a record than another"
        } else {
            "the slope of the log likelihood at a setting of the model"
        };
        ReleasedQuantity { words, fits_any_model: true }
    },
    noise,
    unused: unused_with_gradients,
    settings: |raw| own_settings(raw, MOST_STEP),
    check,
    ..Declaration::OF_RATIOS
};

/// Base declaration of those with momenta.
const HEAVY: Declaration = Declaration {
    own_keys: &["step", "friction", "polish", "batch"],
    settings: |raw| own_settings(raw, MOST_HEAVY_STEP),
    ..STOCHASTIC
};

pub(super) const SGLD: Declaration = Declaration { name: "sgld", ..STOCHASTIC };
pub(super) const SGHMC: Declaration = Declaration { name: "sghmc", ..HEAVY };
pub(super) const SGNHT: Declaration = Declaration { name: "sgnht", ..HEAVY };
pub(super) const SGFS: Declaration = Declaration { name: "sgfs", ..STOCHASTIC };

fn query_description(spec: &JobSpec) -> String {
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
        "{SEARCH_BY_SCORES}; then, for each chain and each step, the gradient at the chain's current position, one number per \
         parameter{sampled}{sweeps}. {ANY_MODEL}"
    )
}

fn noise(spec: &JobSpec, sd: &str) -> String {
    if spec.is_polished() {
        return format!(
            "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator: in every component of every \
             gradient with the scale that a step of the chains requires, and with standard deviation {sd} log-likelihood units in \
             every ratio of the final sweeps. Steps have no acceptance test; the sweeps correct for their noise (the penalty method \
             of Ceperley & Dewing, 1999; Yıldırım): the draws are those of the sweeps, and follow the posterior of the pooled \
             records once the sweeps have mixed."
        );
    }
    "Noise: discrete Gaussian, drawn by each owner from its operating system’s generator, in every component of every gradient, \
     with the scale that a step of the chains requires: it drives them (Wang, Fienberg & Smola, 2015). Steps have no acceptance \
     test: the draws follow the posterior of the pooled records approximately, and the run reports the known error."
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
        let message =
            format!("times the step must be below 1, not {friction} times {step}: a step keeps the rest of the momentum");
        return Err(JobError::new("sampler.friction", message));
    }
    Ok(spec)
}

/// Returns the number of penalty sweeps at the end of each chain.
fn polish(raw: &RawSampler) -> Result<u64, JobError> {
    if raw.polish > 0 && raw.until.is_some() {
        let message = "the sweeps set the number of draws: leave out either sampler.until or polish";
        return Err(JobError::new("sampler.polish", message));
    }
    Ok(raw.polish)
}

/// Checks that the model has gradients.
///
/// # Errors
/// The model has none; the parameters or chains exceed the limits of a message.
fn check(spec: &JobSpec) -> Result<(), JobError> {
    let (model, kind) = (spec.build_model(), spec.model.kind());
    let Some(scores) = model.scores() else {
        let message = format!("the model `{kind}` has no gradient to release: use algorithm = \"penalty\"");
        return Err(JobError::new("algorithm", message));
    };
    if spec.model.is_bent() {
        let message = format!(
            "the posterior of the model `{kind}` is curved, and steps without a test suit only a normal posterior: use algorithm = \"hmc\" or \"penalty\""
        );
        return Err(JobError::new("algorithm", message));
    }
    sizes(spec, scores.parameters())
}

#[cfg(test)]
#[path = "../tests/stochastic.rs"]
mod tests;
