//! A noisy matrix of the second moments of `v = (x, y)`, in the units of its release.
//!
//! `x` has the intercept first if there is one. The matrix is a sum over the parties.

use super::gaussian::smallest_eigenvalue;
use super::moments_noise::MomentsNoise;
use crate::sampler::matrix::Matrix;

/// Ratio of the predictors' least eigenvalue to the noise's greatest one above which the moments are clear: they determine the width
/// without noise, and a score of residuals may follow them.
pub(crate) const CLEAR: f64 = 6.0;
/// The same ratio above which the answer is adequate: its interval allows for the noise.
pub(crate) const DETERMINED: f64 = 3.0;

/// The knowledge of the number of records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Records {
    /// Exactly this number of records.
    Exact(f64),
    /// The first entry of the matrix is the number of records, with its noise.
    First,
}

/// A released matrix of second moments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    /// T, symmetric, `y` last, with tied entries filled in.
    pub(crate) matrix: Matrix,
    pub(crate) noise: MomentsNoise,
    pub(crate) records: Records,
}

impl Moments {
    /// Returns the number of predictors, including the intercept.
    pub(crate) fn predictors(&self) -> usize {
        self.matrix.order().saturating_sub(1)
    }

    /// Returns the number of records, at least 1.
    pub(crate) fn count(&self) -> f64 {
        let value = match self.records {
            Records::Exact(value) => value,
            Records::First => self.matrix[(0, 0)],
        };
        value.max(1.0)
    }

    /// Returns the second moments of the predictors.
    pub(crate) fn among_predictors(&self) -> Matrix {
        Matrix::from_fn(self.predictors(), |i, j| self.matrix[(i.max(j), i.min(j))])
    }

    /// Returns the predictors' moments with the outcome.
    pub(crate) fn with_outcome(&self) -> Vec<f64> {
        (0..self.predictors()).map(|i| self.matrix[(self.predictors(), i)]).collect()
    }

    /// Combines several releases about the same records into their mean by precision, which loses no information. Returns `None`
    /// for an empty slice, or if the releases have different ties.
    pub(crate) fn pooled(releases: &[Self]) -> Option<Self> {
        let first = releases.first()?;
        let precision = |release: &Self| 1.0 / (release.noise.sd() * release.noise.sd());
        let total: f64 = releases.iter().map(precision).sum();
        let mut matrix = Matrix::zeros(first.matrix.order());
        for release in releases {
            if !release.noise.same_ties(&first.noise) {
                return None;
            }
            matrix = matrix.plus(&release.matrix, precision(release) / total);
        }
        Some(Self { matrix, noise: first.noise.clone().with_sd(total.sqrt().recip()), records: first.records })
    }

    /// Returns the moments of some of the predictors, given by their indices, and of the outcome.
    ///
    /// A released count must remain the first entry, so the intercept has to be among the predictors.
    pub(crate) fn restricted(&self, predictors: &[usize]) -> Self {
        let kept: Vec<usize> = predictors.iter().copied().chain([self.predictors()]).collect();
        let matrix = Matrix::from_fn(kept.len(), |i, j| self.matrix[(kept[i], kept[j])]);
        Self { matrix, noise: self.noise.restricted(&kept), records: self.records }
    }

    /// Returns the least eigenvalue of the predictors' moments, and the limit: `ratio sd sqrt(p)`, or the same multiple of the
    /// moments' relative noise where combinations are released.
    pub(crate) fn smallest(&self, ratio: f64) -> (f64, f64) {
        let among = self.among_predictors();
        let least = smallest_eigenvalue(&among);
        let limit = match self.noise.beside_identity(&among) {
            Some(relative) => ratio * relative * least,
            None => ratio * self.noise.sd() * (self.predictors() as f64).sqrt(),
        };
        (least, limit)
    }
}

#[cfg(test)]
#[path = "tests/moments.rs"]
mod tests;
