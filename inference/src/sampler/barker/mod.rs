//! `barker`: the noise-corrected Barker test on noisy log likelihood ratios, after Heikkilä, Jälkö, Dikmen & Honkela, *Differentially
//! Private Markov Chain Monte Carlo* (2019), section 3.
//!
//! Barker's test accepts where `Delta + V_log > 0`, `V_log` standard logistic. Noise that is in the ratio anyway may stand in for a part of
//! it: with `Delta* ~ N(Delta, V_dp)`, `V_top ~ N(0, C - V_dp)` and a correction `V_cor` that makes `N(0, C) + V_cor` logistic, one accepts
//! where `Delta* + V_top + V_cor > 0`. No such correction is exact for any C; how far each is off stands at [`correction`].

mod correction;
mod decision;
mod diagnostics;
mod engine;
mod sampling_variance;
mod second_moment;

pub(super) use decision::Barker;
pub use diagnostics::BarkerDiagnostics;
pub(super) use engine::BarkerEngine;
pub use second_moment::CheckedVariance;

#[cfg(test)]
mod tests;
