//! Forecasts of a job before its first query: its number of chains, and the course of a run for a guessed posterior, with the
//! coordinates and settings that the run itself will have.

use super::Settings;
use super::weighting::{PLAIN_SHARE, guessed, weighted_plan};
use crate::sampler::{Allotment, Coordinates, Outlook, SamplerError, StartingDraw, Target};
use conclave_common::job::JobSpec;
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

/// The forecast of a run for a guessed posterior. Shares are of the budget.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Foreseen {
    /// Number of messages of the search.
    pub(crate) search: u64,
    /// Share of the budget that is reserved for the search.
    pub(crate) search_share: f64,
    /// Number of steps of each chain before its kept draws.
    pub(crate) warmup: u64,
    /// Number of steps of each chain after them.
    pub(crate) draws: u64,
    /// Number of kept draws of each chain: one a step, but fewer where steps decrease.
    pub(crate) kept: u64,
    /// The posterior sample at which the chains start, if they do.
    pub(crate) start: Option<StartingDraw>,
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
    let (mut found, mut search_share) = guessed(&target, parties, &mut budget, mean, precision)?;
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
        kept: draws,
        start: None,
        step_share: settings.step_share * f64::from(spec.sampler.chains),
        ess: coordinates.shares().into_iter().map(ess).collect(),
        acceptance: settings.acceptance(),
        messages_of_a_step: settings.messages_of_a_step(),
        polish: None,
    })
}
