//! Privacy accounting by Gaussian differential privacy, with the rigorous zCDP figure beside it.
//!
//! A release of integers with L2 sensitivity `Delta` and noise scale `s` costs `mu^2 = Delta^2 / s^2`, and costs add, however each query
//! was chosen from earlier answers (Smith & Thakurta 2022, "Fully Adaptive Composition for Gaussian Differential Privacy"). A budget
//! `(epsilon, delta)` is therefore one number, the largest `mu` that it allows (Balle & Wang 2018), and the ledger is a sum of integers.
//!
//! [`gaussian_dp`], [`zcdp`] and [`advanced_composition`] give figures without slack, for planning and reports. [`PrivacyFilter`] is what
//! a ledger enforces: it takes a sliver off the budget (about 1e-6 of it) because the discrete Gaussian is not exactly Gaussian. A release
//! has a least price, [`LEAST_CHARGE_UNITS`], so that nobody can use up a ledger's noise draws without using up its budget.

pub mod advanced_composition;
mod filter;
pub mod gaussian_dp;
mod normal;
mod slack;
#[cfg(test)]
mod tests;
mod unit;
mod units;
pub mod zcdp;

pub use filter::{FilterRefusal, Priced, PrivacyFilter, Spent};
pub use slack::units_of_draw as slack_units_of_draw;
pub use unit::{Adjacency, MAX_RECORDS_PER_PERSON, PrivacyUnit};
pub use units::{LEAST_CHARGE_UNITS, UNIT_LOG2, charge_units, mu_squared};

/// Why a budget or a charge could not be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AccountingError {
    /// Epsilon is not a positive finite number.
    #[error("epsilon {0} is not usable: give a number above 0")]
    Epsilon(f64),
    /// Delta is not strictly between 0 and 1.
    #[error("delta {0} is not usable: give a number above 0 and below 1, such as 1e-6")]
    Delta(f64),
    /// Nothing is left of the budget once the ledger's slack for the discrete Gaussian is taken off.
    #[error("the budget (epsilon {epsilon}, delta {delta}) is too small to keep a ledger for: give epsilon above 1e-5")]
    TooSmall {
        /// The budget's epsilon.
        epsilon: f64,
        /// The budget's delta.
        delta: f64,
    },
    /// The budget's mu^2 does not fit the ledger's 64-bit fixed point, or epsilon exceeds what the slack is derived for.
    #[error(
        "the budget (epsilon {epsilon}, delta {delta}) is too large to keep a ledger for: give epsilon of at most 1000 and delta of at most 0.5"
    )]
    TooLarge {
        /// The budget's epsilon.
        epsilon: f64,
        /// The budget's delta.
        delta: f64,
    },
    /// One release alone costs more than the ledger's 64-bit fixed point holds.
    #[error(
        "a release of sensitivity {sensitivity} at noise scale {noise} costs more than a ledger can hold: raise the noise or narrow the step"
    )]
    ChargeOverflow {
        /// `K_t`, in lattice units.
        sensitivity: u64,
        /// `s`, in lattice units.
        noise: u64,
    },
}

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
    /// [`AccountingError::Epsilon`] unless epsilon is positive and finite, [`AccountingError::Delta`] unless delta is between 0 and 1.
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

/// The largest count for which `fits` holds, where it holds for 0 and, once false, stays false. Saturates at 2^62.
pub(crate) fn largest_count(fits: impl Fn(u64) -> bool) -> u64 {
    let mut over = 1_u64;
    while fits(over) {
        if over >= 1 << 62 {
            return over;
        }
        over *= 2;
    }
    let mut under = over / 2;
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if fits(middle) { under = middle } else { over = middle }
    }
    under
}
