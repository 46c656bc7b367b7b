//! The interface of a gradient-driven chain, message by message.

use super::place::Field;
use conclave_common::query::{Draw, Query};
use conclave_privacy::mechanism::QueryKind;

/// The state of a chain at the midpoint of a step, with the released gradient.
pub(crate) struct Kicked {
    /// Place at the start of the step.
    pub(crate) from: Vec<f64>,
    /// Released slope of the log posterior at the midpoint.
    pub(crate) slope: Vec<f64>,
    /// Momentum before the kick.
    pub(crate) momentum: Vec<f64>,
    /// Midpoint, in the model's coordinates.
    pub(crate) middle: Vec<f64>,
    /// Slope of the log likelihood alone, with the variances of its noise.
    pub(crate) score: Vec<f64>,
    pub(crate) variances: Vec<f64>,
    /// If the midpoint was queried before, every party's earlier and present answers.
    pub(crate) repeated: Option<[Vec<Vec<i64>>; 2]>,
    /// Set if a correct chain follows its stationary law before the kick. In the middle of a trajectory its momenta are warmer.
    pub(crate) at_rest: bool,
}

/// The query of a step's test.
pub(crate) struct TestQuery {
    pub(crate) kind: QueryKind,
    pub(crate) from: Vec<f64>,
    pub(crate) to: Vec<f64>,
}

/// One chain: as many gradients per step as its settings say, and at most one test at its end.
pub(crate) trait Moves {
    /// Returns the query for the next gradient of a step, the first one or a later one; `None` if the step has ended.
    fn gradient_query(&mut self, field: &Field<'_>, first: bool) -> Option<Query>;

    /// Processes the gradient's totals and each party's release.
    fn kick(&mut self, field: &Field<'_>, totals: &[i128], released: Vec<Vec<i64>>) -> Option<Kicked>;

    /// Returns the query of the step's test, if there is one.
    fn test(&self) -> Option<TestQuery>;

    /// Sets the variance, over all parties, of the noise of the test's query.
    fn tested_with(&mut self, variance: f64);

    /// Processes the test's answer, summed over the parties in log-likelihood units, and accepts or rejects the step.
    fn decide(&mut self, step: f64, answer: f64);

    /// Returns the last step's log acceptance ratio and the variance of its test's noise; `None` if it was rejected without a
    /// query.
    fn tested(&self) -> Option<(f64, f64)>;

    /// Returns the state after the last step.
    fn draw(&self, warmup: bool, iteration: u64) -> Draw;
}
