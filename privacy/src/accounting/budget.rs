//! A budget is the `(epsilon, delta)` that protects one unit of privacy.

use super::error::AccountingError;
use super::gaussian_dp;
use super::privacy_unit::PrivacyUnit;
use super::reserve::{RESERVE_LOG2, grantable_reserve_units};

/// A privacy budget: `(epsilon, delta)` differential privacy of one unit.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Budget {
    /// Epsilon, positive and finite.
    pub epsilon: f64,
    /// Delta of what is charged by mu², strictly between 0 and 1.
    pub delta: f64,
    /// What blocks of subsampled releases may take of delta beside that, in units of 2^-60: the promise is at `delta` plus this. 0 where
    /// there are none.
    #[serde(skip)]
    pub reserve_units: u64,
    /// What is protected.
    #[serde(skip)]
    pub unit: PrivacyUnit,
}

impl Budget {
    /// A checked budget that protects one row against replacement; see [`Budget::of`].
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

    /// The same with so many units of 2^-60 of delta for blocks, beside its own.
    #[must_use]
    pub fn reserving(self, reserve_units: u64) -> Self {
        Self { reserve_units, ..self }
    }

    /// What blocks may take of the reserve: all of it but a millionth, see [`grantable_reserve_units`].
    #[must_use]
    pub fn grantable_reserve_units(&self) -> u64 {
        grantable_reserve_units(self.reserve_units)
    }

    /// The delta of the whole promise.
    #[must_use]
    pub fn promised_delta(&self) -> f64 {
        self.delta + self.reserve_units as f64 / (1_u64 << RESERVE_LOG2) as f64
    }

    /// The same figures for another unit of privacy.
    #[must_use]
    pub fn of(self, unit: PrivacyUnit) -> Self {
        Self { unit, ..self }
    }

    /// The Gaussian-DP parameter that this budget buys, without the ledger's slack; see [`gaussian_dp::mu`].
    #[must_use]
    pub fn mu(&self) -> f64 {
        gaussian_dp::mu(self.epsilon, self.delta)
    }
}
