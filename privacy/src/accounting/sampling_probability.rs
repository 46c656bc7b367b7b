//! A sampling probability. It is a multiple of 2^-20, so that it, its complement and a sampler's coins are exact.

use super::subsampled_error::SubsampledError;

/// The probability that a unit is in a sample: `j / 2^20` with `1 <= j <= 2^20`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SamplingProbability(u32);

impl SamplingProbability {
    /// The binary logarithm of the common denominator.
    pub const LOG2: u32 = 20;
    /// The probability 1: no sampling.
    pub const ONE: Self = Self(1 << Self::LOG2);

    /// Creates the probability `parts / 2^20`.
    ///
    /// # Errors
    /// [`SubsampledError::Probability`] unless `1 <= parts <= 2^20`.
    pub fn from_parts(parts: u32) -> Result<Self, SubsampledError> {
        if (1..=Self::ONE.0).contains(&parts) {
            Ok(Self(parts))
        } else {
            Err(SubsampledError::Probability(f64::from(parts) / f64::from(Self::ONE.0)))
        }
    }

    /// Returns the smallest representable probability that is at least `probability`.
    ///
    /// # Errors
    /// [`SubsampledError::Probability`] unless `2^-20 <= probability <= 1`.
    pub fn at_least(probability: f64) -> Result<Self, SubsampledError> {
        let parts = probability * f64::from(Self::ONE.0);
        if !(1.0..=f64::from(Self::ONE.0)).contains(&parts) {
            return Err(SubsampledError::Probability(probability));
        }
        Ok(Self(parts.ceil() as u32))
    }

    /// Returns the numerator `j`.
    #[must_use]
    pub fn parts(self) -> u32 {
        self.0
    }

    /// Returns the probability as a float; exact.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }
}
