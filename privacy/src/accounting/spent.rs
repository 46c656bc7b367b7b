//! The sums of granted costs, one for each quantity that a ledger limits.

use super::fixed_point::mu_squared;
use super::gaussian_dp;

/// The costs that a ledger has granted. They only grow; the ledger stores them, and
/// [`PrivacyFilter::resume`](super::PrivacyFilter::resume) restores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// mu^2 in units of 2^-48.
    pub units: u64,
    /// The sum over noise draws of `6 / s^2`, in units of 2^-80.
    pub slack_units: u64,
    /// Noise draws.
    pub draws: u64,
    /// The part of the reserve of delta that blocks of subsampled releases have used, in units of 2^-60.
    pub reserve_units: u64,
}

impl Spent {
    /// Returns the sum with another, field by field; `None` if a field overflows 64 bits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            units: self.units.checked_add(other.units)?,
            slack_units: self.slack_units.checked_add(other.slack_units)?,
            draws: self.draws.checked_add(other.draws)?,
            reserve_units: self.reserve_units.checked_add(other.reserve_units)?,
        })
    }

    /// Returns the difference to another, field by field, saturating at 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            units: self.units.saturating_sub(other.units),
            slack_units: self.slack_units.saturating_sub(other.slack_units),
            draws: self.draws.saturating_sub(other.draws),
            reserve_units: self.reserve_units.saturating_sub(other.reserve_units),
        }
    }

    /// Returns mu^2 as a float.
    #[must_use]
    pub fn mu_squared(&self) -> f64 {
        mu_squared(self.units)
    }

    /// Returns a running epsilon at `delta`, for the owner to watch. The guarantee is the budget, not this figure.
    #[must_use]
    pub fn epsilon(&self, delta: f64) -> f64 {
        gaussian_dp::epsilon(self.mu_squared().sqrt(), delta)
    }
}

/// The reason for a refusal. A refusal charges nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterRefusal {
    /// The privacy budget does not hold the charge.
    #[error("the privacy budget is spent")]
    Budget,
    /// The slack for discrete noise is exhausted. Unreachable at the prices of this version.
    #[error("the allowance for discrete noise is spent")]
    Slack,
    /// The number of noise draws of one ledger is exhausted. Unreachable at the prices of this version.
    #[error("the number of releases that one ledger grants is reached")]
    Draws,
    /// The remaining reserve of delta is smaller than a block's part.
    #[error("the reserve of delta for subsampled releases is spent, or the owner has set none aside")]
    Reserve,
    /// The charge does not fit the ledger's integers.
    #[error("the charge is too large for a ledger")]
    Overflow,
}
