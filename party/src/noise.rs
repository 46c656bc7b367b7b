//! The noise of releases, from a cryptographic generator that the operating system seeds.
//!
//! There is no way to give it a seed: whoever knew it could subtract the noise.

use conclave_common::mechanism::{DiscreteGaussian, NoiseScale};
use rand::SeedableRng;
use rand::rngs::{SysError, SysRng};
use rand_chacha::ChaCha20Rng;

/// Draws discrete Gaussian noise.
pub struct Noise {
    generator: ChaCha20Rng,
    /// The sampler of the scale drawn last: a job's queries mostly share one.
    last: Option<(NoiseScale, DiscreteGaussian)>,
}

impl Noise {
    /// Seeds the generator with 256 bits from the operating system.
    ///
    /// # Errors
    /// Where the operating system gives no entropy; a party doesn't start then.
    pub fn from_os() -> Result<Self, SysError> {
        Ok(Self { generator: ChaCha20Rng::try_from_rng(&mut SysRng)?, last: None })
    }

    /// One draw of scale `s`, in lattice units.
    pub fn draw(&mut self, s: NoiseScale) -> i64 {
        let sampler = match self.last.take() {
            Some((scale, sampler)) if scale == s => sampler,
            _ => DiscreteGaussian::new(s),
        };
        let draw = sampler.sample(&mut self.generator);
        self.last = Some((s, sampler));
        draw
    }
}

/// Shows nothing of the generator's state.
impl std::fmt::Debug for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Noise")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn two_generators_differ_and_the_scale_is_kept() {
        let s = NoiseScale::from_units(1 << 32).unwrap();
        let (mut a, mut b) = (Noise::from_os().unwrap(), Noise::from_os().unwrap());
        assert_ne!((a.draw(s), a.draw(s)), (b.draw(s), b.draw(s)));
        let wide = NoiseScale::from_units(1 << 40).unwrap();
        let spread = |noise: &mut Noise, s: NoiseScale| {
            let sum: f64 = (0..4000).map(|_| (noise.draw(s) as f64 / s.units() as f64).powi(2)).sum();
            sum / 4000.0
        };
        // Alternating scales: 4000 squares have a standard error of 2.2%.
        for scale in [s, wide, s] {
            assert!((spread(&mut a, scale) - 1.0).abs() < 0.15);
        }
    }
}
