//! Convergence diagnostics of Markov chains: rank-normalised split R-hat, bulk and tail effective sample
//! size, Monte Carlo error, and [what they mean](Verdict) in sentences.
//!
//! After Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and
//! localization: an improved R-hat for assessing convergence of MCMC", in the form that ArviZ 0.23
//! computes. Chains are slices of draws of one parameter, in order.
//!
//! What cannot be computed is `NaN`: everything for no draws or draws that are not numbers, the
//! diagnostics for fewer than four draws per chain, R-hat for a single chain or for chains that never
//! moved. Chains of unequal length are cut to the shortest.

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
