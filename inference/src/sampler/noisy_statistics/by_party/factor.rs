//! A party's factor of the likelihood.

use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::gaussian::{Fit, GaussianPrior, factor, positive_part};
use crate::sampler::noisy_statistics::stage::ScoreStage;

/// The factor `exp(-½ u'A u + h'u)` of a party's own parameters u, in the model's coordinates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Factor {
    /// A, positive semidefinite up to rounding.
    pub(super) precision: Matrix,
    /// h.
    pub(super) pull: Vec<f64>,
}

impl Factor {
    /// Returns the factor of a stage: `A = H̃ W⁻¹ H̃`, `h = A theta* + H̃ W⁻¹ g̃`, with W at the fit.
    pub(super) fn of_stage(stage: &ScoreStage, fit: &Fit, reach: &dyn Fn(&[f64]) -> f64, coding: &Coding) -> Self {
        let (slope, spread) = (&stage.information.matrix, stage.spread_at(&fit.step, reach));
        let weighted = slope.transposed().times(&factor(&spread).inverse());
        let precision = weighted.times(slope).symmetrised();
        let ahead = precision.apply(&stage.at);
        let pull = ahead.iter().zip(weighted.apply(&stage.score)).map(|(a, b)| a + b).collect();
        Self { precision, pull }.plain(coding)
    }

    /// Returns the factor of a posterior with this mean and covariance under a prior.
    pub(super) fn beside_prior((mean, covariance): (&[f64], &Matrix), prior: &GaussianPrior, coding: &Coding) -> Self {
        let whole = factor(covariance).inverse().symmetrised();
        let pull = whole.apply(mean).iter().zip(prior.pull()).map(|(all, own)| all - own).collect();
        Self { precision: whole.plus(&prior.matrix(), -1.0).symmetrised(), pull }.plain(coding)
    }

    /// Returns the factor that the party's records would have without noise, by its released information.
    pub(super) fn without_noise(stage: &ScoreStage, coding: &Coding) -> Self {
        let precision = positive_part(&stage.information.matrix);
        let pull = vec![0.0; precision.order()];
        Self { precision, pull }.plain(coding)
    }

    /// Converts from coded coordinates to the model's.
    fn plain(self, coding: &Coding) -> Self {
        Self { precision: coding.plain_precision(&self.precision), pull: coding.plain_gradient(&self.pull) }
    }
}
