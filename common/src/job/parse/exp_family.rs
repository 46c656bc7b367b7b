//! `algorithm = "penalty-exp-family"`: what follows from the model's statistic.

use crate::accounting::{PrivacyFilter, mu_squared};
use crate::job::{Algorithm, JobError, JobSpec, MAX_CHAINS, Radius, Warmup};
use crate::model::{self, StatisticGrid};
use crate::sampler::penalty_exp_family::noise_for;

/// What the charges of many releases may sum to beyond their exact cost, as a share: each is rounded up.
const ROUNDING: f64 = 1e-6;

/// Checks that the model has a statistic that can be released, and spreads the budget over the rounds that the job asks for, the same
/// for every component: that is `noise_sd = "auto"`. A `noise_sd` of the analyst's own, in widths of a component's range, is kept.
///
/// # Errors
/// A model without a bounded statistic, an explicit clip, or more releases in a message than a party takes.
pub(super) fn resolve(mut spec: JobSpec, auto_noise: bool) -> Result<JobSpec, JobError> {
    if spec.algorithm != Algorithm::PenaltyExpFamily {
        return Ok(spec);
    }
    let wrong = |message: String| JobError::new("algorithm", message);
    let model = model::build(&spec);
    let kind = spec.model.kind();
    let family = model.exponential_family().ok_or_else(|| {
        wrong(format!("the model `{kind}` is no exponential family with a bounded statistic: use algorithm = \"penalty\""))
    })?;
    if spec.privacy.clip.is_some() {
        let message =
            "a statistic is clamped to its public range, never clipped: leave the clip out, or use algorithm = \"penalty\"";
        return Err(JobError::new("privacy.clip", message));
    }
    let grids = StatisticGrid::of_family(family).map_err(|e| wrong(e.to_string()))?;
    let (chains, components) = (u64::from(spec.sampler.chains), grids.len() as u64);
    if chains * components > u64::from(MAX_CHAINS) {
        let message = format!(
            "{chains} chains release {components} numbers each in a round, {} together, and a message holds {MAX_CHAINS}: run fewer \
             chains or leave out predictors",
            chains * components
        );
        return Err(JobError::new("sampler.chains", message));
    }
    if auto_noise {
        let filter = PrivacyFilter::new(&spec.privacy.budget).map_err(|e| JobError::new("privacy", e.to_string()))?;
        let budget = mu_squared(filter.limit_units()) * (1.0 - search_share(&spec)) * (1.0 - ROUNDING);
        let each = budget / releases(&spec) as f64;
        spec.privacy.noise = noise_for(&grids, each).map_err(|e| JobError::new("privacy.noise_sd", e.to_string()))?;
    }
    Ok(spec)
}

/// Share of the budget that goes before the chains.
fn search_share(spec: &JobSpec) -> f64 {
    match (spec.sampler.locate_share, &spec.sampler.radius) {
        (share, _) if share > 0.0 => share,
        (_, Radius::Auto) => crate::sampler::CALIBRATE_SHARE,
        _ => 0.0,
    }
}

/// Releases of the whole statistic while the chains run, at most.
fn releases(spec: &JobSpec) -> u64 {
    let sweeps = match spec.sampler.warmup {
        Warmup::Sweeps(n) | Warmup::UntilRhat { max: n, .. } => n,
    };
    let steps = sweeps.saturating_mul(spec.dimension() as u64).saturating_add(spec.sampler.draws);
    steps.saturating_mul(u64::from(spec.sampler.chains))
}
