//! The privacy budget `(epsilon, delta)` that protects one unit of privacy.

use super::error::AccountingError;
use super::gaussian_dp;
use super::privacy_unit::PrivacyUnit;
use super::reserve::{RESERVE_LOG2, grantable_reserve_units};

/// A privacy budget: `(epsilon, delta)` differential privacy for one unit.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Budget {
    /// Epsilon, positive and finite.
    pub epsilon: f64,
    /// The delta that pays for mu^2, strictly between 0 and 1.
    pub delta: f64,
    /// A further delta that blocks of subsampled releases may use, in units of 2^-60. The guarantee holds at `delta` plus this
    /// reserve. 0 when no blocks are allowed.
    #[serde(skip)]
    pub reserve_units: u64,
    /// The unit of privacy that the budget protects.
    #[serde(skip)]
    pub unit: PrivacyUnit,
}

impl Budget {
    /// Creates a checked budget that protects one row against replacement; [`Budget::of`] changes the unit.
    ///
    /// # Errors
    /// [`AccountingError::Epsilon`] unless epsilon is positive and finite, [`AccountingError::Delta`]
    /// unless delta is between 0 and 1.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, AccountingError> {
        if !(epsilon.is_finite() && epsilon > 0.0) {
            return Err(AccountingError::Epsilon(epsilon));
        }
        if !(delta > 0.0 && delta < 1.0) {
            return Err(AccountingError::Delta(delta));
        }
        Ok(Self { epsilon, delta, reserve_units: 0, unit: PrivacyUnit::default() })
    }

    /// Returns this budget with a reserve of delta for blocks, in units of 2^-60, in addition to its own delta.
    #[must_use]
    pub fn reserving(self, reserve_units: u64) -> Self {
        Self { reserve_units, ..self }
    }

    /// Returns the reserve that blocks may use: all but a millionth of it, see [`grantable_reserve_units`].
    #[must_use]
    pub fn grantable_reserve_units(&self) -> u64 {
        grantable_reserve_units(self.reserve_units)
    }

    /// Returns the delta of the whole guarantee: `delta` plus the reserve.
    #[must_use]
    pub fn promised_delta(&self) -> f64 {
        self.delta + self.reserve_units as f64 / (1_u64 << RESERVE_LOG2) as f64
    }

    /// Returns this budget for another unit of privacy.
    #[must_use]
    pub fn of(self, unit: PrivacyUnit) -> Self {
        Self { unit, ..self }
    }

    /// Returns the Gaussian-DP parameter of this budget, without the ledger's slack; see [`gaussian_dp::mu`].
    #[must_use]
    pub fn mu(&self) -> f64 {
        gaussian_dp::mu(self.epsilon, self.delta)
    }
}
