//! Range of a chain's results without a guess of the posterior: from bounds, priors and record counts alone, in the best case and
//! in a worse one.

use super::compare::Range;
use super::outcome::{Plan, PlanError};
use super::plan::plan;
use super::stand_in::Guess;
use crate::sampler::{Case, beforehand};
use conclave_common::job::JobSpec;

/// Forecast for a chain without a guess of the posterior.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ChainRange {
    /// Rounds of the forecast run, over all chains together.
    pub rounds: Range,
    /// Kept draws per chain.
    pub draws: Range,
    /// Effective draws of the parameter with the fewest.
    pub effective: Range,
}

/// Plans a job with a chain from the posterior that its bounds and priors imply, with independent parameters.
///
/// # Errors
/// The errors of [`plan`].
pub fn range(spec: &JobSpec, records: &[u64]) -> Result<ChainRange, PlanError> {
    let (best, worse) = (of(spec, records, Case::Best)?, of(spec, records, Case::Worse)?);
    let between = |figure: fn(&Plan) -> f64| {
        let (best, worse) = (figure(&best), figure(&worse));
        Range { best: best.max(worse), worse: worse.min(best) }
    };
    Ok(ChainRange {
        rounds: between(|plan| plan.iterations as f64),
        draws: between(|plan| plan.draws as f64),
        effective: between(least),
    })
}

/// Returns the plan at the position with the most effective draws.
fn of(spec: &JobSpec, records: &[u64], case: Case) -> Result<Plan, PlanError> {
    let total = records.iter().map(|n| *n as f64).sum();
    let mut found: Option<Plan> = None;
    for place in beforehand(spec, total, case) {
        let next = plan(spec, &Guess::around(spec, records.to_vec(), &place.theta, &place.sd))?;
        if found.as_ref().is_none_or(|plan| least(plan) < least(&next)) {
            found = Some(next);
        }
    }
    found.ok_or_else(|| PlanError::Guess("the bounds and priors give no information about the posterior".to_owned()))
}

fn least(plan: &Plan) -> f64 {
    plan.ess.iter().map(|row| row.ess).filter(|ess| ess.is_finite()).fold(f64::INFINITY, f64::min)
}
