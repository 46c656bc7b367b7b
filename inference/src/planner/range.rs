//! What a chain buys before anybody has a guess of the posterior: from bounds, priors and record counts alone, in the best case and in a
//! worse one.

use super::compare::Range;
use super::outcome::{Plan, PlanError};
use super::plan::plan;
use super::stand_in::Guess;
use crate::sampler::{Case, beforehand};
use conclave_common::job::JobSpec;

/// What to expect of a chain whose posterior nobody guesses.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ChainRange {
    /// Rounds of the run as it will be, over all chains together.
    pub rounds: Range,
    /// Kept draws per chain.
    pub draws: Range,
    /// Effective draws of the parameter that has the fewest.
    pub effective: Range,
}

/// Plans a job by a chain about what its bounds and priors say of the posterior, for independent parameters.
///
/// # Errors
/// As [`plan`].
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

/// The plan about the place that promises most.
fn of(spec: &JobSpec, records: &[u64], case: Case) -> Result<Plan, PlanError> {
    let total = records.iter().map(|n| *n as f64).sum();
    let mut found: Option<Plan> = None;
    for place in beforehand(spec, total, case) {
        let next = plan(spec, &Guess::around(spec, records.to_vec(), &place.theta, &place.sd))?;
        if found.as_ref().is_none_or(|plan| least(plan) < least(&next)) {
            found = Some(next);
        }
    }
    found.ok_or_else(|| PlanError::Guess("nothing is known of the posterior beforehand".to_owned()))
}

fn least(plan: &Plan) -> f64 {
    plan.ess.iter().map(|row| row.ess).filter(|ess| ess.is_finite()).fold(f64::INFINITY, f64::min)
}
