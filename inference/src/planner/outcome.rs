//! A plan is what to expect of a job: rounds each party can afford, effective draws, and advice.

use crate::sampler::SamplerError;
use conclave_common::job::ProposalKind;
use conclave_common::query::QueryError;
use conclave_privacy::accounting::AccountingError;

/// Why a job can't be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The guess does not fit the job.
    #[error("the guess of the posterior cannot be used: {0}")]
    Guess(String),
    /// All of the budget goes into one round, whatever the chains then do.
    #[error("augmentation asks one round for the whole budget, and its draws cost nothing: there is no length of a run to plan")]
    ReleasedOnce,
    /// What the sampler refuses.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The walk was stopped.
    #[error("{0}")]
    Stopped(String),
    /// The budget can't be kept.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// A query that no party can answer.
    #[error(transparent)]
    Query(#[from] QueryError),
}

/// What to expect of a job.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Plan {
    /// What each party can afford, in the job's order.
    pub parties: Vec<PartyPlan>,
    /// Number of chains: the job's, or what its budget is worth.
    pub chains: u32,
    /// Expected share of proposals accepted while sampling: Proposition 1 of the penalty paper, averaged
    /// over the walk's steps. `NaN` (`null` in JSON) for Algorithm 3, as are effective draws: its chains
    /// walk on statistics that only records have.
    pub acceptance_rate: f64,
    /// The same in the limit of small steps, `2 Phi(-sigma / 2)`.
    pub acceptance_small_steps: f64,
    /// Effective draws of each parameter in the run as it will be: all of its draws, or as many as the
    /// budget holds.
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

/// Rounds (messages to every party, for all chains together) that one party's budget holds by each
/// accounting.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PartyPlan {
    /// The party.
    pub name: String,
    /// By Gaussian differential privacy, which is what its ledger counts.
    pub iterations_gdp: u64,
    /// By zero-concentrated differential privacy.
    pub iterations_zcdp: u64,
    /// By the penalty paper's composition (Theorems 2 and 3), as if every query cost what an average one
    /// costs.
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
    /// The constant of the law for small steps that this amounts to; `NaN` where the curvature of the
    /// guess is not positive.
    pub kappa: f64,
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
