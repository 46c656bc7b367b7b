//! A noisy information matrix, and the combination of several.

use crate::sampler::matrix::{Matrix, dot};

/// Assumed relative change of an information matrix if the linear predictor moves by 1.
const CHANGE: f64 = 0.5;
/// Move of the linear predictor beyond which an information matrix is not informative.
const FARTHEST: f64 = 5.0;

/// The greatest `|x'direction|` over the public box of a record's design row `x`.
pub(crate) type Reach<'a> = &'a dyn Fn(&[f64]) -> f64;

/// An expected information matrix at a public point, released by the parties and summed over them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Information {
    /// The point, in coordinates.
    pub(crate) at: Vec<f64>,
    /// Symmetric and noisy; it need not be positive definite.
    pub(crate) matrix: Matrix,
    /// Noise sd of an off-diagonal entry; diagonal entries have sqrt 2 times that.
    pub(crate) sd: f64,
    /// Noise sd of the last coordinate if it is the family's own parameter: its diagonal entry has noise of sqrt 2 times this sd.
    /// Its off-diagonal entries are 0 and have no noise.
    pub(crate) own_sd: Option<f64>,
}

impl Information {
    /// Returns the covariance of the noise after multiplication by a step: `s_H² (delta delta' + |delta|² I)`. For the family's
    /// own parameter, only its diagonal entry contributes.
    pub(crate) fn propagated_noise(&self, delta: &[f64]) -> Matrix {
        let variance = self.sd * self.sd;
        let coefficients = self.coefficients();
        let length = variance * dot(&delta[..coefficients], &delta[..coefficients]);
        Matrix::from_fn(delta.len(), |i, j| match (i < coefficients && j < coefficients, self.own_sd) {
            (true, _) => variance * (delta[i] * delta[j]) + if i == j { length } else { 0.0 },
            (false, Some(own)) if i == j => 2.0 * own * own * (delta[i] * delta[i]),
            (false, _) => 0.0,
        })
    }

    /// Combines several by their precision, at the mean of their points. Returns `None` for an empty slice.
    pub(crate) fn pooled(parts: &[Self]) -> Option<Self> {
        Self::weighed(parts, &parts.iter().map(|part| part.sd * part.sd).collect::<Vec<_>>())
    }

    /// Estimates the information at a point from several, weighted by their noise and their distance from the point. Returns
    /// `None` for an empty slice.
    pub(crate) fn near(parts: &[Self], at: &[f64], reach: Reach<'_>) -> Option<Self> {
        let variance = |part: &Self| {
            let path: Vec<f64> = part.at.iter().zip(at).map(|(from, to)| to - from).collect();
            let changed = CHANGE * libm::expm1(reach(&path).min(FARTHEST)) * part.size();
            part.sd * part.sd + changed * changed
        };
        Self::weighed(parts, &parts.iter().map(variance).collect::<Vec<_>>())
    }

    /// Returns the mean of several with weights inverse to these variances.
    fn weighed(parts: &[Self], variances: &[f64]) -> Option<Self> {
        let first = parts.first()?;
        let least = variances.iter().copied().fold(f64::INFINITY, f64::min);
        // The weights are equal if a variance is 0 or NaN.
        let raw: Vec<f64> = variances.iter().map(|v| if *v > 0.0 && least > 0.0 { least / v } else { 1.0 }).collect();
        let all: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / all).collect();
        let mut pooled = Self {
            at: vec![0.0; first.at.len()],
            matrix: Matrix::zeros(first.matrix.order()),
            sd: 0.0,
            own_sd: first.own_sd.map(|_| 0.0),
        };
        for (part, weight) in parts.iter().zip(&weights) {
            pooled.at.iter_mut().zip(&part.at).for_each(|(sum, x)| *sum += weight * x);
            pooled.matrix = pooled.matrix.plus(&part.matrix, *weight);
            pooled.sd = pooled.sd.hypot(weight * part.sd);
            pooled.own_sd = pooled.own_sd.map(|sd| sd.hypot(weight * part.own_sd.unwrap_or(0.0)));
        }
        Some(pooled)
    }

    /// Returns the mean of the coefficients' diagonal entries, at least the noise.
    fn size(&self) -> f64 {
        let coefficients = self.coefficients();
        let sum: f64 = self.matrix.diagonal_entries()[..coefficients].iter().sum();
        (sum / coefficients.max(1) as f64).max(self.sd)
    }

    fn coefficients(&self) -> usize {
        self.at.len() - usize::from(self.own_sd.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACH: Reach<'static> = &|d| d.iter().map(|x| x.abs()).sum();

    fn information(at: f64, value: f64, sd: f64) -> Information {
        Information { at: vec![at, 0.0], matrix: Matrix::identity(2).scaled(value), sd, own_sd: None }
    }

    #[test]
    fn the_more_precise_counts_for_more() {
        let Some(pooled) = Information::pooled(&[information(0.0, 10.0, 1.0), information(1.0, 20.0, 2.0)]) else { return };
        assert!((pooled.matrix[(0, 0)] - 12.0).abs() < 1e-12 && (pooled.at[0] - 0.2).abs() < 1e-12);
        // 1 / (1 + 1/4).
        assert!((pooled.sd * pooled.sd - 0.8).abs() < 1e-12);
        assert_eq!(Information::pooled(&[]), None);
    }

    #[test]
    fn what_is_far_off_hardly_counts() {
        let parts = [information(0.0, 100.0, 1.0), information(4.0, 400.0, 1.0)];
        let Some(near) = Information::near(&parts, &[0.1, 0.0], REACH) else { return };
        assert!((near.matrix[(0, 0)] - 100.0).abs() < 0.1, "{near:?}");
        // Exact releases have equal weights, and nothing is lost.
        let exact = [information(0.0, 1.0, 0.0), information(0.0, 3.0, 0.0)];
        assert_eq!(Information::near(&exact, &[0.0, 0.0], REACH).map(|all| all.matrix[(0, 0)]), Some(2.0));
    }

    #[test]
    fn noise_goes_through_a_step_as_it_does_through_a_matrix() {
        // A symmetric matrix with entries of sd s, sqrt 2 s on the diagonal, times (1, 2).
        let through = information(0.0, 1.0, 0.5).propagated_noise(&[1.0, 2.0]);
        assert_eq!(through.entries(), [0.25 * 6.0, 0.25 * 2.0, 0.25 * 2.0, 0.25 * 9.0]);
        let own = Information { own_sd: Some(3.0), ..information(0.0, 1.0, 0.5) }.propagated_noise(&[1.0, 2.0]);
        assert_eq!(own.entries(), [0.5, 0.0, 0.0, 72.0]);
    }
}
