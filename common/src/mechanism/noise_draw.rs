//! One draw of noise, to be used once.

use rand::CryptoRng;
use zeroize::Zeroize;

use super::{DiscreteGaussian, NoiseScale};

/// One draw from the discrete Gaussian of a scale: added to one sum, then overwritten.
///
/// Whoever sees a draw can subtract it from its release, and two sums under one draw tell their difference. So it can't be copied,
/// compared, printed or serialised, is used up by [`super::LatticeSum::add_noise`], and its memory is overwritten when it goes.
///
/// ```compile_fail
/// # use conclave_common::mechanism::NoiseDraw;
/// fn twice(draw: NoiseDraw) -> (NoiseDraw, NoiseDraw) {
///     (draw.clone(), draw)
/// }
/// ```
#[must_use = "a draw that is not used was made for nothing"]
pub struct NoiseDraw {
    units: i64,
}

impl NoiseDraw {
    /// Draws from `sampler`, in lattice units; see [`DiscreteGaussian::sample`] for the generator.
    pub fn new<R: CryptoRng + ?Sized>(sampler: &DiscreteGaussian, rng: &mut R) -> Self {
        Self { units: sampler.sample(rng) }
    }

    /// Draws at scale `s`.
    pub fn of_scale<R: CryptoRng + ?Sized>(s: NoiseScale, rng: &mut R) -> Self {
        Self::new(&DiscreteGaussian::new(s), rng)
    }

    /// A chosen draw, for tests.
    #[cfg(any(test, feature = "test-util"))]
    pub fn for_test(units: i64) -> Self {
        Self { units }
    }

    pub(super) fn into_units(self) -> i64 {
        self.units
    }
}

impl Drop for NoiseDraw {
    fn drop(&mut self) {
        self.units.zeroize();
    }
}

/// Draws made ahead, a bounded number: each is handed out once, and its place is overwritten as it goes.
pub struct NoiseStock {
    units: Vec<i64>,
    limit: usize,
}

impl NoiseStock {
    /// Room for `limit` draws.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        // Allocated once: a vector that grows leaves its old contents behind.
        Self { units: Vec::with_capacity(limit), limit }
    }

    /// How many more draws there is room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit - self.units.len()
    }

    /// Puts a draw in; a full stock overwrites it instead.
    pub fn put(&mut self, draw: NoiseDraw) {
        if self.room() > 0 {
            self.units.push(draw.units);
        }
    }

    /// Takes a draw out, if there is one.
    pub fn take(&mut self) -> Option<NoiseDraw> {
        let last = self.units.last_mut()?;
        let draw = NoiseDraw { units: *last };
        last.zeroize();
        self.units.pop();
        Some(draw)
    }
}

impl Drop for NoiseStock {
    fn drop(&mut self) {
        self.units.zeroize();
    }
}
