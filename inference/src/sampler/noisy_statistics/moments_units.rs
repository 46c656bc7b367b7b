//! The coordinates of second moments: coded predictors, and the outcome minus its centre in half widths.

use super::coding::Coding;
use super::gaussian::GaussianPrior;
use super::linear_releases::Sigma;
use crate::sampler::matrix::Matrix;
use conclave_common::job::JobSpec;
use conclave_common::model::ScoreModel;
use conclave_common::schema::{ColumnSpec, Family, ModelSpec};

/// The linear map between a model's coordinates and those of its moments.
#[derive(Debug, Clone)]
pub(crate) struct MomentsUnits {
    pub(crate) coding: Coding,
    /// Centre and half width of the moments' outcome.
    pub(crate) outcome: (f64, f64),
    pub(crate) coefficients: usize,
}

impl MomentsUnits {
    /// Returns the units of a model with `order` coordinates; `None` for a model without moments.
    pub(crate) fn of(scores: &dyn ScoreModel, order: usize) -> Option<Self> {
        let coding = Coding::new(&scores.coding(), scores.intercepts(), order);
        Some(Self { coding, outcome: scores.moments_outcome()?, coefficients: scores.coefficients() })
    }

    /// Converts independent normal priors from the model's coordinates.
    pub(crate) fn prior(&self, plain: &GaussianPrior) -> GaussianPrior {
        let GaussianPrior { mut mean, precision, .. } = self.coding.prior(plain);
        self.scale(&mut mean);
        let half = self.outcome.1;
        let scaled = |(j, precision): (usize, &f64)| if j < self.coefficients { half * half * precision } else { *precision };
        GaussianPrior::independent(mean, precision.iter().enumerate().map(scaled).collect())
    }

    /// Returns the knowledge of the residuals' sd.
    pub(crate) fn sigma(&self, spec: &JobSpec) -> Sigma {
        let ModelSpec::Regression(regression) = &spec.model else { return Sigma::Unknown };
        let width = spec.columns.get(&regression.outcome).map_or(1.0, ColumnSpec::half_width);
        match regression.family {
            Family::Linear { sd: Some(sd) } => Sigma::Known(sd / width / self.outcome.1),
            _ => Sigma::Unknown,
        }
    }

    /// Converts the model's coordinates to the moments'.
    pub(crate) fn units(&self, u: &[f64]) -> Vec<f64> {
        let mut coded = self.coding.coded(u);
        self.scale(&mut coded);
        coded
    }

    /// Converts the moments' coordinates to the model's.
    pub(crate) fn plain(&self, units: &[f64]) -> Vec<f64> {
        let (centre, half) = self.outcome;
        let mut coded: Vec<f64> = units.to_vec();
        let (coefficients, own) = coded.split_at_mut(self.coefficients);
        coefficients.iter_mut().for_each(|b| *b *= half);
        if let Some(intercept) = coefficients.first_mut().filter(|_| centre != 0.0) {
            *intercept += centre;
        }
        own.iter_mut().for_each(|log_sigma| *log_sigma += libm::log(half));
        self.coding.plain(&coded)
    }

    /// Converts a covariance to the model's coordinates.
    pub(crate) fn plain_covariance(&self, units: &Matrix) -> Matrix {
        let (_, half) = self.outcome;
        let scale = |j: usize| if j < self.coefficients { half } else { 1.0 };
        self.coding.plain_covariance(&Matrix::from_fn(units.order(), |i, j| scale(i) * scale(j) * units[(i, j)]))
    }

    fn scale(&self, coded: &mut [f64]) {
        let (centre, half) = self.outcome;
        let (coefficients, own) = coded.split_at_mut(self.coefficients);
        if let Some(intercept) = coefficients.first_mut().filter(|_| centre != 0.0) {
            *intercept -= centre;
        }
        coefficients.iter_mut().for_each(|b| *b /= half);
        own.iter_mut().for_each(|log_sigma| *log_sigma -= libm::log(half));
    }
}
