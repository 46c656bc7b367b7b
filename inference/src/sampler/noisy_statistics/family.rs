//! Inference for families with a law of the record, from noisy totals of clamped records.
//!
//! The total of `n` records is approximately `N(n m(theta), n V(theta))`, where `m` and `V` are the mean and variance of one
//! record *after its clamp*. The model of the clamp removes its bias. The determinant is kept, because the variance is a function
//! of theta.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::gaussian::factor;
use crate::sampler::matrix::Matrix;
use conclave_common::parameter::Interval;

/// Number of halvings of the interval in the search for a mean.
const HALVINGS: u32 = 100;
/// Rate above which a Poisson's probabilities are computed on the logarithmic scale.
const LARGE_RATE: f64 = 600.0;

/// The law of a record and its clamp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Family {
    /// 0 or 1; theta is the probability of 1.
    Bernoulli,
    /// A count, clamped to `max`; theta is the mean before the clamp.
    PoissonMean { max: u32 },
    /// A normal number of this sd, clamped to an interval; theta is the mean before the clamp.
    GaussianMean { sd: f64, min: f64, max: f64 },
    /// One of several levels; theta holds the probabilities of all of them, and the totals have the same order.
    Multinomial,
}

/// The law that the totals are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clamping {
    /// The law of the clamped record.
    Modelled,
    /// The law without a clamp, comparable with a chain that treats the clamped records as the records.
    Ignored,
}

/// The releases of one party, or their sum over several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FamilyTotals {
    /// Totals of the records, in the record's units: one, or one per level.
    pub(crate) totals: Vec<f64>,
    /// Noise variance of each total.
    pub(crate) noise_variance: Vec<f64>,
    /// Number of records, and the variance of its noise; 0 if the number is exact.
    pub(crate) records: f64,
    pub(crate) records_variance: f64,
}

/// Mean and covariance of one clamped record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Matrix,
}

impl Family {
    /// Returns the mean and covariance of one record.
    pub(crate) fn record(self, clamping: Clamping, theta: &[f64]) -> Record {
        let (first, modelled) = (theta.first().copied().unwrap_or(f64::NAN), clamping == Clamping::Modelled);
        let (mean, variance) = match self {
            Self::Bernoulli => (first, first * (1.0 - first)),
            Self::PoissonMean { max } if modelled => clamped_poisson(first, max),
            Self::PoissonMean { .. } => (first, first),
            Self::GaussianMean { sd, min, max } if modelled => clamped_normal(first, sd, min, max),
            Self::GaussianMean { sd, .. } => (first, sd * sd),
            Self::Multinomial => {
                let entry = |i: usize, j: usize| (if i == j { theta[i] } else { 0.0 }) - theta[i] * theta[j];
                return Record { mean: theta.to_vec(), covariance: Matrix::from_fn(theta.len(), entry) };
            }
        };
        Record { mean: vec![mean], covariance: Matrix::diagonal(&[variance.max(0.0)]) }
    }

    /// Returns the theta of a one-parameter family whose record has the observed mean, within an interval, and its sd by the
    /// delta method.
    pub(crate) fn start(self, clamping: Clamping, seen: &FamilyTotals, within: Interval) -> (f64, f64) {
        let records = seen.records.max(1.0);
        let wanted = seen.totals.first().copied().unwrap_or(0.0) / records;
        let mean = |theta: f64| self.record(clamping, &[theta]).mean[0];
        let (mut low, mut high) = (within.min, within.max);
        for _ in 0..HALVINGS {
            let middle = 0.5 * low + 0.5 * high;
            if mean(middle) < wanted { low = middle } else { high = middle }
        }
        let theta = 0.5 * low + 0.5 * high;
        let record = self.record(clamping, &[theta]);
        let width = 1e-4 * (within.max - within.min);
        let (below, above) = ((theta - width).max(within.min), (theta + width).min(within.max));
        let slope = (mean(above) - mean(below)) / (above - below);
        let noise = seen.noise_variance.first().copied().unwrap_or(0.0);
        let sd = (records * record.covariance[(0, 0)] + noise).sqrt() / (records * slope);
        let most = within.max - within.min;
        (theta, if sd.is_finite() && sd > 0.0 { sd.min(most) } else { most })
    }
}

impl FamilyTotals {
    /// Returns the log likelihood at theta, up to a constant. For several parties with their own counts or noise, it is the sum
    /// of theirs.
    pub(crate) fn log_likelihood(&self, family: Family, clamping: Clamping, theta: &[f64]) -> f64 {
        let record = family.record(clamping, theta);
        if record.mean.iter().any(|m| !m.is_finite()) {
            return f64::NEG_INFINITY;
        }
        let records = self.records.max(0.0);
        let off: Vec<f64> = self.totals.iter().zip(&record.mean).map(|(a, m)| a - self.records * m).collect();
        let spread = factor(&Matrix::from_fn(off.len(), |i, j| {
            let noise = if i == j { self.noise_variance[i] } else { 0.0 };
            records * record.covariance[(i, j)] + self.records_variance * (record.mean[i] * record.mean[j]) + noise
        }));
        -0.5 * spread.quadratic_of_inverse(&off) - 0.5 * spread.log_determinant()
    }
}

/// Returns mean and variance of `min(y, max)` for a Poisson `y`: `max` minus the shortfall, a sum of `max` terms.
fn clamped_poisson(rate: f64, max: u32) -> (f64, f64) {
    if rate.is_nan() || rate < 0.0 {
        return (f64::NAN, 0.0);
    }
    let (mut missing, mut squared) = (0.0, 0.0);
    let mut probability = libm::exp(-rate);
    let mut logarithm = -rate;
    for k in 0..max {
        let short = f64::from(max - k);
        missing += short * probability;
        squared += short * short * probability;
        let next = f64::from(k + 1);
        if rate > LARGE_RATE {
            logarithm += libm::log(rate / next);
            probability = libm::exp(logarithm);
        } else {
            probability *= rate / next;
        }
    }
    (f64::from(max) - missing, squared - missing * missing)
}

/// Returns mean and variance of a normal number clamped to an interval: a truncated normal's moments and the masses at the ends.
fn clamped_normal(mean: f64, sd: f64, min: f64, max: f64) -> (f64, f64) {
    let (a, b) = ((min - mean) / sd, (max - mean) / sd);
    let below = 0.5 * libm::erfc(-a * FRAC_1_SQRT_2);
    let above = 0.5 * libm::erfc(b * FRAC_1_SQRT_2);
    let inside = 1.0 - below - above;
    let density = |z: f64| if z.is_finite() { libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt() } else { 0.0 };
    // `z` times a mass that is 0 at an infinite end.
    let times = |z: f64, mass: f64| if mass == 0.0 { 0.0 } else { z * mass };
    let first = times(a, below) + times(b, above) + density(a) - density(b);
    let second = times(a, times(a, below)) + times(b, times(b, above)) + inside + times(a, density(a)) - times(b, density(b));
    (mean + sd * first, sd * sd * (second - first * first))
}

#[cfg(test)]
#[path = "tests/family.rs"]
mod tests;
