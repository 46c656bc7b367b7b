//! A draw as a row of the store.

use conclave_common::query::Draw;

/// The state of one chain after one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Chain, from 0.
    pub chain: usize,
    /// True for a draw of the warm-up.
    pub warmup: bool,
    /// Parameters on the scale that priors are declared on.
    pub theta: Vec<f64>,
    /// True if the proposal was accepted.
    pub accepted: bool,
    /// The log acceptance ratio, including noise and penalty.
    pub log_alpha: f64,
    /// The round of the decision.
    pub iteration: u64,
}

impl From<Draw> for Row {
    fn from(draw: Draw) -> Self {
        Self {
            chain: draw.chain as usize,
            warmup: draw.warmup,
            theta: draw.theta,
            accepted: draw.accepted,
            log_alpha: draw.log_alpha,
            iteration: draw.iteration,
        }
    }
}
