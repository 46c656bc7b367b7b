//! The quadratic that all released log likelihood ratios of a run make, noise and all.
//!
//! Chains use each released ratio once, for one decision. Together the ratios say more: near a posterior
//! that is about normal, the log likelihood is a quadratic of the coordinates, and each ratio is that
//! quadratic's difference between two known places plus noise of known variance. So all ratios, those of
//! the search and of the warm-up too, are fitted by weighted least squares ([`NormalEquations`]), and the
//! fitted quadratic times the prior is a second answer to the chains' own question, at no further charge.
//!
//! That places were chosen by earlier answers does no harm: each answer's noise is fresh, so given the
//! quadratic the likelihood of all answers is the product over answers. The search's answers stand among
//! them once, and no curvature that it found serves as a prior.
//!
//! Chains that gradients drive are told slopes, which are linear in the same coefficients: each component of a gradient is an answer, and the
//! rest is the same.
//!
//! The chains' draws are a function of the same ratios, so the two answers must not be averaged; they check
//! each other. The fit is the sharper one where it applies, and says so where it doesn't
//! ([`FittedPosterior`]).

mod answers;
mod chi_square;
mod mapping;
mod normal;
mod normal_equations;
mod prior;
mod report;
mod solution;
mod terms;

pub(super) use answers::{Answer, QuadraticFit, Slope};
pub(super) use chi_square::ChiSquare;
pub use report::{FittedParameter, FittedPosterior};

#[cfg(test)]
#[path = "../tests/quadratic_fit.rs"]
mod tests;
