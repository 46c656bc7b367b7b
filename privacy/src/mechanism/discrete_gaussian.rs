//! Exact draws from the discrete Gaussian.

use rand::CryptoRng;

use super::NoiseScale;
use super::coins::{below, falls, falls_within_one};

/// The discrete Gaussian on the integers, `P(z)` proportional to `exp(-z^2 / (2 s^2))`.
///
/// Drawn exactly, in integers of fixed width, by Canonne, Kamath & Steinke, *The Discrete Gaussian for Differential Privacy* (2020),
/// Algorithms 1 to 3. Their Algorithm 3 holds for every integer scale `t` of the Laplace law that it starts from: `exp(-|y| / t)` times
/// `exp(-(|y| - s^2 / t)^2 / (2 s^2))` is `exp(-y^2 / (2 s^2))` but for a constant. With `t = s`, a whole number of lattice units here, the second
/// exponent is `(|y| - s)^2 / (2 s^2)`: both its ends are integers below 2^127 at every scale that there is.
#[derive(Debug, Clone)]
pub struct DiscreteGaussian {
    /// `s`, lattice units; 1 to 2^50.
    scale: u64,
}

impl DiscreteGaussian {
    /// Noise of scale `s` lattice units.
    #[must_use]
    pub fn new(scale: NoiseScale) -> Self {
        Self { scale: scale.units() }
    }

    /// Noise of any whole scale from 1 on, for lattices so coarse that their law can be counted out.
    #[cfg(any(test, feature = "test-util"))]
    pub fn of_units(scale: u64) -> Self {
        assert!((1..=NoiseScale::MAX_UNITS).contains(&scale));
        Self { scale }
    }

    /// One draw, in lattice units; beyond `i64` it saturates (for a valid scale that has probability below 2^-10^7).
    ///
    /// At a party the generator is a cryptographic one seeded by the operating system, never from a configured seed: whoever can
    /// predict the noise can subtract it. How long a draw takes depends on the draw, so a party draws ahead of the request.
    pub fn sample<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> i64 {
        let s = u128::from(self.scale);
        let twice_variance = 2 * s * s;
        loop {
            let (magnitude, negative) = self.laplace(rng);
            let from_scale = u128::from(magnitude.abs_diff(self.scale));
            let squared = from_scale * from_scale;
            if falls(squared / twice_variance, (squared % twice_variance, twice_variance), rng) {
                let magnitude = magnitude.cast_signed();
                return if negative { -magnitude } else { magnitude };
            }
        }
    }

    /// The discrete Laplace law of scale `s` (Algorithm 2): `P(y)` proportional to `exp(-|y| / s)`, as `|y|`, at most `i64::MAX`, and whether it is
    /// negative.
    fn laplace<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> (u64, bool) {
        let s = u128::from(self.scale);
        loop {
            let rest = below(s, rng);
            if !falls_within_one(rest, s, rng) {
                continue;
            }
            let mut whole = 0;
            while falls_within_one(1, 1, rng) {
                whole += 1;
            }
            // Above i64 for 8,192 coins in a row of probability exp(-1) at the least.
            let magnitude = u64::try_from(rest + whole * s).unwrap_or(u64::MAX).min(i64::MAX as u64);
            let negative = below(2, rng) == 0;
            // There is one zero, and not two.
            if magnitude > 0 || !negative {
                return (magnitude, negative);
            }
        }
    }
}
