//! Predictions from the draws of a job: expected outcomes at given covariates, new outcomes, contrasts, and average marginal effects.
//!
//! Nothing in this crate touches a file, a socket or a clock, and every seed is passed in. Rows of covariates pass through the assembly
//! that parties use ([`conclave_common::model::Assembly`]), so a prediction has the scaling of the fit.
//!
//! - [`Covariates`]: rows of covariates, read from texts and clamped as the model clamps records.
//! - [`Posterior`]: the draws of the model's parameters at one party, at the mean over parties, or at a new party.
//! - [`Predictor`]: the model's expected outcome; [`Predictor::contrasts`], [`Predictor::average_effects`], [`Predictor::outcomes`].
//! - [`Level`], [`Interval`]: equal-tailed intervals at any level.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod at;
mod average;
mod contrast;
mod covariates;
mod error;
mod interval;
mod law;
mod outcome;
mod posterior;
mod predictor;
mod summary;
mod table;
#[cfg(test)]
mod tests;

pub use at::parse_at;
pub use average::AverageEffect;
pub use contrast::{Contrast, Ratio};
pub use covariates::{Covariates, Row, Value};
pub use error::PredictError;
pub use interval::{Interval, Level, interval_of};
pub use posterior::{Posterior, Site};
pub use predictor::{Predictor, Quantity};
pub use summary::Summary;
pub use table::{Clamped, Table, TableRow};
