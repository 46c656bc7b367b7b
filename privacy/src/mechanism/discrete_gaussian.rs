//! Exact samples from the discrete Gaussian.

use rand::CryptoRng;

use super::NoiseScale;
use super::coins::{bernoulli_exp, bernoulli_exp_unit, uniform_below};

/// The discrete Gaussian on the integers, `P(z)` proportional to `exp(-z^2 / (2 s^2))`.
///
/// Sampling is exact and uses integers of fixed width, by Canonne, Kamath & Steinke, *The Discrete Gaussian for Differential
/// Privacy* (2020), Algorithms 1 to 3. Their Algorithm 3 holds for every integer scale `t` of its Laplace proposal:
/// `exp(-|y| / t)` times `exp(-(|y| - s^2 / t)^2 / (2 s^2))` is proportional to `exp(-y^2 / (2 s^2))`. Here `t = s`, an integer
/// number of lattice units. The second exponent is then `(|y| - s)^2 / (2 s^2)`, whose numerator and denominator are integers
/// below 2^127 at every permitted scale.
#[derive(Debug, Clone)]
pub struct DiscreteGaussian {
    /// The scale `s` in lattice units, 1 to 2^50.
    scale: u64,
}

impl DiscreteGaussian {
    /// Creates the law of scale `s`.
    #[must_use]
    pub fn new(scale: NoiseScale) -> Self {
        Self { scale: scale.units() }
    }

    /// Creates the law of any integer scale from 1, for tests on lattices coarse enough to enumerate.
    #[cfg(any(test, feature = "test-util"))]
    pub fn of_units(scale: u64) -> Self {
        assert!((1..=NoiseScale::MAX_UNITS).contains(&scale));
        Self { scale }
    }

    /// Draws one sample in lattice units. It saturates beyond `i64`, which has probability below 2^-10^7 at a valid scale.
    ///
    /// Theorem, noise law: given uniform random bits, the sample has exactly the discrete Gaussian law, up to that saturation.
    ///
    /// A party uses a cryptographic generator keyed by the operating system, never by a configured seed: anyone who can predict
    /// the noise can subtract it. The running time depends on the sample, so a party samples before a request arrives.
    ///
    /// Proof: `docs/explanation/proofs.md`, section 2.
    pub fn sample<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> i64 {
        let s = u128::from(self.scale);
        let twice_variance = 2 * s * s;
        loop {
            let (magnitude, negative) = self.laplace(rng);
            let from_scale = u128::from(magnitude.abs_diff(self.scale));
            let squared = from_scale * from_scale;
            if bernoulli_exp(squared / twice_variance, (squared % twice_variance, twice_variance), rng) {
                let magnitude = magnitude.cast_signed();
                return if negative { -magnitude } else { magnitude };
            }
        }
    }

    /// Draws from the discrete Laplace law of scale `s` (Algorithm 2), `P(y)` proportional to `exp(-|y| / s)`. Returns `|y|`, at
    /// most `i64::MAX`, and whether `y` is negative.
    fn laplace<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> (u64, bool) {
        let s = u128::from(self.scale);
        loop {
            let rest = uniform_below(s, rng);
            if !bernoulli_exp_unit(rest, s, rng) {
                continue;
            }
            let mut whole = 0;
            while bernoulli_exp_unit(1, 1, rng) {
                whole += 1;
            }
            // Exceeds i64 only after at least 8,192 successive successes of probability exp(-1).
            let magnitude = u64::try_from(rest + whole * s).unwrap_or(u64::MAX).min(i64::MAX as u64);
            let negative = uniform_below(2, rng) == 0;
            // Rejects -0, so that zero is not counted twice.
            if magnitude > 0 || !negative {
                return (magnitude, negative);
            }
        }
    }
}
