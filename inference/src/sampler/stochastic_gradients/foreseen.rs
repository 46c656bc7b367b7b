//! The forecast of a run for a guessed posterior, with the coordinates and settings that the run itself will have.

use super::algorithm::{LOCATE_SHARE, coordinates};
use super::polish::{ACCEPTED, Sweeps};
use super::settings::{Settings, SettingsInput};
use crate::sampler::error::SamplerError;
use crate::sampler::gradient_search::Located;
use crate::sampler::hmc::{Foreseen, ForeseenSweeps, SEARCH};
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::noisy_statistics::score_strategy::ScoreStrategy;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

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
    let search_share = spec.sampler.stochastic.locate_share.unwrap_or(LOCATE_SHARE);
    let part = budget.split_off(search_share);
    let covariance = factor(&Matrix::from_fn(mean.len(), |i, j| precision[i][j])).inverse();
    let found = ScoreStrategy::new(&target, scores.as_ref(), parties, &part)?.guessed(&target, mean, &covariance);
    let sweeps = Sweeps::planned(&target, &Located::of(&found), &mut budget)?;
    let coordinates = coordinates(&target, scores.as_ref(), found);
    let error = Matrix::zeros(mean.len());
    let means = SettingsInput {
        target: &target,
        scores: scores.as_ref(),
        coordinates: &coordinates,
        error: &error,
        parties,
        budget: &budget,
    };
    let settings = Settings::new(&means)?;
    let draws = settings.steps - settings.warmup;
    let kept = draws as f64 * f64::from(spec.sampler.chains);
    let steps = settings.steps_of_a_draw();
    let ess = |shares: Vec<f64>| kept / shares.iter().zip(&steps).map(|(share, v)| share * v).sum::<f64>();
    let ess_of_coordinate = |shares| sweeps.as_ref().map_or_else(|| ess(shares), Sweeps::ess);
    Ok(Foreseen {
        search: SEARCH,
        messages_of_a_step: 1,
        search_share,
        warmup: settings.warmup,
        draws,
        step_share: settings.step_share * f64::from(spec.sampler.chains),
        ess: coordinates.shares().into_iter().map(ess_of_coordinate).collect(),
        acceptance: sweeps.as_ref().map_or(1.0, |_| ACCEPTED),
        polish: sweeps.as_ref().map(|sweeps| ForeseenSweeps { draws: spec.draws_asked(), share: sweeps.share }),
    })
}
