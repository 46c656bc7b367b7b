//! A parameter has a constraint, a transform to the real line, and a prior density.

mod constraint;
mod prior;
mod prior_parse;
#[cfg(test)]
mod tests;
mod transform;

pub use constraint::{Constraint, Interval, LEAST_MAGNITUDE};
pub use prior::Prior;
pub use prior_parse::PriorError;
pub use transform::Transform;
