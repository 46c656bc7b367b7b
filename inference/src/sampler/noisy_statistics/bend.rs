//! The difference of a stage's likelihood from one whose residual is straight in the step to theta.
//!
//! The likelihood takes a bent step in place of the step itself. The two agree at the fit to first order.

use super::gaussian::{Fit, factor};
use super::information::Information;
use super::times_shape::TimesShape;
use crate::sampler::matrix::{Cholesky, Matrix, dot};
use conclave_common::model::ObservedForm;

/// Largest exponent of a bent score, which keeps a likelihood finite.
const FARTHEST: f64 = 30.0;

/// A map of steps from the score's point.
pub(super) enum Bend {
    /// The step itself.
    None,
    /// The observed information gives the slope from the score's point to the fit. Beyond, the score bends along the logarithm of
    /// the family's own parameter.
    Own {
        /// The fit's step along that logarithm.
        fitted: f64,
        /// The rate at which the score bends, not 0.
        rate: f64,
    },
    /// Times: the posterior without noise is skewed.
    Times(Box<Stretch>),
}

/// A stretch of steps from the fit, by which a Gaussian becomes the convolution of a skewed likelihood and Gaussian noise.
///
/// A step `x` from the fit is the sum of the deviation `z` of theta from the mode of the likelihood without noise, and of that
/// mode's deviation due to noise. For `W = H₊ + noise`, `z` has the mean `W^-1 H x` and costs the part `z'H₊z` of `x'HW^-1Hx`. To
/// the first order of the skewness, the convolution has the fall of the likelihood in the place of that part (Laplace's method;
/// the slope of its determinant is below 0.03 sds of the noise). Without noise the result is the likelihood itself. A Gaussian
/// remains where noise is most of the spread.
pub(super) struct Stretch {
    shape: TimesShape,
    /// The fit's step.
    fitted: Vec<f64>,
    /// H̃, H₊ and W at the fit.
    slope: Matrix,
    positive: Matrix,
    spread: Cholesky,
}

impl Bend {
    /// Returns the bend around a fit. `positive` is the positive part of the information, and `spread` the residual's covariance
    /// at the fit.
    pub(super) fn of(information: &Information, fit: &Fit, positive: &Matrix, spread: &Matrix) -> Self {
        let rate = information.own_bend();
        if rate != 0.0 {
            return Self::Own { fitted: fit.step.last().copied().unwrap_or(0.0), rate };
        }
        match information.form {
            ObservedForm::Times => TimesShape::of(&fit.mean, &information.matrix).map_or(Self::None, |shape| {
                let (fitted, slope) = (fit.step.clone(), information.matrix.clone());
                Self::Times(Box::new(Stretch { shape, fitted, slope, positive: positive.clone(), spread: factor(spread) }))
            }),
            _ => Self::None,
        }
    }

    /// Returns the bent step.
    pub(super) fn bent(&self, mut step: Vec<f64>) -> Vec<f64> {
        match self {
            Self::None => {}
            Self::Own { fitted, rate } => {
                if let Some(last) = step.last_mut() {
                    *last = fitted + libm::expm1((rate * (*last - fitted)).min(FARTHEST)) / rate;
                }
            }
            Self::Times(stretch) => {
                let beyond: Vec<f64> = step.iter().zip(&stretch.fitted).map(|(to, fitted)| to - fitted).collect();
                let factor = stretch.factor(&beyond);
                step.iter_mut().zip(&stretch.fitted).zip(beyond).for_each(|((to, fitted), x)| *to = fitted + factor * x);
            }
        }
        step
    }
}

impl Stretch {
    /// Returns the factor of a step from the fit: positive, and 1 for a step of length 0.
    fn factor(&self, beyond: &[f64]) -> f64 {
        let moved = self.slope.apply(beyond);
        let without_noise = self.spread.solve(&moved);
        let (part, whole) = (self.positive.quadratic(&without_noise), dot(&moved, &without_noise));
        // At most 1 up to rounding, because W is at least H₊.
        let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
        (1.0 + share * (self.shape.fall(&without_noise) - 1.0)).max(f64::MIN_POSITIVE).sqrt()
    }
}

#[cfg(test)]
#[path = "tests/bend.rs"]
mod tests;
