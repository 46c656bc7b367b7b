//! The location that the releases of another search lead to expect. A search that continues there needs fewer stages of its own.
//!
//! Like the location by stages, it is a point for the next query, and never an answer.

use super::gaussian::factor;
use crate::sampler::matrix::Matrix;

/// A location by other releases, in the coordinates of the search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Guide {
    /// The location.
    pub(crate) mean: Vec<f64>,
    /// Covariance of its distance from the posterior's mean.
    pub(crate) error: Matrix,
    /// Covariance of the posterior without noise.
    pub(crate) weight: Matrix,
}

impl Guide {
    /// Returns the precision with which it locates the truth, as a stage does.
    pub(crate) fn precision(&self) -> Matrix {
        factor(&self.error.clone().plus(&self.weight, 1.0).symmetrised()).inverse()
    }

    /// Returns the information about the truth without the prior's.
    pub(crate) fn information(&self, prior: &[f64]) -> Matrix {
        factor(&self.weight).inverse().plus(&Matrix::diagonal(prior), -1.0).symmetrised()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_is_as_precise_as_its_error_and_the_records_admit() {
        let guide = Guide { mean: vec![0.5], error: Matrix::identity(1).scaled(0.03), weight: Matrix::identity(1).scaled(0.01) };
        assert!((guide.precision()[(0, 0)] - 25.0).abs() < 1e-6);
        assert!((guide.information(&[0.16])[(0, 0)] - 99.84).abs() < 1e-6);
    }
}
