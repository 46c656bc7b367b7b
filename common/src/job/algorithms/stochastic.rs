//! `algorithm = "sgld"`, `"sghmc"`, `"sgnht"` and `"sgfs"`: the settings of their chains, and the models that they support.

use super::declaration::{ANY_MODEL, Declaration, OwnSettings, ReleasedQuantity, SEARCH_BY_SCORES};
use super::hmc::{MOST_FRICTION, below, sizes, warmup};
use super::ops;
use super::unused::{Unused, unused_with_gradients};
use crate::job::error::JobError;
use crate::job::raw::{RawJob, RawSampler, RawStart};
use crate::job::sampler_spec::{OpsSpec, StochasticSpec, Warmup};
use crate::job::spec::JobSpec;
use crate::text::figure;
use conclave_privacy::mechanism::QueryKind;

/// Largest step of `sgld` and `sgfs`, which overshoot the posterior beyond it; chains with momenta diverge earlier.
const MOST_STEP: f64 = 2.0;
const MOST_HEAVY_STEP: f64 = 1.0;

/// Base declaration of the four.
const STOCHASTIC: Declaration = Declaration {
    asks: |kind| {
        matches!(
            kind,
            QueryKind::Gradient { .. }
                | QueryKind::SampledGradient { .. }
                | QueryKind::Curvature { .. }
                | QueryKind::Choice { .. }
        )
    },
    releases: |spec| {
        let more = [(spec.start_share().is_some(), "choice"), (spec.is_polished(), "ratio")];
        std::iter::once("score").chain(more.into_iter().filter(|(asked, _)| *asked).map(|(_, release)| release)).collect()
    },
    follows_gradients: true,
    is_unadjusted: true,
    own_keys: &["step", "decay", "polish", "batch", "candidates", "start_share"],
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
    unused,
    settings: |raw| own_settings(raw, MOST_STEP),
    check,
    ..Declaration::OF_RATIOS
};

/// Base declaration of those with momenta.
const HEAVY: Declaration = Declaration {
    own_keys: &["step", "friction", "decay", "polish", "batch", "candidates", "start_share"],
    settings: |raw| own_settings(raw, MOST_HEAVY_STEP),
    ..STOCHASTIC
};

pub(super) const SGLD: Declaration = Declaration { name: "sgld", ..STOCHASTIC };
pub(super) const SGHMC: Declaration = Declaration { name: "sghmc", ..HEAVY };
pub(super) const SGNHT: Declaration = Declaration { name: "sgnht", ..HEAVY };
// Its step follows from the noise of a gradient, whatever `eta`.
pub(super) const SGFS: Declaration =
    Declaration { name: "sgfs", own_keys: &["step", "polish", "batch", "candidates", "start_share"], ..STOCHASTIC };

/// Largest share of the budget for the posterior sample at which chains start, if the job states none: Algorithm 3 of the paper halves
/// the budget.
const START_SHARE: f64 = 0.5;

fn unused(raw: &RawJob) -> Vec<Unused> {
    let elsewhere = "only chains that start at a posterior sample use it: set start = \"ops\"";
    let of_a_draw = [("sampler.candidates", elsewhere), ("sampler.start_share", elsewhere)];
    let starts_elsewhere = !matches!(raw.sampler.start, Some(RawStart::Ops));
    unused_with_gradients(raw).into_iter().chain(of_a_draw.into_iter().filter(|_| starts_elsewhere)).collect()
}

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
    let start = match spec.start_share() {
        Some(_) => format!(
            "; then the index of one of {} public settings of the model, drawn in proportion to how well each explains the records, at \
             which the chains start",
            spec.sampler.ops.candidates
        ),
        None => String::new(),
    };
    format!(
        "{SEARCH_BY_SCORES}{start}; then, for each chain and each step, the gradient at the chain's current position, one number per \
         parameter{sampled}{sweeps}. {ANY_MODEL}"
    )
}

fn noise(spec: &JobSpec, sd: &str) -> String {
    let start = match spec.start_share() {
        Some(_) => {
            " None is added to the draw at which the chains start, which is random itself (the exponential mechanism) and charged by the \
             largest change of the log odds of two candidates by one record."
        }
        None => "",
    };
    noise_of_chains(spec, sd) + start
}

fn noise_of_chains(spec: &JobSpec, sd: &str) -> String {
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
    let ops = OpsSpec { candidates: raw.candidates };
    Ok(OwnSettings { stochastic: settings(raw, most_step)?, ops, ..OwnSettings::default() })
}

fn settings(raw: &RawSampler, most_step: f64) -> Result<StochasticSpec, JobError> {
    let spec = StochasticSpec {
        step: below("step", raw.step, most_step)?,
        friction: below("friction", raw.friction, MOST_FRICTION)?,
        decay: decay(raw)?,
        warmup: warmup(raw)?,
        locate_share: below("locate_share", raw.locate_share, 1.0)?,
        start_share: matches!(raw.start, Some(RawStart::Ops)).then(|| raw.start_share.unwrap_or(START_SHARE)),
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

/// Returns the exponent of decreasing steps.
fn decay(raw: &RawSampler) -> Result<Option<f64>, JobError> {
    let fault = |message: &str| Err(JobError::new("sampler.decay", message));
    match (raw.decay, &raw.warmup, &raw.start) {
        (None, ..) => Ok(None),
        (_, Some(Warmup::Sweeps(0)), _) => {
            fault("steps decrease to sampler.step over the warm-up, and the job has none: set sampler.warmup, or leave decay out")
        }
        (_, _, Some(RawStart::Ops)) => fault(
            "chains that start at a posterior sample have a constant step (Algorithm 3 of the paper): leave out decay or start",
        ),
        (decay, ..) => Ok(decay),
    }
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
    if let Some(share) = spec.start_share() {
        let locate = spec.gradient_search_share();
        if share + locate >= 1.0 {
            let message = format!(
                "with the {locate} of the search it leaves no budget for the chains: {share} and {locate} must add up to less than 1"
            );
            return Err(JobError::new("sampler.start_share", message));
        }
        ops::check_choice(spec, "sampler.start")?;
    }
    sizes(spec, scores.parameters())
}

#[cfg(test)]
#[path = "../tests/stochastic.rs"]
mod tests;
