//! A noisy matrix of the second moments of `v = (x, y)`, in the units that it was released in.
//!
//! `x` has the intercept first where there is one. All of it is a sum over the parties.

use super::gaussian::smallest_eigenvalue;
use super::moments_noise::MomentsNoise;
use crate::sampler::matrix::Matrix;

/// How many sds of the noise's greatest eigenvalue the predictors' least one is wanted above.
const CLEAR: f64 = 6.0;

/// What is known of the number of records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Records {
    /// Exactly this many count.
    Exact(f64),
    /// The first entry of the matrix is their number, with its noise.
    First,
}

/// A released matrix of second moments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    /// T, symmetric, `y` last; tied entries filled in.
    pub(crate) matrix: Matrix,
    pub(crate) noise: MomentsNoise,
    pub(crate) records: Records,
}

impl Moments {
    /// Number of predictors, the intercept among them.
    pub(crate) fn predictors(&self) -> usize {
        self.matrix.order().saturating_sub(1)
    }

    /// The number of records, at least 1.
    pub(crate) fn count(&self) -> f64 {
        let value = match self.records {
            Records::Exact(value) => value,
            Records::First => self.matrix[(0, 0)],
        };
        value.max(1.0)
    }

    /// The second moments of the predictors.
    pub(crate) fn among_predictors(&self) -> Matrix {
        Matrix::from_fn(self.predictors(), |i, j| self.matrix[(i.max(j), i.min(j))])
    }

    /// Their moments with the outcome.
    pub(crate) fn with_outcome(&self) -> Vec<f64> {
        (0..self.predictors()).map(|i| self.matrix[(self.predictors(), i)]).collect()
    }

    /// Several releases about the same records as one: the mean by precision, which loses nothing. `None`
    /// for none, or where they don't have the same entries.
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

    /// The moments of some of the predictors, by their places, and the outcome's.
    ///
    /// A count that was released is the first entry of what is kept, too: the intercept stays.
    pub(crate) fn restricted(&self, predictors: &[usize]) -> Self {
        let kept: Vec<usize> = predictors.iter().copied().chain([self.predictors()]).collect();
        let matrix = Matrix::from_fn(kept.len(), |i, j| self.matrix[(kept[i], kept[j])]);
        Self { matrix, noise: self.noise.restricted(&kept), records: self.records }
    }

    /// The least eigenvalue of the predictors' moments, and what it should exceed for the posterior to be
    /// near a Gaussian: `6 sd sqrt(p)`. Below it a warning is due; mean and sd stay calibrated.
    pub(crate) fn smallest(&self) -> (f64, f64) {
        let limit = CLEAR * self.noise.sd() * (self.predictors() as f64).sqrt();
        (smallest_eigenvalue(&self.among_predictors()), limit)
    }
}

#[cfg(test)]
#[path = "tests/moments.rs"]
mod tests;
