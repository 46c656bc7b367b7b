//! What has been spent: one sum for each thing that a ledger limits.

use super::fixed_point::mu_squared;
use super::{gaussian_dp, zcdp};

/// What a ledger has granted. Add-only; the ledger stores it and [`PrivacyFilter::resume`] takes it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// mu^2 in units of 2^-48.
    pub units: u64,
    /// The sum over noise draws of `6 / s^2`, in units of 2^-80.
    pub slack_units: u64,
    /// Noise draws.
    pub draws: u64,
    /// The reserve of delta that blocks of subsampled releases have taken, in units of 2^-60.
    pub reserve_units: u64,
}

impl Spent {
    /// The sum with another, field by field; `None` where it leaves 64 bits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            units: self.units.checked_add(other.units)?,
            slack_units: self.slack_units.checked_add(other.slack_units)?,
            draws: self.draws.checked_add(other.draws)?,
            reserve_units: self.reserve_units.checked_add(other.reserve_units)?,
        })
    }

    /// What is left beyond another, field by field; nothing where it is less.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            units: self.units.saturating_sub(other.units),
            slack_units: self.slack_units.saturating_sub(other.slack_units),
            draws: self.draws.saturating_sub(other.draws),
            reserve_units: self.reserve_units.saturating_sub(other.reserve_units),
        }
    }

    /// mu^2 as a float.
    #[must_use]
    pub fn mu_squared(&self) -> f64 {
        mu_squared(self.units)
    }

    /// A running epsilon at `delta`, for the owner to watch. What is promised is the budget, not this.
    #[must_use]
    pub fn epsilon(&self, delta: f64) -> f64 {
        gaussian_dp::epsilon(self.mu_squared().sqrt(), delta)
    }

    /// The same by zCDP (`rho = mu^2 / 2`).
    #[must_use]
    pub fn epsilon_zcdp(&self, delta: f64) -> f64 {
        zcdp::epsilon(0.5 * self.mu_squared(), delta)
    }
}

/// Why a filter refused. Nothing is charged by a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterRefusal {
    /// The privacy budget does not hold the charge.
    #[error("the privacy budget is spent")]
    Budget,
    /// The allowance for the discrete Gaussian's departure from the Gaussian is spent. Unreachable at the prices of this version.
    #[error("the allowance for discrete noise is spent")]
    Slack,
    /// The number of noise draws that one ledger grants is reached. Unreachable at the prices of this version.
    #[error("the number of releases that one ledger grants is reached")]
    Draws,
    /// The reserve of delta does not hold a block's part.
    #[error("the reserve of delta for subsampled releases is spent, or the owner has set none aside")]
    Reserve,
    /// The charge does not fit the ledger's integers.
    #[error("the charge is too large for a ledger")]
    Overflow,
}
