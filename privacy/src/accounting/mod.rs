//! Privacy accounting by Gaussian differential privacy.
//!
//! A release of integers with L2 sensitivity `Delta` and noise scale `s` costs `mu^2 = Delta^2 / s^2`. Costs add, even if each
//! query is chosen from earlier answers (Smith & Thakurta 2022, "Fully Adaptive Composition for Gaussian Differential Privacy").
//! A budget `(epsilon, delta)` is therefore one number, the largest `mu` that it allows (Balle & Wang 2018), and the ledger is a
//! sum of integers.
//!
//! [`gaussian_dp`] computes figures without slack, for planning and reports. A ledger enforces [`PrivacyFilter`],
//! which deducts about 1e-6 of the budget because the discrete Gaussian is not exactly Gaussian. A release has a minimum price,
//! [`LEAST_CHARGE_UNITS`], so that no client can use up a ledger's noise draws without using up its budget.
//!
//! [`bounded_range`] prices a choice by the exponential mechanism from the range of its privacy loss.
//!
//! [`SubsampledRelease`] prices blocks of releases of hidden random samples by [`LossGrid`], a numerical upper bound of their
//! privacy curve.

mod adjacency;
mod block;
mod block_costs;
pub mod bounded_range;
mod budget;
mod charge;
mod connect_the_dots;
mod cover;
mod dominating_pair;
mod error;
mod filter;
mod fixed_point;
mod gaussian_cover;
pub mod gaussian_dp;
mod honest;
mod limits;
mod loss_grid;
mod normal;
mod open_blocks;
mod privacy_unit;
mod reserve;
mod sampling_probability;
mod slack;
mod spent;
mod subsampled;
mod subsampled_error;
#[cfg(test)]
mod tests;

pub use adjacency::Adjacency;
pub use block::BlockTerms;
pub use block_costs::BlockCosts;
pub use budget::Budget;
#[cfg(any(test, feature = "test-util"))]
pub use charge::charge_units;
pub use charge::{LEAST_CHARGE_UNITS, units_under_noise};
pub use cover::Cover;
pub use error::AccountingError;
pub use filter::{Priced, PrivacyFilter};
pub use fixed_point::{UNIT_LOG2, mu_squared, rounding};
pub use honest::Honest;
pub use loss_grid::LossGrid;
pub use open_blocks::OpenBlocks;
pub use privacy_unit::{MAX_RECORDS_PER_PERSON, PrivacyUnit};
pub use reserve::{RESERVE_LOG2, grantable_reserve_units};
pub use sampling_probability::SamplingProbability;
pub use slack::units_of_draw as slack_units_of_draw;
pub use spent::{FilterRefusal, Spent};
pub use subsampled::{
    BlockCharge, MOST_RELATIVE_SENSITIVITY, MOST_RELEASES, MOST_RESERVE_UNITS, PrivacyLosses, SubsampledRelease,
};
pub use subsampled_error::SubsampledError;
