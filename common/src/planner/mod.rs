//! What a job will buy, before anything is spent.
//!
//! The planner runs the job's own sampler against a normal stand-in for the likelihood (the guess of the posterior), prices every query
//! with the code that ledgers use, and counts how far each accounting reaches. Nothing here sees a record, and nothing is spent.
//!
//! The law for small steps says what to expect in formulas (N parties, each with noise of its own; bound L per unit step; tau the
//! posterior sd of a coordinate given the others; d coordinates; mu the budget): `ESS = (kappa / d) (mu / (2 L tau sqrt(N)))^2`, with kappa
//! 0.45 for guided moves, 0.33 for one coordinate with a random sign, 0.19 for Gaussian random walks. The walk here gives the same
//! figures where steps are small, and goes on being right where they are not.

mod advice;
mod stand_in;
#[cfg(test)]
mod tests;
mod theorem_1;
mod walk;

use crate::accounting::{AccountingError, Budget, PrivacyFilter, advanced_composition, mu_squared, zcdp};
use crate::job::{Algorithm, JobSpec, ProposalKind};
use crate::model;
use crate::sampler::{SamplerError, penalty};

pub use stand_in::Guess;
pub use theorem_1::{Theorem1, iterations as theorem_1};
use walk::Walk;

/// Why a job can't be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The guess does not fit the job.
    #[error("the guess of the posterior cannot be used: {0}")]
    Guess(String),
    /// What the sampler refuses.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The budget can't be kept.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// A query that no party can answer.
    #[error(transparent)]
    Query(#[from] crate::model::QuestionError),
}

/// What to expect of a job.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Plan {
    /// What each party can afford, in the job's order.
    pub parties: Vec<PartyPlan>,
    /// Expected share of proposals accepted while sampling: Proposition 1 of the penalty paper, averaged over the walk's steps. `NaN`
    /// (`null` in JSON) for Algorithm 3, as are effective draws: its chains walk on statistics that only records have.
    pub acceptance_rate: f64,
    /// The same in the limit of small steps, `2 Phi(-sigma / 2)`.
    pub acceptance_small_steps: f64,
    /// Effective draws of each parameter in the run as it will be: all of its draws, or as many as the budget holds.
    pub ess: Vec<ParameterPlan>,
    /// Rounds of the run as it will be, over all chains together, `locate` and warm-up included.
    pub iterations: u64,
    /// Kept draws per chain.
    pub draws: u64,
    /// `draws` or `budget`.
    pub stopped_by: &'static str,
    /// Share of the budget's mu^2 that the run spends.
    pub budget_share: f64,
    /// Share of the budget's mu^2 that goes into finding the mode and the warm-up.
    pub warmup_share: f64,
    /// What to change to get more, in sentences.
    pub advice: Vec<String>,
}

/// Rounds (messages to every party, for all chains together) that one party's budget holds by each accounting.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PartyPlan {
    /// The party.
    pub name: String,
    /// By Gaussian differential privacy, which is what its ledger counts.
    pub iterations_gdp: u64,
    /// By zero-concentrated differential privacy.
    pub iterations_zcdp: u64,
    /// By the penalty paper's composition (Theorems 2 and 3), as if every query cost what an average one costs.
    pub iterations_advanced: u64,
    /// By the penalty paper's Theorem 1: its k(n) for this party's records.
    pub iterations_theorem_1: u64,
}

/// One parameter of a plan.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ParameterPlan {
    /// The parameter.
    pub name: String,
    /// Expected effective sample size of its mean.
    pub ess: f64,
    /// The constant of the law for small steps that this amounts to; `NaN` where the curvature of the guess is not positive.
    pub kappa: f64,
}

/// Plans a job. `guess` has one record count per party and one mean, row and column per parameter.
///
/// # Errors
/// [`PlanError`]: a guess that does not fit, or a job whose queries can't be asked.
pub fn plan(spec: &JobSpec, guess: &Guess) -> Result<Plan, PlanError> {
    let budget = spec.privacy.budget;
    let filter = PrivacyFilter::new(&budget)?;
    let walk = Walk::run(spec, guess, filter.limit_units())?;
    let afford = |units: u64| walk.rounds_within(units);
    let gdp = afford(filter.limit_units());
    let zcdp = afford(zcdp_units(&budget).min(filter.limit_units()));
    let chains = u64::from(spec.sampler.chains);
    let statistics = spec.algorithm == Algorithm::PenaltyExpFamily;
    // Algorithm 3 releases every component for every chain.
    let components =
        model::build(spec).exponential_family().filter(|_| statistics).map_or(1, |family| family.ranges().len() as u64);
    let per_round = (chains * components).max(1);
    let mu0 = mu_squared(walk.mean_price() as u64).sqrt();
    let advanced = advanced_composition::queries_allowed(mu0, budget.epsilon, budget.delta) / per_round;
    let parties = spec.parties.iter().zip(&guess.records).map(|(name, records)| PartyPlan {
        name: name.clone(),
        iterations_gdp: gdp,
        iterations_zcdp: zcdp,
        iterations_advanced: advanced,
        iterations_theorem_1: theorem_1(mu0, *records, budget.epsilon, budget.delta).k / per_round,
    });
    let parties = parties.collect();
    let before = walk.rounds_before_sampling();
    let wanted = before.saturating_add(spec.sampler.draws);
    let iterations = gdp.min(wanted);
    let draws = iterations.saturating_sub(before);
    let names = spec.model.parameter_names();
    let sigma2 = spec.parties.len() as f64 * spec.privacy.noise.variance();
    let ess = names.iter().zip(walk.efficiency()).zip(walk.kappas(sigma2)).map(|((name, efficiency), kappa)| ParameterPlan {
        name: name.clone(),
        ess: efficiency * (draws * chains) as f64,
        kappa,
    });
    let limit = filter.limit_units() as f64;
    let mut plan = Plan {
        parties,
        acceptance_rate: walk.acceptance(),
        acceptance_small_steps: if statistics { f64::NAN } else { penalty::expected_acceptance(0.0, sigma2.sqrt()) },
        ess: ess.collect(),
        iterations,
        draws,
        stopped_by: if gdp < wanted { "budget" } else { "draws" },
        budget_share: (walk.cost_of(iterations) / limit).min(1.0),
        warmup_share: (walk.cost_of(before.min(gdp)) / limit).min(1.0),
        advice: Vec::new(),
    };
    plan.advice = advice::advice(spec, &plan, sigma2.sqrt(), gdp.saturating_sub(before));
    Ok(plan)
}

/// The mu^2 that zCDP allows, in units of 2^-48: the largest whose epsilon at the budget's delta stays within the budget.
fn zcdp_units(budget: &Budget) -> u64 {
    let fits = |units: u64| zcdp::epsilon(0.5 * mu_squared(units), budget.delta) <= budget.epsilon;
    let (mut under, mut over) = (0_u64, 1_u64 << 62);
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if fits(middle) { under = middle } else { over = middle }
    }
    under
}

/// Kappa of the law for small steps at its best noise, as measured for this kind of proposal.
#[must_use]
pub fn kappa(kind: ProposalKind) -> f64 {
    match kind {
        ProposalKind::Guided => 0.45,
        ProposalKind::Componentwise => 0.33,
        _ => 0.19,
    }
}
