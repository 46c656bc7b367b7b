//! Draws of places, and of momenta from their stationary law.

use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::law;

/// Draws standard normal numbers.
pub(crate) fn normals(rng: &mut ChaCha20Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| StandardNormal.sample(rng)).collect()
}

/// Draws momenta from their stationary law.
pub(crate) fn momenta(rng: &mut ChaCha20Rng, count: usize, step: f64) -> Vec<f64> {
    let sd = law::momentum_variance(step).sqrt();
    normals(rng, count).into_iter().map(|z| sd * z).collect()
}
