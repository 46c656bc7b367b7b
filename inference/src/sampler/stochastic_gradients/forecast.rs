//! Forecasts of a job before its first query: its expected error, and the course of a run for a guessed posterior, with the
//! coordinates and settings that the run itself will have.

use super::algorithm::coordinates;
use super::laws::law;
use super::polish::ACCEPTED;
use super::{Pace, Schedule, Settings, SettingsInput, Sgfs, Sweeps, usual_step};
use crate::sampler::hmc::{ForeseenSweeps, SEARCH, by_gradients};
use crate::sampler::{Allotment, Foreseen, GradientSearch, Located, Matrix, Outlook, SamplerError, Start, Target};
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::query::PartyMetadata;

/// Returns the Monte Carlo error of a posterior mean, in posterior sds, in the best case and in a worse one: one over the root of
/// the effective draws. Subsampled gradients cost the same as full ones at equal noise, and add their own noise. Errors: the
/// model has no gradients; the budget is invalid; a query has no price.
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    let (all, theirs) = noise(spec);
    let draws = f64::from(spec.sampler.chains) * foreseen_schedule(spec).time(spec.sampler.draws) / all;
    by_gradients(spec, parties, ((theirs / all).clamp(1e-3, 1.0), 1.0), draws)
}

/// Returns the lengths of the steps, if the budget affords the job's step or the default one.
fn foreseen_schedule(spec: &JobSpec) -> Schedule {
    let given = spec.sampler.stochastic;
    let pace = Pace { step: given.step.unwrap_or(usual_step(spec.algorithm)), friction: given.friction.unwrap_or(1.0) };
    let usual = || law(spec.algorithm, pace).map_or(0.0, |law| law.warmup()) as u64;
    Schedule::of(spec.algorithm, pace, given.decay, given.warmup.unwrap_or_else(usual))
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

/// Forecasts the run of a settled job whose posterior has this mean and precision, in unconstrained values. Errors: the model has
/// no gradients; the budget is too small for one step.
pub(crate) fn foresee(
    spec: &JobSpec,
    parties: &[PartyMetadata],
    mean: &[f64],
    precision: &[Vec<f64>],
) -> Result<Foreseen, SamplerError> {
    let target = &Target::new(spec);
    let scores = target.scores()?;
    let scores = scores.as_ref();
    let mut budget = Allotment::new(spec, parties)?;
    let search_share = spec.gradient_search_share();
    let found = GradientSearch::guessed(target, parties, budget.split_off(search_share), mean, precision)?;
    let start = match spec.start_share() {
        Some(_) => Some(Start::planned(target, parties, Located::of(&found), &mut budget)?.report),
        None => None,
    };
    let sweeps = Sweeps::planned(target, &Located::of(&found), &mut budget)?;
    let coordinates = coordinates(target, scores, found);
    let error = &Matrix::zeros(mean.len());
    let (coordinates, budget) = (&coordinates, &budget);
    let settings = Settings::new(&SettingsInput { target, scores, coordinates, error, parties, budget })?;
    let draws = settings.steps - settings.warmup;
    let kept = settings.kept() * f64::from(spec.sampler.chains);
    let steps = settings.steps_of_a_draw();
    let ess = |shares: Vec<f64>| kept / shares.iter().zip(&steps).map(|(share, v)| share * v).sum::<f64>();
    let ess_of_coordinate = |shares| sweeps.as_ref().map_or_else(|| ess(shares), Sweeps::ess);
    Ok(Foreseen {
        search: SEARCH,
        messages_of_a_step: 1,
        search_share,
        warmup: settings.warmup,
        draws,
        kept: settings.kept() as u64,
        start,
        step_share: settings.step_share * f64::from(spec.sampler.chains),
        ess: coordinates.shares().into_iter().map(ess_of_coordinate).collect(),
        acceptance: sweeps.as_ref().map_or(1.0, |_| ACCEPTED),
        polish: sweeps.as_ref().map(|sweeps| ForeseenSweeps { draws: spec.draws_asked(), share: sweeps.share }),
    })
}
