//! The noise scale of a query, on the grid that keeps the chain exact.

use super::MechanismError;
use super::step::STEP;

/// The scale `s` of the discrete Gaussian noise, in lattice units: a multiple of 2^16 from 2^20 to 2^50.
///
/// The noise standard deviation is `sigma = s * STEP` log-likelihood units. Multiples of 2^16 make `sigma^2 / STEP` an integer,
/// which detailed balance on the lattice requires. At the lower end, the log probabilities of a discrete and a rounded
/// continuous Gaussian differ by less than 6e-12 within 12 scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoiseScale(u64);

impl NoiseScale {
    /// Every scale is a multiple of this many lattice units.
    pub const MULTIPLE: u64 = 1 << 16;
    /// The smallest scale, in lattice units.
    pub const MIN_UNITS: u64 = 1 << 20;
    /// The largest scale, in lattice units.
    pub const MAX_UNITS: u64 = 1 << 50;

    /// The placeholder noise scale of a choice, which adds no noise: the largest scale. A ledger books one unit of slack for it,
    /// the least that a draw can have, although a choice needs no slack for discrete noise.
    pub const OF_A_CHOICE: Self = Self(Self::MAX_UNITS);

    /// Returns the scale for a noise standard deviation `sigma` in log-likelihood units, rounded up to the grid of 2^-16.
    ///
    /// # Errors
    /// [`MechanismError::NoiseSd`] unless the rounded value lies from 2^-12 to 2^18.
    pub fn from_sd(sigma: f64) -> Result<Self, MechanismError> {
        let multiples = (sigma / (STEP * Self::MULTIPLE as f64)).ceil();
        let range = (Self::MIN_UNITS / Self::MULTIPLE) as f64..=(Self::MAX_UNITS / Self::MULTIPLE) as f64;
        if range.contains(&multiples) { Ok(Self(multiples as u64 * Self::MULTIPLE)) } else { Err(MechanismError::NoiseSd(sigma)) }
    }

    /// Creates a scale from lattice units.
    ///
    /// # Errors
    /// [`MechanismError::NoiseUnits`] unless `units` is a multiple of 2^16 from 2^20 to 2^50.
    pub fn from_units(units: u64) -> Result<Self, MechanismError> {
        if units.is_multiple_of(Self::MULTIPLE) && (Self::MIN_UNITS..=Self::MAX_UNITS).contains(&units) {
            Ok(Self(units))
        } else {
            Err(MechanismError::NoiseUnits(units))
        }
    }

    /// Returns the scale in lattice units.
    #[must_use]
    pub fn units(self) -> u64 {
        self.0
    }

    /// Returns the scale in multiples of 2^16 lattice units, 16 to 2^34. Its square fits 69 bits.
    pub(crate) fn multiples(self) -> u64 {
        self.0 / Self::MULTIPLE
    }

    /// Returns the noise standard deviation in log-likelihood units; exact.
    #[must_use]
    pub fn sd(self) -> f64 {
        self.0 as f64 * STEP
    }

    /// Returns the noise variance in squared log-likelihood units. The penalty subtracts half of it.
    #[must_use]
    pub fn variance(self) -> f64 {
        self.sd() * self.sd()
    }
}
