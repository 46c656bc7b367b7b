//! What a job will buy, before anything is spent.
//!
//! The planner runs the job's own sampler against a normal stand-in for the likelihood (the guess of the
//! posterior), prices every query with the code that ledgers use, and counts how far each accounting
//! reaches. Nothing here sees a record, and nothing is spent.
//!
//! The law for small steps says what to expect in formulas (N parties, each with noise of its own; bound
//! L per unit step; tau the posterior sd of a coordinate given the others; d coordinates; mu the
//! budget): `ESS = (kappa / d) (mu / (2 L tau sqrt(N)))^2`, with kappa 0.45 for guided moves, 0.33 for
//! one coordinate with a random sign, 0.19 for Gaussian random walks. The cost model gives the same
//! figures where steps are small, and goes on being right where they are not.
//!
//! Before anybody has a guess of the posterior, what an algorithm's error will be is told as a range: from the bounds, the priors
//! and the numbers of records alone, in the best case and in a worse one.

mod advice;
mod compare;
mod cost_model;
mod driven;
mod outcome;
mod penalty_error;
mod plan;
mod prospect;
mod range;
mod samples;
mod stand_in;
#[cfg(test)]
mod tests;
mod theorem_1;
mod walk;
mod zcdp_budget;

pub use compare::{AlgorithmPlan, Range, compare};
pub use outcome::{ParameterPlan, PartyPlan, Plan, PlanError, kappa};
pub use plan::{expect, plan};
pub use prospect::{Hopeless, prospect};
pub use range::{ChainRange, range};
pub use stand_in::Guess;
pub use theorem_1::{Theorem1, iterations as theorem_1};
