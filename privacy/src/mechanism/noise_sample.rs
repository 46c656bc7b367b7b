//! Noise samples, each of which is added to one sum and used once.

use rand::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

use super::{Components, DiscreteGaussian, NoiseScale};

/// A sample from the discrete Gaussian, one integer per component of an answer. It is added to one sum and then overwritten.
///
/// Anyone who sees a sample can subtract it from its release, and two sums under one sample reveal their difference. So a sample
/// cannot be copied, compared, printed or serialised. [`LatticeSum::release`](crate::pass::hold::LatticeSum::release)
/// consumes it, and dropping it overwrites its memory.
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::NoiseSample;
/// fn twice(sample: NoiseSample) -> (NoiseSample, NoiseSample) {
///     (sample.clone(), sample)
/// }
/// ```
#[must_use = "an unused noise sample is wasted"]
pub struct NoiseSample {
    units: Zeroizing<Components>,
}

impl NoiseSample {
    /// Samples one integer at scale `s`, in lattice units; see [`DiscreteGaussian::sample`] for the generator.
    pub fn of_scale<R: CryptoRng + ?Sized>(s: NoiseScale, rng: &mut R) -> Self {
        Self::of(Components::One(DiscreteGaussian::new(s).sample(rng)))
    }

    /// Combines samples of one component each into one sample with `components` components, at least 1.
    pub fn gathered(components: usize, mut next: impl FnMut() -> Self) -> Self {
        if components <= 1 {
            return next();
        }
        // Allocated once: a growing vector would leave copies of its contents in memory.
        let mut units = Vec::with_capacity(components);
        while units.len() < components {
            let sample = next();
            // Takes no more than the remaining room.
            units.extend(sample.units().iter().take(components - units.len()));
        }
        Self::of(Components::Several(units.into_boxed_slice()))
    }

    /// Creates a sample of a chosen value, for tests.
    #[cfg(any(test, feature = "test-util"))]
    pub fn for_test(units: i64) -> Self {
        Self::of(Components::One(units))
    }

    fn of(units: Components) -> Self {
        Self { units: Zeroizing::new(units) }
    }

    pub(crate) fn units(&self) -> &[i64] {
        self.units.as_slice()
    }
}

/// A bounded stock of noise sampled ahead. Each integer is handed out once, and its memory is then overwritten.
pub struct NoiseStock {
    units: Zeroizing<Vec<i64>>,
    limit: usize,
}

impl NoiseStock {
    /// Creates a stock with room for `limit` integers.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        // Allocated once: a growing vector would leave copies of its contents in memory.
        Self { units: Zeroizing::new(Vec::with_capacity(limit)), limit }
    }

    /// Returns the number of integers for which there is still room.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit - self.units.len()
    }

    /// Adds a sample. If it does not fit entirely, it is overwritten instead.
    pub fn put(&mut self, sample: NoiseSample) {
        if self.room() >= sample.units().len() {
            self.units.extend_from_slice(sample.units());
        }
    }

    /// Removes and returns a sample of one component, if there is one.
    pub fn take(&mut self) -> Option<NoiseSample> {
        let last = self.units.last_mut()?;
        let sample = NoiseSample::of(Components::One(*last));
        last.zeroize();
        self.units.pop();
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of both is overwritten on drop, and a stock's never moves.
    #[test]
    fn noise_is_overwritten_where_it_lies() {
        fn overwritten<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let mut stock = NoiseStock::new(3);
        let place = stock.units.as_ptr();
        (1..6).for_each(|units| stock.put(NoiseSample::for_test(units)));
        assert_eq!((stock.units.as_slice(), stock.units.as_ptr(), stock.room()), (&[1, 2, 3][..], place, 0));
        let several = NoiseSample::gathered(3, || stock.take().unwrap_or_else(|| NoiseSample::for_test(0)));
        assert_eq!((several.units(), stock.units.as_ptr(), stock.room()), (&[3, 2, 1][..], place, 3));
        overwritten(&several.units);
        overwritten(&stock.units);
    }
}
