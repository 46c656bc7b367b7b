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
        // As in the result: the number of draws at most, for antithetic chains too. `NaN` stays `NaN`.
        let capped = |ess: f64| if ess > draws { draws } else { ess };
        Summary { mean, sd, rhat: split_rhat(&chains), ess_bulk: capped(ess_bulk(&chains)), ess_tail: capped(ess_tail(&chains)) }
    }
}

#[cfg(test)]
mod tests {
    use conclave_common::query::Draw;

    use crate::live::Live;

    /// Antithetic chains have an effective sample size beyond their length, which the page shows as little as the result does.
    #[test]
    fn the_effective_sample_size_is_at_most_the_number_of_draws() {
        let live = Live::new(1, 1);
        let swing = |i: u64| if i.is_multiple_of(2) { 1.0 } else { -1.0 } + 0.01 * (i * 37 % 101) as f64;
        let draw = |i: u64| Draw { chain: 0, warmup: false, theta: vec![swing(i)], accepted: true, log_alpha: 0.0, iteration: i };
        live.take(&(0..400).map(draw).collect::<Vec<_>>());
        let view = live.view(0..1).map(|view| view.parameters[0].summary());
        assert!(view.is_some_and(|of| of.ess_bulk == 400.0 && of.ess_tail <= 400.0), "{view:?}");
    }
}
