//! The forecast of a chain of ratios: runs the cost model of a job and counts the rounds that each accounting allows.

use super::cost_model::CostModel;
use super::outcome::{Counts, ParameterPlan, Plan, PlanError, zcdp_units};
use super::stand_in::Guess;
use super::walk::Walk;
use crate::sampler::engine;
use conclave_common::job::JobSpec;
use conclave_common::parameter::Constraint;
use conclave_privacy::accounting::{PrivacyFilter, gaussian_dp, mu_squared};

/// Effective draws that the diagnostics require (Vehtari et al. 2021: 100 for each of four chains).
pub(super) const WANTED: f64 = 400.0;
/// Margin by which an estimate of a remedy exceeds the requirement.
const ROOM: f64 = 1.05;
/// Least share of a budget that is assumed to remain after a search.
const LEAST_KEPT: f64 = 0.05;

/// A plan without its advice, and what the advice rests on.
pub(super) struct PlanForecast {
    pub(super) plan: Plan,
    pub(super) known: Known,
}

/// Plans a chain of ratios. Errors: those of [`super::plan`].
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
    let known = Known {
        sigma: sigma2.sqrt(),
        affordable: gdp.saturating_sub(before),
        needed: Needed::of(spec, &costs, filter.limit_units()),
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

/// Inputs of the advice besides the plan.
pub(super) struct Known {
    /// Total noise sd of a release, summed over the parties.
    pub(super) sigma: f64,
    /// Kept draws per chain that the budget affords.
    pub(super) affordable: u64,
    pub(super) needed: Needed,
    /// True if the guess for several parameters contains no correlations.
    pub(super) uncorrelated: bool,
}

/// Budgets that yield any draws, or enough of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needed {
    /// Epsilon for the first kept draws, at the job's delta.
    pub(super) first: f64,
    /// Epsilon for [`WANTED`] effective draws of every parameter; `NaN` if those are unknown.
    pub(super) wanted: f64,
    /// Factor on the number of records that gives [`WANTED`] effective draws at the job's own budget.
    pub(super) records: f64,
}

impl Needed {
    /// A search takes a share of any budget. The warm-up and each draw have fixed costs. All costs fall as the number of records
    /// grows.
    pub(super) fn of(spec: &JobSpec, costs: &CostModel, limit_units: u64) -> Self {
        let (limit, delta) = (limit_units as f64, spec.privacy.budget.delta);
        let before = costs.rounds_before_sampling();
        let (begun, first) = (costs.cost_of(before), costs.cost_of(before + 1));
        let searched = costs.mean(|walk| walk.searched as f64).min(begun);
        let kept = (1.0 - searched / limit).max(LEAST_KEPT);
        let least = costs.efficiency.iter().copied().filter(|one| one.is_finite()).fold(f64::INFINITY, f64::min);
        let draws = WANTED / (least * f64::from(spec.sampler.chains)).max(f64::MIN_POSITIVE);
        let wanted = ROOM * (begun - searched + draws * (first - begun)) / kept;
        let epsilon = |units: f64| gaussian_dp::epsilon((units * mu_squared(1)).sqrt(), delta);
        let known = least.is_finite() && least > 0.0;
        Self {
            first: epsilon(ROOM * (first - searched) / kept),
            wanted: if known { epsilon(wanted) } else { f64::NAN },
            records: wanted / limit,
        }
    }
}
