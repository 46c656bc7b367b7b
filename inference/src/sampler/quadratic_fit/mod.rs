//! A quadratic fit to all released log likelihood ratios of a run, with their noise.
//!
//! Chains use each released ratio once, for one decision. Together the ratios carry more information. Near an approximately
//! normal posterior, the log likelihood is a quadratic of the coordinates. Each ratio is that quadratic's difference between two
//! known points plus noise of known variance. So all ratios, including those of the search and the warm-up, are fitted by
//! weighted least squares ([`NormalEquations`]). The fitted quadratic times the prior is a second estimate of the posterior, at
//! no further charge.
//!
//! The choice of points by earlier answers does not bias the fit: each answer's noise is fresh, so given the quadratic the
//! likelihood of all answers is the product over answers. The search's answers enter once, and no curvature from the search
//! serves as a prior.
//!
//! Gradient-driven chains receive slopes, which are linear in the same coefficients. Each component of a gradient is then an
//! answer, and the rest is the same.
//!
//! The chains' draws are a function of the same ratios, so the two estimates must not be averaged; they check each other. The fit
//! is more precise where it applies, and reports where it does not ([`FittedPosterior`]).

mod answers;
mod chi_square;
mod mapping;
mod normal;
mod normal_equations;
mod prior;
mod report;
mod solution;
mod terms;

pub(super) use answers::{Answer, AnswerKind, QuadraticFit, Slope};
pub(super) use chi_square::ChiSquare;
pub use report::{FittedParameter, FittedPosterior};

#[cfg(test)]
#[path = "../tests/quadratic_fit.rs"]
mod tests;
