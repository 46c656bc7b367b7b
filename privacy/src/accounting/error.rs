//! Errors of budgets and charges.

/// The reason why a budget or a charge could not be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AccountingError {
    /// Epsilon is not a positive finite number.
    #[error("epsilon {0} is not usable: give a number above 0")]
    Epsilon(f64),
    /// Delta is not strictly between 0 and 1.
    #[error("delta {0} is not usable: give a number above 0 and below 1, such as 1e-6")]
    Delta(f64),
    /// The ledger's slack for the discrete Gaussian uses up the whole budget.
    #[error("the budget (epsilon {epsilon}, delta {delta}) is too small to keep a ledger for: give epsilon above 1e-5")]
    TooSmall {
        /// The budget's epsilon.
        epsilon: f64,
        /// The budget's delta.
        delta: f64,
    },
    /// The budget's mu^2 exceeds the ledger's 64-bit fixed point, or epsilon exceeds the range for which the slack is derived.
    #[error(
        "the budget (epsilon {epsilon}, delta {delta}) is too large to keep a ledger for: give epsilon of at most 1000 and delta of at most 0.5"
    )]
    TooLarge {
        /// The budget's epsilon.
        epsilon: f64,
        /// The budget's delta.
        delta: f64,
    },
    /// A choice has no noise and cannot be part of a secure sum.
    #[error(
        "a choice adds no noise and can't be part of a secure sum: its noise scale must be {scale} lattice units, and its number of honest parties 1"
    )]
    Choice {
        /// The placeholder noise scale of a choice, in lattice units.
        scale: u64,
    },
    /// One release alone costs more than the ledger's 64-bit fixed point can hold.
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
