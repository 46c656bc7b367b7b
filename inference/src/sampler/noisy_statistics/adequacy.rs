//! Checks that decide whether the last stage is an adequate answer.

use std::f64::consts::SQRT_2;

use super::gaussian::{Fit, GaussianPrior, largest_eigenvalue, length, smallest_eigenvalue};
use super::information::Reach;
use super::stage::ScoreStage;
use crate::sampler::matrix::Matrix;
use conclave_common::model::ObservedForm;

/// Largest cubic remainder: the sd that is allowed for it (`stage`) covers values up to here.
const CUBIC_LIMIT: f64 = 1.0;
/// Largest ratio of the information's noise to the information in its weakest direction.
const RHO_LIMIT: f64 = 2.0;
/// Sds of noise above which the information about a family's own parameter must lie. Nearer to 0 its inverse has no useful law.
const OWN_ABOVE: f64 = 3.0;
/// Largest sd of the logarithm of a family's own parameter. Its score bends: for counts, the sd claimed at an estimate one sd too
/// high is smaller than that at the truth by about 1.4 times this share. In simulations up to here intervals hold; beyond, they
/// are too narrow by a third.
const OWN_SD_LIMIT: f64 = 0.12;
/// Least eigenvalue of the coefficients' information, scaled to a unit diagonal, for a law with heavy tails. The negative
/// information of outliers is left out of the release. It is 1 to 2 % of the trace, and outliers among records of high leverage
/// put all of it in the least known direction.
const LEAST_SCALED: f64 = 0.1;
/// Largest reported ratio of that noise to the information, where the information is released as 0 or less.
const MOST_REPORTED: f64 = 1e6;
/// Largest ratio of a posterior variance to the prior's. With so little information, its noise makes the quadratic meaningless in
/// some directions. Of the three figures, this one separates wrong answers from wide ones.
const PRIOR_LIMIT: f64 = 0.1;

/// A figure and its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) limit: f64,
}

impl Figure {
    /// Returns true if the figure is within its limit; false for NaN.
    pub(crate) fn holds(self) -> bool {
        self.value <= self.limit
    }
}

/// The checks of an answer from score stages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScoreChecks {
    /// Cubic remainder: the change of a record's slope on the step to the answer that the information leaves out, times the
    /// step's length in the posterior's metric. It is the size, in posterior sds, of the terms that a quadratic leaves out.
    pub(crate) cubic: Figure,
    /// `2 s_H sqrt(p) lambda_max((H₊ + prior)^-1)`: the noise of the information relative to the information.
    pub(crate) rho: Figure,
    /// Largest ratio of a posterior variance to the prior's.
    pub(crate) prior_share: Figure,
    /// Three sds of the noise of the information about the family's own parameter, relative to that information; `None` without
    /// such a parameter.
    pub(crate) own: Option<Figure>,
    /// Sd of the logarithm of the family's own parameter; `None` without such a parameter.
    pub(crate) own_width: Option<Figure>,
    /// [`LEAST_SCALED`] relative to the least scaled eigenvalue; `None` for a law without heavy tails.
    pub(crate) leverage: Option<Figure>,
    /// True if the released information can be made the observed one.
    pub(crate) observed: bool,
}

impl ScoreChecks {
    /// Computes the figures of a stage and its fit.
    pub(crate) fn of(stage: &ScoreStage, fit: &Fit, prior: &GaussianPrior, reach: Reach<'_>) -> Self {
        let shares = fit.covariance.diagonal_entries();
        let share = shares.iter().zip(&prior.precision).map(|(v, p)| v * p).fold(0.0, f64::max);
        Self {
            cubic: Figure { value: left_out(stage, fit, reach), limit: CUBIC_LIMIT },
            rho: Figure { value: information_noise(stage, fit), limit: RHO_LIMIT },
            prior_share: Figure { value: share, limit: PRIOR_LIMIT },
            own: own_noise(stage),
            leverage: leverage(stage),
            own_width: stage
                .information
                .own_sd
                .map(|_| Figure { value: shares.last().copied().unwrap_or(f64::NAN).max(0.0).sqrt(), limit: OWN_SD_LIMIT }),
            observed: !matches!(stage.information.form, ObservedForm::Counts { intercept: false, .. }),
        }
    }

