//! Forecast of a job's result before any budget is spent.
//!
//! The planner runs the job's own sampler against a normal stand-in for the likelihood, which it builds from the guess of the
//! posterior. It prices every query with the ledger's own code, and counts the rounds that each accounting allows. It reads no
//! record and spends no budget.
//!
//! The small-step law gives approximate formulas. Let N be the number of parties, each with its own noise; L the bound per unit
//! step; tau the conditional posterior sd of a coordinate; d the number of coordinates; mu the budget. Then
//! `ESS = (kappa / d) (mu / (2 L tau sqrt(N)))^2`, with kappa 0.45 for guided moves, 0.33 for one coordinate with a random sign,
//! and 0.19 for Gaussian random walks. The cost model agrees with the law for small steps, and stays valid for larger ones.
//!
//! Without a guess of the posterior, the error of an algorithm is reported as a range from the best case to a worse one. It is
//! computed from the bounds, the priors and the numbers of records only.

mod advice;
mod compare;
mod cost_model;
mod driven;
mod forecast;
mod outcome;
mod plan;
mod prospect;
mod samples;
mod stand_in;
#[cfg(test)]
mod tests;
mod theorem_1;
mod walk;

pub use compare::{AlgorithmPlan, ChainRange, MARGIN, Range, compare, range};
pub use outcome::{ParameterPlan, PartyPlan, Plan, PlanError, kappa};
pub use plan::{expect, plan};
pub use prospect::{Futility, prospect};
pub use stand_in::Guess;
