//! Parameters: their constraints, transforms to the real line and prior densities.

mod constraint;
mod family;
mod power;
mod prior;
mod prior_parse;
#[cfg(test)]
mod tests;
mod transform;

pub use constraint::{Constraint, Interval, LEAST_MAGNITUDE};
pub use family::Prior;
pub use prior_parse::PriorError;
pub use transform::Transform;
