//! An ended run and the figures that its verdict rests on.

use conclave_common::job::{Algorithm, JobSpec};
use conclave_inference::diagnostics::Summary;
use conclave_inference::sampler::Adequacy;

use crate::outcome::Outcome;

/// An ended run, as its verdict sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub spec: &'a JobSpec,
    /// UUID.
    pub job: &'a str,
    pub outcome: &'a Outcome,
    pub adequacy: &'a Adequacy,
    /// Each parameter's name and figures.
    pub rows: &'a [(&'a str, Summary)],
    /// Kept draws per chain.
    pub draws: u64,
}

impl Ended<'_> {
    /// Returns true for independent draws, which need no comparison of chains. Draws from releases are those of a Markov chain.
    pub(super) fn is_independent(&self) -> bool {
        self.spec.algorithm == Algorithm::Ops
    }

    /// Returns true for draws of a posterior given releases, whose number costs nothing.
    pub(super) fn is_released(&self) -> bool {
        self.outcome.report.inference.is_some()
    }

    /// Returns true for chains whose steps were never tested: their draws have a bias that no diagnostic shows.
    pub(super) fn is_untested(&self) -> bool {
        self.outcome.report.stochastic_gradients.as_ref().is_some_and(|of| of.polish.is_none())
    }

    /// Returns the largest split R-hat; `NaN` if that of any parameter is not defined.
    pub(super) fn rhat(&self) -> f64 {
        self.rows
            .iter()
            .map(|(_, row)| row.rhat)
            .fold(f64::NEG_INFINITY, |most, rhat| if most.is_nan() || rhat.is_nan() { f64::NAN } else { most.max(rhat) })
    }

    /// Returns the smallest effective sample size; 0 if that of any parameter is not defined.
    pub(super) fn ess(&self) -> f64 {
        self.rows.iter().map(|(_, row)| least_ess(row)).fold(f64::INFINITY, f64::min)
    }
}

/// Returns the smaller of a parameter's bulk and tail effective sample sizes; 0 if either is not defined.
pub(super) fn least_ess(row: &Summary) -> f64 {
    let [bulk, tail] = [row.ess_bulk, row.ess_tail].map(|ess| if ess.is_finite() { ess } else { 0.0 });
    bulk.min(tail)
}
