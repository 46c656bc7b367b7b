//! The law of a count, and the public tables of its expectations that queries of bounded influence state.
//!
//! With the mean `m = e^eta` and the dispersion `a` (0 for a Poisson law), the variance is `m (1 + a m)`. A table holds, over the
//! linear predictor, `a(eta) = E clip(u, ±c)` of the standardised count `u`, and `kappa = E clip(u) u`; or the same of the slope `s`
//! of the log density in the logarithm of the dispersion. Since `E u = E s = 0`, what lies beyond the clip follows from what lies
//! within it, so no tail is summed.

use crate::sampler::noisy_statistics::scores::plain;
use conclave_common::model::SlopeTable;

/// Sds below the mean at which a sum starts.
const BELOW: f64 = 14.0;
/// Counts per sd, and per their own size, that a sum of large counts visits.
const PER_SD: f64 = 50.0;
const PER_SIZE: f64 = 200.0;
/// Least information of a dispersion's table.
const LEAST: f64 = 1e-9;

/// The law of a count whose linear predictor is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CountLaw {
    /// The dispersion; 0 for a Poisson law.
    pub(super) dispersion: f64,
}

/// A table as a query states it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CountTable {
    /// The largest magnitude of a contribution.
    pub(super) limit: f64,
    /// The factor on the table's slopes.
    pub(super) unit: f64,
    /// The values of a query.
    pub(super) numbers: Vec<f64>,
}

impl CountLaw {
    fn widened(self, mean: f64) -> f64 {
        1.0 + self.dispersion * mean
    }

    /// Returns the Fisher information about the linear predictor.
    pub(super) fn information(self, eta: f64) -> f64 {
        let mean = libm::exp(eta);
        mean / self.widened(mean)
    }

    fn log_density(self, y: f64, mean: f64) -> f64 {
        if self.dispersion == 0.0 {
            return y * libm::log(mean) - mean - libm::lgamma(y + 1.0);
        }
        let size = self.dispersion.recip();
        let ratio = libm::lgamma(y + size) - libm::lgamma(size) - libm::lgamma(y + 1.0);
        ratio - size * libm::log1p(mean / size) + y * (libm::log(mean) - libm::log(size + mean))
    }

    /// Visits counts from far below the mean upwards, each with the probability for which it stands, until `visit` returns false.
    fn each(self, mean: f64, mut visit: impl FnMut(f64, f64) -> bool) {
        let sd = (mean * self.widened(mean)).sqrt();
        let mut y = (mean - BELOW * sd).floor().max(0.0);
        let share = if self.dispersion == 0.0 { mean } else { mean / (self.dispersion.recip() + mean) };
        let mut density = libm::exp(self.log_density(y, mean));
        loop {
            let stride = (sd / PER_SD).min(y / PER_SIZE).floor();
            if stride <= 1.0 {
                if !visit(y, density) {
                    return;
                }
                let grown = if self.dispersion == 0.0 { 1.0 } else { y + self.dispersion.recip() };
                (y, density) = (y + 1.0, density * share * grown / (y + 1.0));
            } else {
                let middle = y + 0.5 * (stride - 1.0);
                if !visit(middle, stride * libm::exp(self.log_density(middle, mean))) {
                    return;
                }
                y += stride;
                density = libm::exp(self.log_density(y, mean));
            }
        }
    }

    /// Returns the expectation of a statistic within its clip and that of its product with the statistic, whose own expectation is
    /// 0. Above the mean the statistic increases.
    fn expected(self, eta: f64, clip: f64, mut statistic: impl FnMut(f64) -> f64) -> [f64; 2] {
        let mean = libm::exp(eta);
        let (mut all, mut sum, [mut centre, mut slope]) = (0.0, 0.0, [0.0; 2]);
        self.each(mean, |y, p| {
            let s = statistic(y);
            if y > mean && (s >= clip || 1.0 - all < 1e-14) {
                return false;
            }
            let clipped = s.clamp(-clip, clip);
            (all, sum) = (all + p, sum + p * s);
            (centre, slope) = (centre + p * clipped, slope + p * clipped * s);
            true
        });
        [centre + clip * (1.0 - all).max(0.0), slope + clip * (-sum).max(0.0)]
    }

