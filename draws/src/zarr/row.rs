//! One draw as a row of the store.

use conclave_common::query::Draw;

/// What one chain did in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Chain, from 0.
    pub chain: usize,
    /// Whether it belongs to the warm-up.
    pub warmup: bool,
    /// Parameters, on the scale that priors are declared on.
    pub theta: Vec<f64>,
    /// Whether the proposal was accepted.
    pub accepted: bool,
    /// The log acceptance ratio, noise and penalty included.
    pub log_alpha: f64,
    /// The round that decided it.
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
