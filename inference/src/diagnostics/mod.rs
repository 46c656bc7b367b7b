//! Convergence diagnostics of Markov chains: rank-normalised split R-hat, bulk and tail effective sample size, Monte Carlo error,
//! and their [interpretation](Verdict) in sentences.
//!
//! The definitions follow Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and localization:
//! an improved R-hat for assessing convergence of MCMC", as computed by ArviZ 0.23. A chain is a slice of the draws of one
//! parameter, in order.
//!
//! A result that cannot be computed is `NaN`. Without draws, or with draws that are not finite, everything is `NaN`. With fewer
//! than four draws per chain, the diagnostics are `NaN`. R-hat is also `NaN` for a single chain. For chains that never moved,
//! R-hat, effective sample sizes and Monte Carlo errors are `NaN`.
//! Chains of unequal length are cut to the shortest.

mod chains;
mod ess;
mod mcse;
mod moments;
mod ranks;
mod rhat;
mod summary;
#[cfg(test)]
mod tests;
mod verdict;
mod worst_mixing;

pub use ess::{ess, ess_bulk, ess_tail};
pub use moments::quantile;
pub use rhat::split_rhat;
pub use summary::{Summary, summarise};
pub use verdict::{ONE_CHAIN, Verdict, verdict};
pub use worst_mixing::worst_mixing;
