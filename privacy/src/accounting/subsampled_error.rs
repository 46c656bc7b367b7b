//! Errors of pricing a block.

use super::error::AccountingError;

/// The reason why a block of subsampled releases could not be priced.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SubsampledError {
    /// The sampling probability is outside a block's range.
    #[error("sampling probability {0} is out of range: give at least 2^-20 (about 0.000001) and less than 1")]
    Probability(f64),
    /// One unit's contribution is too large for the noise.
    #[error(
        "sensitivity is {0} times the noise scale, above the limit of 1.5 for sampling: raise the noise to at least 0.667 times the sensitivity"
    )]
    RelativeSensitivity(f64),
    /// The number of releases is outside a block's range.
    #[error("a block of {0} releases is out of range: give a number from 1 to 16777216")]
    Releases(u64),
    /// The vectors have no component, or the block has more noise draws than any ledger grants.
    #[error("a block of {releases} releases of {components} numbers each is out of range: give 1 to 2^40 numbers in total")]
    Draws {
        /// Releases of the block.
        releases: u64,
        /// Components of each release.
        components: u32,
    },
    /// The reserve is outside a block's range.
    #[error("a reserve of {0} x 2^-60 is out of range: give a delta from 1e-18 to 0.000976")]
    Reserve(u64),
    /// The charge or the delta is out of range.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
}
