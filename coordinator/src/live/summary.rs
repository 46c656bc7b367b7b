//! Summary of one parameter's posterior so far.

use conclave_inference::diagnostics::{ess_bulk, ess_tail, split_rhat};
use conclave_pages::plot::Trace;

use super::chains::ParameterView;

/// Figures of one parameter; `NaN` if not known yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    /// Mean of all draws of all chains, on the scale that priors are declared on; `sd` likewise.
    pub(crate) mean: f64,
    pub(crate) sd: f64,
    /// R-hat of the sampled draws; the effective sample sizes likewise.
    pub(crate) rhat: f64,
    pub(crate) ess_bulk: f64,
    pub(crate) ess_tail: f64,
}

impl ParameterView {
    /// Computes the summary. Slow: call it on a thread that may block.
    pub(crate) fn summary(&self) -> Summary {
        let chains: Vec<&[f64]> = self.samples.iter().map(Vec::as_slice).collect();
        let drawn = || self.traces.iter().map(|trace| (trace, trace.draws() as f64)).filter(|(_, count)| *count > 0.0);
        let draws: f64 = drawn().map(|(_, count)| count).sum();
        let mean = drawn().map(|(trace, count)| trace.mean() * count).sum::<f64>() / draws;
        // Variation within the chains and between them.
        let within = |trace: &Trace, count: f64| if count > 1.0 { trace.sd().powi(2) * (count - 1.0) } else { 0.0 };
        let squares: f64 = drawn().map(|(trace, count)| within(trace, count) + (trace.mean() - mean).powi(2) * count).sum();
        let sd = (squares / (draws - 1.0)).sqrt();
        Summary { mean, sd, rhat: split_rhat(&chains), ess_bulk: ess_bulk(&chains), ess_tail: ess_tail(&chains) }
    }
}
