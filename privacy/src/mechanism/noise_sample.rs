//! A noise sample is added to one sum, and used once.

use rand::CryptoRng;
use zeroize::Zeroize;

use super::{Components, DiscreteGaussian, NoiseScale};

/// A sample from the discrete Gaussian of a scale, one integer per component of an answer: added to one sum, then
/// overwritten.
///
/// Whoever sees a sample can subtract it from its release, and two sums under one sample tell their difference. So it can't
/// be copied, compared, printed or serialised, is used up by [`super::LatticeSum::add_noise`], and its memory is
/// overwritten when it goes.
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::NoiseSample;
/// fn twice(sample: NoiseSample) -> (NoiseSample, NoiseSample) {
///     (sample.clone(), sample)
/// }
/// ```
#[must_use = "a sample that is not used was made for nothing"]
pub struct NoiseSample {
    units: Components,
}

impl NoiseSample {
    /// Samples one integer at scale `s`, in lattice units; see [`DiscreteGaussian::sample`] for the generator.
    pub fn of_scale<R: CryptoRng + ?Sized>(s: NoiseScale, rng: &mut R) -> Self {
        Self { units: Components::One(DiscreteGaussian::new(s).sample(rng)) }
    }

    /// Samples of one component each, put together into one of `components`, at least 1.
    pub fn gathered(components: usize, mut next: impl FnMut() -> Self) -> Self {
        if components <= 1 {
            return next();
        }
        // Allocated once: a vector that grows leaves its old contents behind.
        let mut units = Vec::with_capacity(components);
        while units.len() < components {
            let sample = next();
            // No more than there is room for.
            units.extend(sample.units().iter().take(components - units.len()));
        }
        Self { units: Components::Several(units.into_boxed_slice()) }
    }

    /// A chosen sample, for tests.
    #[cfg(any(test, feature = "test-util"))]
    pub fn for_test(units: i64) -> Self {
        Self { units: Components::One(units) }
    }

    pub(super) fn units(&self) -> &[i64] {
        self.units.as_slice()
    }
}

impl Drop for NoiseSample {
    fn drop(&mut self) {
        self.units.zeroize();
    }
}

/// Noise sampled ahead, a bounded number of integers: each is handed out once, and its place is overwritten as it goes.
pub struct NoiseStock {
    units: Vec<i64>,
    limit: usize,
}

impl NoiseStock {
    /// Room for `limit` integers.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        // Allocated once: a vector that grows leaves its old contents behind.
        Self { units: Vec::with_capacity(limit), limit }
    }

    /// How many more integers there is room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit - self.units.len()
    }

    /// Puts a sample in; a stock without room for all of it overwrites it instead.
    pub fn put(&mut self, sample: NoiseSample) {
        if self.room() >= sample.units().len() {
            self.units.extend_from_slice(sample.units());
        }
    }

    /// Takes a sample of one component out, if there is one.
    pub fn take(&mut self) -> Option<NoiseSample> {
        let last = self.units.last_mut()?;
        let sample = NoiseSample { units: Components::One(*last) };
        last.zeroize();
        self.units.pop();
        Some(sample)
    }
}

impl Drop for NoiseStock {
    fn drop(&mut self) {
        self.units.zeroize();
    }
}
