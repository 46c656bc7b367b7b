//! A subsampled error says why a block could not be priced.

use super::error::AccountingError;

/// Why a block of subsampled releases could not be priced.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SubsampledError {
    /// The sampling probability is not one that a block has.
    #[error("the sampling probability {0} is not usable: give one from 2^-20, about 0.000001, and below 1")]
    Probability(f64),
    /// One unit moves the sum too far for the noise.
    #[error(
        "a unit moves the sum by {0} times the noise, and sampling hides next to nothing beyond 1.5: raise the noise to at least 0.667 times the sensitivity"
    )]
    RelativeSensitivity(f64),
    /// The number of releases is not one that a block has.
    #[error("a block of {0} releases can't be opened: give a number from 1 to 16777216")]
    Releases(u64),
    /// The vectors have no component, or the block has more noise draws than any ledger grants.
    #[error(
        "{releases} releases of {components} numbers each are not a block: give at least one number, and 2^40 in all at most"
    )]
    Draws {
        /// Releases of the block.
        releases: u64,
        /// Numbers in each of them.
        components: u32,
    },
    /// The block's part of the reserve is not one that a block has.
    #[error("a reserve of {0} x 2^-60 is not usable: give a delta of at least 1e-18 and at most 0.000976")]
    Reserve(u64),
    /// The charge or the delta is not usable.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
}
