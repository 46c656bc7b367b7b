//! A budget is the `(epsilon, delta)` that protects one unit of privacy.

use super::error::AccountingError;
use super::gaussian_dp;
use super::privacy_unit::PrivacyUnit;

/// A privacy budget: `(epsilon, delta)` differential privacy of one unit.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Budget {
    /// Epsilon, positive and finite.
    pub epsilon: f64,
    /// Delta, strictly between 0 and 1.
    pub delta: f64,
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
        Ok(Self { epsilon, delta, unit: PrivacyUnit::default() })
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
