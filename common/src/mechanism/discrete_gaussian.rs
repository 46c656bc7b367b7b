//! Exact draws from the discrete Gaussian.

use prio::dp::Rational;
use prio::dp::distributions::DiscreteGaussian as ExactSampler;
use rand::CryptoRng;
use rand::distr::Distribution;

use super::NoiseScale;

/// The discrete Gaussian on the integers, `P(z)` proportional to `exp(-z^2 / (2 s^2))`.
///
/// Sampled exactly, in integer arithmetic, by the algorithm of Canonne, Kamath & Steinke (2020), Algorithm 3, as implemented by `prio`.
#[derive(Debug, Clone)]
pub struct DiscreteGaussian(ExactSampler);

impl DiscreteGaussian {
    /// Noise of scale `s` lattice units.
    #[must_use]
    pub fn new(scale: NoiseScale) -> Self {
        Self::with_ratio(scale.units(), 1)
    }

    /// Noise of any positive scale, for coarse lattices that no release uses.
    #[must_use]
    pub fn with_units(s: u64) -> Self {
        Self::with_ratio(s, 1)
    }

    /// Noise of scale `numerator / denominator`; a zero denominator reads as one.
    pub(crate) fn with_ratio(numerator: u64, denominator: u64) -> Self {
        let sampler = Rational::from_unsigned(u128::from(numerator), u128::from(denominator.max(1))).and_then(ExactSampler::new);
        match sampler {
            Ok(sampler) => Self(sampler),
            Err(_) => unreachable!("the only error is a zero denominator, and it is at least 1"),
        }
    }

    /// One draw, in lattice units; beyond `i64` it saturates (for a valid scale that has probability below 2^-10^7).
    ///
    /// At a party the generator is a cryptographic one seeded by the operating system, never from a configured seed: whoever can
    /// predict the noise can subtract it. How long a draw takes depends on the draw, so a party draws ahead of the request.
    pub fn sample<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> i64 {
        let draw = self.0.sample(rng);
        let negative = draw < Default::default();
        i64::try_from(draw).unwrap_or(if negative { i64::MIN } else { i64::MAX })
    }
}
