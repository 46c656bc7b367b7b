//! Simulated problems whose sums are released, and measurements on them.

mod linear_problem;
mod problem;
mod simulations;

use super::gaussian::{Fit, roots};

impl Fit {
    /// Returns the posterior sd of each coordinate.
    pub(crate) fn sd(&self) -> Vec<f64> {
        roots(&self.covariance)
    }

    /// Returns the sd of each coordinate without noise.
    pub(crate) fn sd_data(&self) -> Vec<f64> {
        roots(&self.without_noise)
    }

    /// Returns the share of each coordinate's variance that is due to the noise; `None` if the released information is not
    /// positive definite, because the variance without noise is then unknown.
    pub(crate) fn noise_share(&self) -> Vec<Option<f64>> {
        let (with, without) = (self.covariance.diagonal_entries(), self.without_noise.diagonal_entries());
        let share = |(with, without): (&f64, &f64)| (1.0 - without / with).clamp(0.0, 1.0);
        with.iter().zip(&without).map(|pair| self.definite.then(|| share(pair))).collect()
    }
}
