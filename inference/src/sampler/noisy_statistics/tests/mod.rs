//! Simulated problems that the released numbers are made of, and what is measured on them.

mod linear_problem;
mod problem;
mod simulations;

use super::gaussian::{Fit, roots};

impl Fit {
    /// Posterior sd of each coordinate.
    pub(crate) fn sd(&self) -> Vec<f64> {
        roots(&self.covariance)
    }

    /// What the sd of each coordinate would be without noise.
    pub(crate) fn sd_data(&self) -> Vec<f64> {
        roots(&self.without_noise)
    }

    /// The share of each coordinate's variance that is there because of the noise; `None` where the
    /// released information is not positive, so that nothing is known of the variance without it.
    pub(crate) fn noise_share(&self) -> Vec<Option<f64>> {
        let (with, without) = (self.covariance.diagonal_entries(), self.without_noise.diagonal_entries());
        let share = |(with, without): (&f64, &f64)| (1.0 - without / with).clamp(0.0, 1.0);
        with.iter().zip(&without).map(|pair| self.definite.then(|| share(pair))).collect()
    }
}
