//! Outcome of planning: the rounds that each party can afford, effective draws, and advice.

use super::theorem_1::iterations as theorem_1;
use crate::figures::{advanced_composition, zcdp};
use crate::sampler::SamplerError;
use conclave_common::job::{JobSpec, ProposalKind};
use conclave_common::query::QueryError;
use conclave_privacy::accounting::{AccountingError, Budget, mu_squared};

/// Failure to plan a job.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The guess does not fit the job.
    #[error("the guess of the posterior cannot be used: {0}")]
    Guess(String),
    /// All of the budget is spent in one round, whatever the number of draws.
    #[error("augmentation spends the whole budget in one round, and its draws cost nothing: there is no run length to plan")]
    ReleasedOnce,
    /// The sampler refuses the job.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The walk was stopped.
    #[error("{0}")]
    Stopped(String),
    /// The accounting cannot represent the budget or a charge.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// A query that no party can answer.
    #[error(transparent)]
    Query(#[from] QueryError),
}

/// Forecast of a job.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Plan {
    /// Rounds that each party can afford, in the job's order.
    pub parties: Vec<PartyPlan>,
    /// Number of chains: the job's setting, or the number that its budget supports.
    pub chains: u32,
    /// Expected share of proposals accepted while sampling: Proposition 1 of the penalty paper, averaged over the walk's steps.
    /// `NaN` (`null` in JSON) for Algorithm 3, as are the effective draws, because its chains depend on statistics of the
    /// records.
    pub acceptance_rate: f64,
    /// Expected acceptance rate in the limit of small steps, `2 Phi(-sigma / 2)`.
    pub acceptance_small_steps: f64,
    /// Effective draws of each parameter in the forecast run: all of its draws, or the draws that the budget affords.
    pub ess: Vec<ParameterPlan>,
    /// Rounds of the forecast run, over all chains together, including `locate` and warm-up.
    pub iterations: u64,
    /// Kept draws per chain.
    pub draws: u64,
    /// Reason for the end of the run: `draws` or `budget`.
    pub stopped_by: &'static str,
    /// Share of the budget's mu^2 that the run spends.
    pub budget_share: f64,
    /// Share of the budget's mu^2 that goes into finding the mode and the warm-up.
    pub warmup_share: f64,
    /// Advice on how to obtain more, in sentences.
    pub advice: Vec<String>,
}

/// Rounds that one party's budget affords under each accounting. A round is one message to every party for all chains together.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PartyPlan {
    /// Name of the party.
    pub name: String,
    /// Rounds under Gaussian differential privacy, the accounting of the ledger.
    pub iterations_gdp: u64,
    /// Rounds under zero-concentrated differential privacy.
    pub iterations_zcdp: u64,
    /// Rounds under the penalty paper's composition (Theorems 2 and 3), as if every query had the average cost.
    pub iterations_advanced: u64,
    /// Rounds under the penalty paper's Theorem 1: its k(n) for this party's records.
    pub iterations_theorem_1: u64,
}

/// The numbers of rounds that a budget affords.
pub(super) struct Counts {
    pub(super) gdp: u64,
    pub(super) zcdp: u64,
    /// Gaussian-DP parameter of a query of average cost.
    pub(super) mu0: f64,
    /// Queries of a round.
    pub(super) per_round: u64,
}

impl Counts {
    pub(super) fn parties(&self, spec: &JobSpec, records: &[u64]) -> Vec<PartyPlan> {
        let (Self { gdp, zcdp, mu0, per_round }, Budget { epsilon, delta, .. }) = (self, spec.privacy.budget);
        let party = |(name, records): (&String, &u64)| PartyPlan {
            name: name.clone(),
            iterations_gdp: *gdp,
            iterations_zcdp: *zcdp,
            iterations_advanced: advanced_composition::queries_allowed(*mu0, epsilon, delta) / per_round,
            iterations_theorem_1: theorem_1(*mu0, *records, epsilon, delta) / per_round,
        };
        spec.parties.iter().zip(records).map(party).collect()
    }
}

/// Forecast for one parameter.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ParameterPlan {
    /// Name of the parameter.
    pub name: String,
    /// Expected effective sample size of its mean.
    pub ess: f64,
    /// Corresponding constant of the small-step law; `NaN` if the curvature of the guess is not positive.
    pub kappa: f64,
}

/// Returns the kappa of the small-step law at its optimal noise, as measured for this kind of proposal.
#[must_use]
pub fn kappa(kind: ProposalKind) -> f64 {
    match kind {
        ProposalKind::Guided => 0.45,
        ProposalKind::Componentwise => 0.33,
        _ => 0.19,
    }
}

/// Returns the mu^2 that zCDP (Bun & Steinke 2016) allows, in units of 2^-48: the largest whose epsilon at the budget's delta stays
/// within the budget.
pub(super) fn zcdp_units(budget: &Budget) -> u64 {
    let fits = |units: u64| zcdp::epsilon(0.5 * mu_squared(units), budget.delta) <= budget.epsilon;
    let (mut under, mut over) = (0_u64, 1_u64 << 62);
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if fits(middle) { under = middle } else { over = middle }
    }
    under
}