    /// Returns the checks of the least possible rho and prior share of a stage.
    pub(super) fn least(rho: f64, share: f64) -> [Figure; 2] {
        [Figure { value: rho, limit: RHO_LIMIT }, Figure { value: share, limit: PRIOR_LIMIT }]
    }

    /// Returns the reasons why the answer is not adequate; empty if it is.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let texts = [
            (self.cubic, "the last query was too far from the answer: the remainder of the quadratic there is"),
            (self.rho, "the noise hides the least known direction of the parameters: the ratio of its sd to the information is"),
            (self.prior_share, "the release adds little to the prior: the ratio of a posterior variance to the prior's is"),
        ];
        let own = self.own.map(|figure| {
            (figure, "the noise hides the information about the model's own parameter: the ratio of 3 of its sds to the information is")
        });
        let width = self.own_width.map(|figure| {
            (figure, "the model's own parameter is known too poorly for the shape of its posterior: the sd of its logarithm is")
        });
        let leverage = self.leverage.map(|figure| {
            (figure, "outliers of high leverage may outweigh what is known about correlated predictors: the ratio of their share to it is")
        });
        let text = |(figure, text): (Figure, &str)| format!("{text} {:.2}, above the limit of {}", figure.value, figure.limit);
        let unknown = (!self.observed).then(|| {
            "without an intercept the releases do not determine the information about the dispersion: add an intercept".to_owned()
        });
        texts
            .into_iter()
            .chain(own)
            .chain(width)
            .chain(leverage)
            .filter(|(figure, _)| !figure.holds())
            .map(text)
            .chain(unknown)
            .collect()
    }
}

/// Returns the possible share of left-out negative information in the least known direction of the coefficients.
fn leverage(stage: &ScoreStage) -> Option<Figure> {
    let information = &stage.information;
    if !matches!(information.form, ObservedForm::HeavyTails { .. }) {
        return None;
    }
    let matrix = &information.matrix;
    let scale = |i: usize| matrix[(i, i)].max(f64::MIN_POSITIVE).sqrt();
    let scaled = Matrix::from_fn(matrix.order().saturating_sub(1), |i, j| matrix[(i, j)] / (scale(i) * scale(j)));
    let ratio = LEAST_SCALED / smallest_eigenvalue(&scaled);
    Some(Figure { value: if (0.0..=MOST_REPORTED).contains(&ratio) { ratio } else { MOST_REPORTED }, limit: 1.0 })
}

/// Returns three sds of the noise of the own parameter's information relative to that information.
fn own_noise(stage: &ScoreStage) -> Option<Figure> {
    let last = stage.at.len().checked_sub(1)?;
    let ratio = OWN_ABOVE * SQRT_2 * stage.information.own_sd? / stage.information.matrix[(last, last)];
    let value = if (0.0..=MOST_REPORTED).contains(&ratio) { ratio } else { MOST_REPORTED };
    Some(Figure { value, limit: 1.0 })
}

/// Returns the noise of the information relative to the information, in the direction where it is greatest: the coefficients'
/// noise along the least known direction, or that of the family's own parameter along its own.
pub(crate) fn information_noise(stage: &ScoreStage, fit: &Fit) -> f64 {
    let sqrt_order = (stage.at.len() as f64).sqrt();
    let last = stage.at.len().saturating_sub(1);
    let of_own = stage.information.own_sd.map_or(0.0, |sd| SQRT_2 * sd * fit.without_noise[(last, last)]);
    let of_coefficients = stage.information.sd * sqrt_order * largest_eigenvalue(&fit.without_noise);
    // Not `f64::max`, which discards a NaN.
    2.0 * if of_own > of_coefficients || of_own.is_nan() { of_own } else { of_coefficients }
}

/// Returns the size, in posterior sds, of the terms that the released information leaves out on the step to the answer.
fn left_out(stage: &ScoreStage, fit: &Fit, reach: Reach<'_>) -> f64 {
    stage.beyond(&fit.step, reach) * length(&fit.covariance, &fit.step)
}

/// Returns the size of the terms that a quadratic at a point leaves out after this step, in sds of a posterior with this
/// covariance.
pub(crate) fn cubic(step: &[f64], covariance: &Matrix, reach: Reach<'_>) -> f64 {
    0.5 * reach(step) * length(covariance, step)
}

#[cfg(test)]
#[path = "tests/adequacy.rs"]
mod tests;
