//! Plan of a job whose chains are driven by gradients, from its sampler's own settings and a guess of the posterior.

use super::outcome::{Counts, ParameterPlan, Plan, PlanError, zcdp_units};
use super::samples;
use super::stand_in::{Guess, StandIn};
use crate::sampler;
use crate::sampler::{Foreseen, StartingDraw, acceptance};
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{PrivacyFilter, mu_squared};

/// Advice mentions fewer effective draws than this.
const FEW: f64 = 100.0;

/// Plans a job that runs `hmc` or stochastic gradients. Errors: a guess that does not fit the job, or a budget that does not
/// afford a step.
pub(super) fn driven(spec: &JobSpec, guess: &Guess) -> Result<Plan, PlanError> {
    let stand_in = StandIn::new(spec, guess)?;
    let parties = PartyMetadata::of_rows(&guess.records);
    let spec = &*sampler::settled(spec, &parties);
    let (mean, precision) = stand_in.moments();
    let seen = (sampler::engine(spec.algorithm).foresee)(spec, &parties, mean, precision)?;
    let Foreseen { search, search_share, warmup, draws, step_share, acceptance, polish, start, .. } = seen;
    let (search, search_share) = start.map_or((search, search_share), |start| (search + 1, search_share + start.budget_share));
    // Steps that yield no draw are all paid before the first step that does.
    let (sweep_draws, sweep_share) = polish.map_or((0, 0.0), |polish| (polish.draws, polish.share));
    let kept_share = if polish.is_some() { sweep_share } else { draws as f64 * step_share };
    let before = if polish.is_some() { warmup + draws } else { warmup };
    let of_a_step = seen.messages_of_a_step;
    let budget = spec.privacy.budget;
    let limit = PrivacyFilter::new(&budget)?.limit_units();
    let affordable =
        |share: f64| search + of_a_step * ((share - search_share - sweep_share).max(0.0) / step_share) as u64 + sweep_draws;
    let chains = u64::from(spec.sampler.chains).max(1);
    // A step's queries are a gradient and a remainder that costs almost nothing. They are counted as queries of equal cost.
    let mean_price = step_share * limit as f64 / (of_a_step * chains) as f64;
    let zcdp = affordable(zcdp_units(&budget) as f64 / limit as f64);
    let mu0 = mu_squared(mean_price as u64).sqrt();
    let counts = Counts { gdp: affordable(1.0), zcdp, mu0, per_round: chains };
    let names = spec.model.parameter_names();
    let ess = names.iter().zip(&seen.ess).map(|(name, ess)| ParameterPlan { name: name.clone(), ess: *ess, kappa: f64::NAN });
    let mut plan = Plan {
        parties: counts.parties(spec, &guess.records),
        chains: spec.sampler.chains,
        acceptance_rate: acceptance,
        acceptance_small_steps: acceptance::expected_acceptance(0.0, 0.0),
        ess: ess.collect(),
        iterations: search + of_a_step * (warmup + draws) + sweep_draws,
        draws: if polish.is_some() { sweep_draws } else { seen.kept },
        stopped_by: if polish.is_none() && draws < spec.sampler.draws { "budget" } else { "draws" },
        budget_share: (search_share + before as f64 * step_share + kept_share).min(1.0),
        warmup_share: (search_share + before as f64 * step_share).min(1.0),
        advice: Vec::new(),
    };
    let mu_of_a_step = mu_squared((step_share * limit as f64) as u64).sqrt();
    let start = start.map(|start| prices(start, mu_of_a_step, step_share));
    plan.advice = start.into_iter().chain(advice(&plan)).chain(samples::advice(spec)).collect();
    Ok(plan)
}

/// States the prices of the posterior sample at which chains start, and of a step.
fn prices(start: StartingDraw, mu_of_a_step: f64, step_share: f64) -> String {
    let StartingDraw { mu, budget_share, power, range, .. } = start;
    let raised = if power < 1.0 { format!(", with likelihood and prior to the power {power:.3}") } else { String::new() };
    format!(
        "two kinds of release: the posterior sample at which the chains start has a range of {range:.3}{raised} and costs mu = {mu:.4}, {:.1}% of \
         the budget; a step of all chains costs mu = {mu_of_a_step:.4}, {:.3}% of it",
        100.0 * budget_share,
        100.0 * step_share
    )
}

fn advice(plan: &Plan) -> Vec<String> {
    let least = plan.ess.iter().map(|row| row.ess).fold(f64::INFINITY, f64::min);
    let few = (least < FEW).then(|| {
        format!(
            "{least:.0} effective draws leave a mean uncertain by {:.2} posterior sds: their number grows with the square of epsilon if epsilon is small, and \
             with the number of records",
            least.max(1.0).sqrt().recip()
        )
    });
    few.into_iter().collect()
}
