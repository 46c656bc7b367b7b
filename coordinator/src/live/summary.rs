//! One parameter's posterior so far, in numbers.

use conclave_common::diagnostics::{ess_bulk, ess_tail, split_rhat};

use super::ParameterView;

/// `NaN` where a number is not known yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    /// Of all draws of all chains, on the scale that priors are declared on; so is `sd`.
    pub(crate) mean: f64,
    pub(crate) sd: f64,
    /// Of the sampled draws; so are the effective sample sizes.
    pub(crate) rhat: f64,
    pub(crate) ess_bulk: f64,
    pub(crate) ess_tail: f64,
}

impl ParameterView {
    /// Takes a moment: not for a thread that has to answer.
    pub(crate) fn summary(&self) -> Summary {
        let chains: Vec<&[f64]> = self.samples.iter().map(Vec::as_slice).collect();
        let drawn = || self.traces.iter().filter(|trace| trace.draws() > 0);
        let draws: f64 = drawn().map(|trace| trace.draws() as f64).sum();
        let mean = drawn().map(|trace| trace.mean() * trace.draws() as f64).sum::<f64>() / draws;
        let variance = drawn().map(|t| (t.sd().powi(2) + (t.mean() - mean).powi(2)) * t.draws() as f64).sum::<f64>() / draws;
        Summary { mean, sd: variance.sqrt(), rhat: split_rhat(&chains), ess_bulk: ess_bulk(&chains), ess_tail: ess_tail(&chains) }
    }
}
