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
mod sampling_variance;
mod second_moment;

pub(super) use decision::Barker;
pub use diagnostics::BarkerDiagnostics;
pub use second_moment::CheckedVariance;

#[cfg(test)]
mod tests;
