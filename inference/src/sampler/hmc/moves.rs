//! What a chain that gradients drive is asked for and told, message by message.

use super::place::Field;
use conclave_common::query::{Draw, Query};
use conclave_privacy::mechanism::QueryKind;

/// What a chain was told at the middle of a step.
pub(crate) struct Kicked {
    /// Where the step began.
    pub(crate) from: Vec<f64>,
    /// The released slope of the log posterior at the middle.
    pub(crate) slope: Vec<f64>,
    /// The momentum before.
    pub(crate) momentum: Vec<f64>,
    /// The middle, in the model's coordinates.
    pub(crate) middle: Vec<f64>,
    /// The slope of the log likelihood alone, with the variances of its noise.
    pub(crate) score: Vec<f64>,
    pub(crate) variances: Vec<f64>,
    /// Every party's answers where the middle was asked about before: those, and these.
    pub(crate) repeated: Option<[Vec<Vec<i64>>; 2]>,
    /// Whether right chains are in their own law before the kick: in the middle of a trajectory they are warmer.
    pub(crate) at_rest: bool,
}

/// The question of a step's test.
pub(crate) struct Question {
    pub(crate) kind: QueryKind,
    pub(crate) from: Vec<f64>,
    pub(crate) to: Vec<f64>,
}

/// One chain: as many gradients a step as its settings say, and a test at its end, or none.
pub(crate) trait Moves {
    /// The question for the next gradient of a step, the first of it or a later one; `None` where the step is over.
    fn question(&mut self, field: &Field<'_>, first: bool) -> Option<Query>;

    /// Takes the gradient's totals, and what each party released of them.
    fn kick(&mut self, field: &Field<'_>, totals: &[i128], released: Vec<Vec<i64>>) -> Option<Kicked>;

    /// The question of the step's test, where there is one to ask.
    fn test(&self) -> Option<Question>;

    /// Takes note of the variance of the noise, over all parties, that the test is asked with.
    fn tested_with(&mut self, variance: f64);

    /// Takes what was asked, over all parties, in log-likelihood units, and accepts or rejects the step.
    fn decide(&mut self, step: f64, told: f64);

    /// The last step's log acceptance ratio and the variance of its test's noise; `None` where it was rejected unasked.
    fn tested(&self) -> Option<(f64, f64)>;

    /// The state after the last step.
    fn draw(&self, warmup: bool, iteration: u64) -> Draw;
}
