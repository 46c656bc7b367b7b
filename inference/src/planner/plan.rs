//! Planning: runs the cost model of a job and counts the rounds that each accounting allows.

use super::advice;
use super::cost_model::CostModel;
use super::driven::driven;
use super::outcome::{Counts, ParameterPlan, Plan, PlanError, zcdp_units};
use super::stand_in::Guess;
use super::walk::Walk;
use crate::sampler::{Expected, engine};
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::parameter::Constraint;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{PrivacyFilter, mu_squared};

/// Plans a job. `guess` has one record count per party, and one mean, row and column per parameter.
///
/// # Errors
/// [`PlanError`]: a guess that does not fit, or a job whose queries are invalid.
pub fn plan(spec: &JobSpec, guess: &Guess) -> Result<Plan, PlanError> {
    if spec.algorithm.follows_gradients() {
        return driven(spec, guess);
    }
    if spec.algorithm == Algorithm::Augmentation {
        return Err(PlanError::ReleasedOnce);
    }
    let forecast = forecast(spec, guess)?;
    let advice = advice::advice(&advice::Asked { spec, guess }, &forecast);
    Ok(Plan { advice, ..forecast.plan })
}

/// A plan without its advice, and what the advice rests on.
pub(super) struct PlanForecast {
    pub(super) plan: Plan,
    pub(super) known: advice::Known,
}

/// Plans a chain of ratios. Errors: those of [`plan`].
pub(super) fn forecast(spec: &JobSpec, guess: &Guess) -> Result<PlanForecast, PlanError> {
    let budget = spec.privacy.budget;
    let filter = PrivacyFilter::new(&budget)?;
    let costs = CostModel::run(spec, guess, filter.limit_units())?;
    let afford = |units: u64| costs.rounds_within(units);
    let gdp = afford(filter.limit_units());
    let zcdp = afford(zcdp_units(&budget).min(filter.limit_units()));
    let chains = u64::from(spec.sampler.chains);
    let statistics = spec.releases() == ["statistic"];
    // Algorithm 3 releases every component for every chain.
    let components =
        spec.build_model().exponential_family().filter(|_| statistics).map_or(1, |family| family.ranges().len() as u64);
    let per_round = (chains * components).max(1);
    let counts = Counts { gdp, zcdp, mu0: mu_squared(costs.mean(Walk::mean_price) as u64).sqrt(), per_round };
    let parties = counts.parties(spec, &guess.records);
    let before = costs.rounds_before_sampling();
    let wanted = before.saturating_add(spec.sampler.draws);
    let iterations = gdp.min(wanted);
    let draws = iterations.saturating_sub(before);
    let names = spec.model.parameter_names();
    let sigma2 = spec.ratio_variance();
    let effective = costs.effective(spec.sampler.draws, filter.limit_units());
    let kappas = costs.kappas(&spec.transform(), sigma2);
    let ess =
        names.iter().zip(effective).zip(kappas).map(|((name, ess), kappa)| ParameterPlan { name: name.clone(), ess, kappa });
    let limit = filter.limit_units() as f64;
    let plan = Plan {
        parties,
        chains: spec.sampler.chains,
        acceptance_rate: costs.mean(|walk| walk.acceptance),
        acceptance_small_steps: (engine(spec.algorithm).small_step_acceptance)(sigma2.sqrt()),
        ess: ess.collect(),
        iterations,
        draws,
        stopped_by: if gdp < wanted { "budget" } else { "draws" },
        budget_share: if gdp < wanted {
            costs.mean(|walk| walk.cost_of(walk.rounds_within(filter.limit_units()))) / limit
        } else {
            costs.cost_of(iterations) / limit
        }
        .min(1.0),
        warmup_share: (costs.cost_of(before.min(gdp)) / limit).min(1.0),
        advice: Vec::new(),
    };
    let known = advice::Known {
        sigma: sigma2.sqrt(),
        affordable: gdp.saturating_sub(before),
        needed: advice::Needed::of(spec, &costs, filter.limit_units()),
        uncorrelated: !statistics && unsaid(spec, guess),
    };
    Ok(PlanForecast { plan, known })
}

/// True if the guess contains several parameters that could be correlated, but no correlations. Parameters that sum to 1 are
/// correlated by construction.
fn unsaid(spec: &JobSpec, guess: &Guess) -> bool {
    let said = spec.plan.as_ref().is_some_and(|plan| plan.correlations.is_some());
    let free = spec.model.constraints().iter().filter(|constraint| !matches!(constraint, Constraint::Simplex { .. })).count();
    free > 1 && !said && guess.is_independent()
}

/// Returns the best-case forecast of a `noisy-statistics` job from its number of records per party; `None` for other algorithms.
///
/// # Errors
/// A number of counts that differs from the number of parties, or an invalid budget.
pub fn expect(spec: &JobSpec, records: &[u64]) -> Result<Option<Expected>, PlanError> {
    if records.len() != spec.parties.len() {
        return Err(PlanError::Guess(format!("{} record counts for {} parties", records.len(), spec.parties.len())));
    }
    Ok((engine(spec.algorithm).expectation)(spec, &PartyMetadata::of_rows(records))?)
}
