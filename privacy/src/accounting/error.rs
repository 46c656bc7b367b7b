//! An accounting error says why a budget or a charge could not be computed.

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
    /// The budget's mu^2 does not fit the ledger's 64-bit fixed point, or epsilon exceeds what the slack
    /// is derived for.
    #[error(
        "the budget (epsilon {epsilon}, delta {delta}) is too large to keep a ledger for: give epsilon of at most 1000 and delta of at most 0.5"
    )]
    TooLarge {
        /// The budget's epsilon.
        epsilon: f64,
        /// The budget's delta.
        delta: f64,
    },
    /// A choice has no noise, and is opened by itself.
    #[error("a choice is charged by its range, under the noise scale {scale} that stands for none and by its party alone")]
    Choice {
        /// The noise scale that stands for none, in lattice units.
        scale: u64,
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
