//! Random variates by arithmetic, square roots and `libm`: the bits are the same on every machine, so a replay makes the same
//! draws.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

/// Largest mean for which Poisson counts are drawn from a table.
const TABLE: f64 = 10_000.0;
/// Number of sds by which a table extends beyond its mean: less than 1e-18 lies outside.
const REACH: f64 = 9.0;

/// Draws a uniform number in (0, 1].
pub(super) fn uniform(rng: &mut ChaCha20Rng) -> f64 {
    1.0 - rng.random::<f64>()
}

/// Draws a standard normal number (Marsaglia's polar method).
pub(in crate::sampler) fn normal(rng: &mut ChaCha20Rng) -> f64 {
    loop {
        let (x, y) = (2.0 * rng.random::<f64>() - 1.0, 2.0 * rng.random::<f64>() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * libm::log(square) / square).sqrt();
        }
    }
}

/// Draws a gamma number of this shape (above 0) and rate 1: Marsaglia & Tsang, *A simple method for generating gamma variables*
/// (2000).
pub(super) fn gamma(shape: f64, rng: &mut ChaCha20Rng) -> f64 {
    if shape < 1.0 {
        let factor = libm::exp(libm::log(uniform(rng)) / shape);
        return gamma(shape + 1.0, rng) * factor;
    }
    let d = shape - 1.0 / 3.0;
    let c = (9.0 * d).sqrt().recip();
    loop {
        let z = normal(rng);
        let root = 1.0 + c * z;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let u = uniform(rng);
        if u < 1.0 - 0.0331 * (z * z) * (z * z) || libm::log(u) < 0.5 * z * z + d * (1.0 - v + libm::log(v)) {
            return d * v;
        }
    }
}

/// Draws a beta number with these shapes, above 0. NaN if both gammas underflow to 0.
pub(super) fn beta(a: f64, b: f64, rng: &mut ChaCha20Rng) -> f64 {
    let (x, y) = (gamma(a, rng), gamma(b, rng));
    x / (x + y)
}

/// Replaces concentrations, all above 0, by a Dirichlet draw with them.
pub(super) fn dirichlet(concentrations: &mut [f64], rng: &mut ChaCha20Rng) {
    concentrations.iter_mut().for_each(|x| *x = gamma(*x, rng));
    let total: f64 = concentrations.iter().sum();
    concentrations.iter_mut().for_each(|x| *x /= total);
}

/// Returns the index of the class that contains `u`, in [0, 1). `cumulative` holds the cumulative probabilities; its last entry
/// is not read.
#[inline(always)]
pub(super) fn class(cumulative: &[f64], u: f64) -> usize {
    let all_but_last = &cumulative[..cumulative.len().saturating_sub(1)];
    all_but_last.iter().map(|c| usize::from(u >= *c)).sum()
}

/// A sampler of Poisson counts with one mean.
#[derive(Debug, Clone)]
pub(super) enum Poisson {
    /// Cumulative probabilities of the counts from `first`.
    Table { first: f64, cumulative: Vec<f64> },
    /// Hörmann, *The transformed rejection method for generating Poisson random variables* (1993), algorithm PTRS.
    Rejection { mean: f64, log_mean: f64, a: f64, b: f64, log_inverse_alpha: f64, squeeze: f64 },
}

impl Poisson {
    /// Builds the sampler; `mean` is positive and finite.
    pub(super) fn new(mean: f64) -> Self {
        if mean > TABLE {
            let b = 0.931 + 2.53 * mean.sqrt();
            let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
            let a = -0.059 + 0.02483 * b;
            let squeeze = 0.9277 - 3.6224 / (b - 2.0);
            return Self::Rejection {
                mean,
                log_mean: libm::log(mean),
                a,
                b,
                log_inverse_alpha: libm::log(inverse_alpha),
                squeeze,
            };
        }
        let mode = mean.floor();
        let reach = (REACH * mean.sqrt() + 40.0).ceil();
        let first = (mode - reach).max(0.0);
        let below = (mode - first) as usize;
        let mut cumulative = vec![1.0; below + 1 + reach as usize];
        for at in (0..below).rev() {
            cumulative[at] = cumulative[at + 1] * ((first + at as f64 + 1.0) / mean);
        }
        for at in below + 1..cumulative.len() {
            cumulative[at] = cumulative[at - 1] * (mean / (first + at as f64));
        }
        let total: f64 = cumulative.iter().sum();
        let mut sum = 0.0;
        for entry in &mut cumulative {
            sum += *entry;
            *entry = sum / total;
        }
        Self::Table { first, cumulative }
    }

    /// Draws a count.
    pub(super) fn draw(&self, rng: &mut ChaCha20Rng) -> f64 {
        match self {
            Self::Table { first, cumulative } => {
                let u = rng.random::<f64>();
                first + cumulative.partition_point(|c| u >= *c).min(cumulative.len() - 1) as f64
            }
            Self::Rejection { mean, log_mean, a, b, log_inverse_alpha, squeeze } => loop {
                let u = rng.random::<f64>() - 0.5;
                let v = uniform(rng);
                let us = 0.5 - u.abs();
                let k = ((2.0 * a / us + b) * u + mean + 0.43).floor();
                if us >= 0.07 && v <= *squeeze {
                    return k;
                }
                if k < 0.0 || (us < 0.013 && v > us) {
                    continue;
                }
                let left = libm::log(v) + log_inverse_alpha - libm::log(a / (us * us) + b);
                if left <= k * log_mean - mean - libm::lgamma(k + 1.0) {
                    return k;
                }
            },
        }
    }
}

#[cfg(test)]
#[path = "tests/variates.rs"]
mod tests;
