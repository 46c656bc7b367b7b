//! Draws of places and of momenta at rest.

use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::law;

/// Standard normal numbers.
pub(crate) fn normals(rng: &mut ChaCha20Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| StandardNormal.sample(rng)).collect()
}

/// Momenta as they are at rest.
pub(crate) fn momenta(rng: &mut ChaCha20Rng, count: usize, step: f64) -> Vec<f64> {
    let sd = law::momentum_variance(step).sqrt();
    normals(rng, count).into_iter().map(|z| sd * z).collect()
}
