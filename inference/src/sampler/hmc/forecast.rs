//! Forecasts of a job before its first query: its expected error, and the course of a run for a guessed posterior, with the
//! coordinates and settings that the run itself will have.

use super::settings::{EFFICIENCY, STEPS};
use super::weighting::{PLAIN_SHARE, search_share, weighted_plan};
use super::{Settings, dp_hmc, law};
use crate::sampler::gradient_search::locate_share;
use crate::sampler::noisy_statistics::expected::OVERHEAD;
use crate::sampler::noisy_statistics::{WeightedStrategy, of_scores, weighted_outlook};
use crate::sampler::{Allotment, Coordinates, GradientSearch, Outlook, SamplerError, Target};
use conclave_common::job::{JobSpec, Weights};
use conclave_common::query::PartyMetadata;

/// Usual number of messages of a search.
pub(crate) const SEARCH: u64 = 8;
/// Number of chains by the effective draws of all chains, if the job leaves it open. Each chain pays for its own warm-up, and
/// R-hat is unreliable with few draws per chain.
const CHAINS: [(f64, u32); 2] = [(200.0, 4), (40.0, 2)];

/// Returns the number of chains that suits the parties' budgets, at most `most`, from the expected effective draws of a job with
/// unlimited draws. It uses public numbers only. Effective draws are near the worse case on real data, and near the best one on
/// uniform predictors, so the geometric mean of the two errors is used.
pub(crate) fn chains_worth(Outlook { best, worse }: Outlook, most: u32) -> u32 {
    let ess = (best * worse).recip();
    let chains = CHAINS.into_iter().find(|(least, _)| ess >= *least).map_or(1, |(_, chains)| chains);
    chains.min(most)
}

/// Returns the Monte Carlo error of a posterior mean, in posterior sds, in the best case and in a worse one: one over the root of
/// the effective draws. Errors: the model has no gradients; the budget is invalid; a query has no price.
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    let hmc = spec.sampler.hmc;
    let (chains, draws) = (f64::from(spec.sampler.chains), spec.sampler.draws as f64);
    if spec.runs_dp_hmc() {
        let (of_budget, of_draw) = dp_hmc::price_of_a_draw(spec);
        return by_gradients(spec, parties, (1.0, of_budget), chains * draws / of_draw);
    }
    let (step, gamma) = (hmc.step.unwrap_or(STEPS[0]), hmc.friction.unwrap_or(1.0));
    let most = EFFICIENCY * chains * draws / law::variance_of(step, gamma);
    let plain = by_gradients(spec, parties, (EFFICIENCY, 1.0), most)?;
    let target = Target::new(spec);
    let Some(share) = search_share(&target, parties)? else { return Ok(plain) };
    let Some(once) = of_frames(&target, parties, share)? else { return Ok(plain) };
    let weighted = errors(once, (1.0 - OVERHEAD) / (1.0 - share) / EFFICIENCY, most);
    Ok(match spec.weights {
        Weights::Auto => Outlook { best: weighted.best.min(plain.best), worse: weighted.worse.min(plain.worse) },
        _ => weighted,
    })
}

/// Returns the error of one gradient of records with leverage weights under the whole budget; `None` where no frame can be learnt. In the
/// best case all probabilities are even. Errors: the job insists on weights, and a party protects another unit than rows.
fn of_frames(target: &Target, parties: &[PartyMetadata], share: f64) -> Result<Option<Outlook>, SamplerError> {
    /// Ratio of the worse case to the best one: of rare outcomes and heavy tails of the predictors.
    const WORSE: f64 = 2.5;
    let whole = Allotment::new(&target.spec, parties)?;
    let part = whole.clone().split_off(share);
    if WeightedStrategy::of_chains(target, target.scores()?.as_ref(), parties, &part)?.is_none() {
        return Ok(None);
    }
    let once = weighted_outlook(target, parties, &whole)?;
    Ok(once.map(|once| Outlook { best: once.best, worse: WORSE * once.best }))
}

/// Returns the errors of at most `most` effective draws, from those of one gradient under the whole budget and their ratio of variances.
fn errors(once: Outlook, part: f64, most: f64) -> Outlook {
    // There are no more draws than the job asks for.
    let error = |once: f64| (once * once * part).max(most.recip()).sqrt();
    Outlook { best: error(once.best), worse: error(once.worse) }
}

/// Returns the outlook of a job whose chains weight no record. Errors: those of [`outlook`].
pub(super) fn plain_outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    outlook(&JobSpec { weights: Weights::Never, ..spec.clone() }, parties)
}

/// Returns the error of at most `most` effective draws that have a part `kappa` of the greatest possible efficiency, or a `price` in
/// units of a single score.
///
/// Gradients that are released one after the other determine the mean as precisely as one gradient whose noise is that of their
/// average. So the Monte Carlo error follows from the error of a single score under the whole budget. Errors: those of
/// [`outlook`].
pub(in crate::sampler) fn by_gradients(
    spec: &JobSpec,
    parties: &[PartyMetadata],
    (kappa, price): (f64, f64),
    most: f64,
) -> Result<Outlook, SamplerError> {
    let target = Target::new(spec);
    let once = of_scores(&target, target.scores()?.as_ref(), parties, &Allotment::new(spec, parties)?)?;
    let part = (1.0 - OVERHEAD) / (1.0 - locate_share(spec)) / kappa;
    Ok(errors(once, part * price, most))
}

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

/// Forecasts the run of a settled job whose posterior has this mean and precision, in unconstrained values. Errors: the model has
/// no gradients; the budget is too small for one step.
pub(crate) fn foresee(
    spec: &JobSpec,
    parties: &[PartyMetadata],
    mean: &[f64],
    precision: &[Vec<f64>],
) -> Result<Foreseen, SamplerError> {
    let target = Target::new(spec);
    let scores = target.scores()?;
    let mut budget = Allotment::new(spec, parties)?;
    let (mut found, mut search_share) = GradientSearch::guessed_of_chains(&target, parties, &mut budget, mean, precision)?;
    let theta = target.space.theta_inside(spec, mean);
    let (coordinates, settings) = match weighted_plan(&target, &found, &budget, parties.len())? {
        Some(plan) => (plan.coordinates, plan.settings),
        None => {
            if found.frame.take().is_some() {
                let _ = budget.split_off(PLAIN_SHARE);
                search_share += PLAIN_SHARE * (1.0 - search_share);
            }
            let coordinates = Coordinates::new(&target, scores.as_ref(), found);
            let settings = Settings::new(&target, scores.as_ref(), &coordinates, &budget, parties.len())?;
            (coordinates, settings)
        }
    };
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
