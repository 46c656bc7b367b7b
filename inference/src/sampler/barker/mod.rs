//! `barker`: the noise-corrected Barker test on noisy log likelihood ratios, after Heikkilä, Jälkö, Dikmen & Honkela,
//! *Differentially Private Markov Chain Monte Carlo* (2019), section 3.
//!
//! Barker's test accepts if `Delta + V_log > 0`, where `V_log` is standard logistic. The noise of the ratio can replace a part of
//! it. With `Delta* ~ N(Delta, V_dp)`, `V_top ~ N(0, C - V_dp)` and a correction `V_cor` that makes `N(0, C) + V_cor` logistic,
//! the test accepts if `Delta* + V_top + V_cor > 0`. No such correction is exact for any C; [`correction`] states the error of
//! each.

mod correction;
mod decision;
mod diagnostics;
mod second_moment;

use crate::sampler::engine::Engine;
use crate::sampler::ratio_walk::RatioWalk;
use conclave_common::job::{JobSpec, ProposalKind, Radius};
use correction::Correction;
use second_moment::SamplingVariance;

use decision::Barker;
pub use diagnostics::BarkerDiagnostics;
pub use second_moment::CheckedVariance;

pub(super) const ENGINE: Engine = Engine {
    // A search is asked for before the first block of ratios over samples, which the budget must hold beside it.
    affords: Barker::affords,
    // Barker's test takes every second step of no length, whatever its noise.
    small_step_acceptance: |_| 0.5,
    noise_over_samples,
    ..Engine::of_ratios(|spec, parties| {
        Barker::hides(spec, parties)?;
        Ok(Box::new(RatioWalk::new(spec, parties, Barker::new(spec, parties)?)?))
    })
};

/// The noise of steps whose radii a search measures; of others nothing is known beforehand.
fn noise_over_samples(spec: &JobSpec) -> Option<f64> {
    let sampler = &spec.sampler;
    let measured = sampler.radius == Radius::Auto;
    match sampler.proposal {
        ProposalKind::Guided | ProposalKind::Componentwise if measured => {
            Some(sampler.barker.correction / (ProposalKind::ONE_COORDINATE * (1.0 + sampler.jitter)).powi(2))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
