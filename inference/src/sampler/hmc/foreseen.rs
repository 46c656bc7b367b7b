//! The forecast of a run for a guessed posterior, with the coordinates and settings that the run itself will have.

use super::algorithm::LOCATE_SHARE;
use super::coordinates::Coordinates;
use super::settings::Settings;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::noisy_statistics::score_strategy::ScoreStrategy;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

/// Usual number of messages of a search.
pub(crate) const SEARCH: u64 = 8;

/// The forecast of a run for a guessed posterior. Shares are of the budget.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Foreseen {
    /// Number of messages of the search.
    pub(crate) search: u64,
    /// Share of the budget that is reserved for the search.
    pub(crate) search_share: f64,
    /// Number of steps of each chain before its kept draws.
    pub(crate) warmup: u64,
    /// Number of kept draws of each chain.
    pub(crate) draws: u64,
    /// Share of a step of all chains.
    pub(crate) step_share: f64,
    /// Effective draws of all chains, per coordinate.
    pub(crate) ess: Vec<f64>,
    /// Number of messages of a step, including its test.
    pub(crate) messages_of_a_step: u64,
    /// Expected share of accepted steps.
    pub(crate) acceptance: f64,
    /// The final sweeps that yield the draws; `draws` then counts the steps before them. `None` if the steps yield the draws.
    pub(crate) polish: Option<ForeseenSweeps>,
}

/// Penalty sweeps at the end of chains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ForeseenSweeps {
    /// Number of draws of each chain, one message each.
    pub(crate) draws: u64,
    /// Share of the budget that is reserved for them.
    pub(crate) share: f64,
}

/// Forecasts the run of a settled job whose posterior has this mean and precision, in unconstrained values.
///
/// # Errors
/// The model has no gradients; the budget is too small for one step.
pub(crate) fn foresee(
    spec: &JobSpec,
    parties: &[PartyMetadata],
    mean: &[f64],
    precision: &[Vec<f64>],
) -> Result<Foreseen, SamplerError> {
    let target = Target::new(spec);
    let scores = target.model.scores().ok_or(SamplerError::NoScores)?;
    let mut budget = Allotment::new(spec, parties)?;
    let search_share = spec.sampler.hmc.locate_share.unwrap_or(LOCATE_SHARE);
    let part = budget.split_off(search_share);
    let covariance = factor(&Matrix::from_fn(mean.len(), |i, j| precision[i][j])).inverse();
    let found = ScoreStrategy::new(&target, scores.as_ref(), parties, &part)?.guessed(&target, mean, &covariance);
    let theta = target.space.theta_inside(spec, mean);
    let coordinates = Coordinates::new(&target, scores.as_ref(), found);
    let settings = Settings::new(&target, scores.as_ref(), &coordinates, &budget, parties.len())?;
    let sd = settings.sd(parties.len());
    let variances = coordinates.at(scores.as_ref(), &theta).map(|at| coordinates.noise(at.width, sd)).unwrap_or_default();
    let draws = settings.affordable - settings.warmup;
    let kept = draws as f64 * f64::from(spec.sampler.chains);
    let of_draw = |variance: &f64| settings.steps_of_a_draw(*variance);
    let ess = |shares: Vec<f64>| kept / shares.iter().zip(&variances).map(|(share, v)| share * of_draw(v)).sum::<f64>();
    Ok(Foreseen {
        search: SEARCH,
        search_share,
        warmup: settings.warmup,
        draws,
        step_share: settings.step_share * f64::from(spec.sampler.chains),
        ess: coordinates.shares().into_iter().map(ess).collect(),
        acceptance: settings.acceptance(),
        messages_of_a_step: settings.messages_of_a_step(),
        polish: None,
    })
}