    /// Returns the probabilities of the cells between edges of the standardised count, which ascend.
    pub(super) fn cells(self, eta: f64, edges: &[f64]) -> Vec<f64> {
        let mean = libm::exp(eta);
        let sd = (mean * self.widened(mean)).sqrt();
        let (mut shares, mut all, mut cell) = (vec![0.0; edges.len() + 1], 0.0, 0);
        self.each(mean, |y, p| {
            while edges.get(cell).is_some_and(|edge| (y - mean) / sd >= *edge) {
                cell += 1;
            }
            if cell == edges.len() || 1.0 - all < 1e-14 {
                return false;
            }
            (shares[cell], all) = (shares[cell] + p, all + p);
            true
        });
        shares[cell] += (1.0 - all).max(0.0);
        shares
    }

    /// Returns the expectation of the clipped standardised count, and kappa.
    pub(super) fn of_residual(self, eta: f64, clip: f64) -> [f64; 2] {
        let mean = libm::exp(eta);
        let sd = (mean * self.widened(mean)).sqrt();
        self.expected(eta, clip, |y| (y - mean) / sd)
    }

    /// Returns the expectation of the clipped slope in the logarithm of the dispersion, and its information.
    pub(super) fn of_dispersion(self, eta: f64, clip: f64) -> [f64; 2] {
        let (mean, size) = (libm::exp(eta), self.dispersion.recip());
        let constant = size * libm::log1p(mean / size) + size * digamma(size);
        self.expected(eta, clip, |y| (y - mean) / self.widened(mean) + constant - size * digamma(y + size))
    }

    /// Returns the table of standardised counts with a clip between two linear predictors.
    pub(super) fn residuals(self, ends: [f64; 2], clip: f64) -> CountTable {
        CountTable::new(ends, clip, |eta| self.of_residual(eta, clip))
    }

    /// Returns the table of slopes in the logarithm of the dispersion with a clip between two linear predictors.
    pub(super) fn dispersions(self, ends: [f64; 2], clip: f64) -> CountTable {
        CountTable::new(ends, clip, |eta| self.of_dispersion(eta, clip))
    }
}

impl CountTable {
    fn new(ends: [f64; 2], clip: f64, of: impl Fn(f64) -> [f64; 2]) -> Self {
        let node = |k: usize| ends[0] + (ends[1] - ends[0]) * k as f64 / (SlopeTable::NODES - 1) as f64;
        let values: Vec<[f64; 2]> = (0..SlopeTable::NODES).map(|k| of(node(k))).collect();
        let most = values.iter().fold(LEAST, |most, [_, slope]| slope.max(most));
        // Kappa of a residual is at most 1; rounding may exceed it.
        let unit = if most > 1.001 { most } else { most.min(1.0) };
        let centres = values.iter().map(|[centre, _]| plain(centre.clamp(-clip, clip)));
        let slopes = values.iter().map(|[_, slope]| plain((slope / unit).clamp(0.0, 1.0)));
        let numbers: Vec<f64> = ends.into_iter().chain(centres).chain(slopes).collect();
        let limit = clip + numbers[2..2 + SlopeTable::NODES].iter().fold(0.0, |most, a: &f64| a.abs().max(most));
        Self { limit, unit, numbers }
    }
}

/// Returns the derivative of the logarithm of the gamma function, by the recurrence up to 8 and Stirling's series.
fn digamma(x: f64) -> f64 {
    let (mut below, mut place) = (0.0, x);
    while place < 8.0 {
        below += place.recip();
        place += 1.0;
    }
    let z = (place * place).recip();
    let series = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0))));
    libm::log(place) - 0.5 / place - series - below
}

#[cfg(test)]
#[path = "../tests/count_law.rs"]
mod tests;
