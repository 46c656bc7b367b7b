//! The solution of the fit: its posterior, its noise, and the tests of its validity.

use super::answers::AnswerKind;
use super::chi_square::ChiSquare;
use super::normal::{Normal, Quadratic};
use super::normal_equations::NormalEquations;
use super::prior::PriorTerms;
use super::terms::Terms;
use crate::sampler::matrix::{Cholesky, Matrix, dot};

/// Precision of a prior around 0 on all but the linear coefficients, where curvatures are about 1: too small to matter, and large
/// enough for a division.
const RIDGE: f64 = 1e-4;
/// Least number of answers per coefficient: the signal in an answer has about a tenth of its noise's variance.
const LEAST_PER_TERM: u64 = 20;
/// Least number of standard errors by which the posterior's precision exceeds 0 in every direction, for ratios.
const LEAST_ERRORS: f64 = 3.0;
/// The same for slopes. Along a direction of few effective draws the fitted precision is biased upwards, and the fits that pass
/// a limit are those with the largest error. At 3, means are off by up to 12 stated errors where predictors are correlated.
const LEAST_ERRORS_OF_SLOPES: f64 = 4.0;
/// Relative excess of the squared error of a mean from slopes, per squared relative standard error of the precision.
///
/// A chain that gradients drive is an autoregression, and the precision is its coefficient. With `n` effective draws the relative
/// variance of the fitted precision is `1/n`, and its relative bias is `2/n` (Kendall 1954). The mean's error is that of the
/// chain's own mean, and does not depend on the fit. The stated error is proportional to the reciprocal of the fitted precision,
/// so the squared ratio of the two has mean `1 + (1 + 2 * 2)/n` to first order. In simulations with 20 to 40 effective draws it
/// is `1 + 7/n`.
const EXCESS: f64 = 7.0;
/// Probability below which a deviation is no longer attributed to chance.
const LEAST_PROBABILITY: f64 = 0.001;

/// A reason to suppress a fit.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Defect {
    /// Fewer answers than the coefficients need.
    TooFewAnswers { needed: u64 },
    /// The fit yields no normal distribution.
    Undetermined,
    /// A direction, mostly along this coordinate, whose precision is fewer standard errors above 0 than needed.
    Weak { coordinate: usize, errors: f64, needed: f64 },
    /// There are cubic terms.
    Skewed,
    /// There are quartic terms.
    Bent(ChiSquare),
    /// The answers deviate by more than their noise.
    Scattered(ChiSquare),
}

/// The posterior of a fit, and its error from noise.
pub(super) struct Estimate {
    /// The posterior given the fitted quadratic.
    pub(super) normal: Normal,
    /// Covariance of the mean's noise.
    pub(super) noise: Matrix,
    /// Shift of the mean by the fitted cubic terms.
    pub(super) shift: Vec<f64>,
    pub(super) shift_noise: Matrix,
}

impl Estimate {
    /// Returns the variance along `direction` by which the cubic terms widen the noise: their squared shift minus its own noise
    /// variance, at least 0.
    pub(super) fn widening(&self, direction: &[f64]) -> f64 {
        let shift = dot(direction, &self.shift);
        (shift * shift - self.shift_noise.quadratic(direction)).max(0.0)
    }
}

/// A solved fit.
pub(super) struct Solution {
    /// Test for cubic terms; `None` if it could not be computed.
    pub(super) cubic: Option<ChiSquare>,
    pub(super) estimate: Result<Estimate, Defect>,
}

/// Solves the sums of a fit.
pub(super) fn solve(terms: Terms, sums: &NormalEquations, prior: &PriorTerms<'_>, kind: AnswerKind) -> Solution {
    let ridge = |place: usize| if place < terms.dimension { 0.0 } else { RIDGE };
    let Some(factor) = sums.matrix(ridge).cholesky() else {
        return Solution { cubic: None, estimate: Err(Defect::Undetermined) };
    };
    let fit = Fit { terms, sums, factor, kind };
    let [cubic, quartic, residual] = fit.tests();
    let needed = LEAST_PER_TERM * terms.count() as u64;
    if sums.answers < needed {
        return Solution { cubic: Some(cubic), estimate: Err(Defect::TooFewAnswers { needed }) };
    }
    let defects = [(cubic, Defect::Skewed), (quartic, Defect::Bent(quartic)), (residual, Defect::Scattered(residual))];
    let defect = defects.into_iter().find(|(test, _)| test.p_value() < LEAST_PROBABILITY);
    let estimate = fit.normal(prior).and_then(|normal| match defect {
        Some((_, defect)) => Err(defect),
        None => fit.estimate(normal).ok_or(Defect::Undetermined),
    });
    Solution { cubic: Some(cubic), estimate }
}

/// The sums of a fit and the factor of their matrix, whose leading rows are the factor of fewer terms.
struct Fit<'a> {
    terms: Terms,
    sums: &'a NormalEquations,
    factor: Cholesky,
    kind: AnswerKind,
}

impl Fit<'_> {
    /// Tests the cubic terms beyond the quadratic, the quartic ones beyond both, and the residual.
    fn tests(&self) -> [ChiSquare; 3] {
        let explained: Vec<f64> = self.factor.solve_lower(&self.sums.vector).iter().map(|z| z * z).collect();
        let (first, d) = (self.terms.quadratic(), self.terms.dimension);
        let added = |from: usize| ChiSquare { value: explained[from..from + d].iter().sum(), degrees_of_freedom: d as u64 };
        let residual = ChiSquare {
            value: self.sums.squares - explained.iter().sum::<f64>(),
            degrees_of_freedom: self.sums.answers.saturating_sub(self.terms.count() as u64),
        };
        [added(first), added(first + d), residual]
    }

    /// Returns the posterior if its precision is known in every direction.
    fn normal(&self, prior: &PriorTerms<'_>) -> Result<Normal, Defect> {
        let coefficients = self.factor.solve(&self.sums.vector[..self.terms.quadratic()]);
        let normal = Quadratic::of(self.terms, &coefficients).times(prior).ok_or(Defect::Undetermined)?;
        let pairs = normal.precision.eigen().into_iter();
        let needed = if self.kind == AnswerKind::Slope { LEAST_ERRORS_OF_SLOPES } else { LEAST_ERRORS };
        let weakest = pairs.map(|(value, v)| (value / self.precision_error(&v), v)).min_by(|a, b| a.0.total_cmp(&b.0));
        match weakest {
            Some((errors, v)) if errors.is_nan() || errors < needed => {
                let coordinate = (0..v.len()).max_by(|i, j| v[*i].abs().total_cmp(&v[*j].abs())).unwrap_or(0);
                Err(Defect::Weak { coordinate, errors, needed })
            }
            _ => Ok(normal),
        }
    }

    /// Returns the standard error of `v' H v`.
    fn precision_error(&self, v: &[f64]) -> f64 {
        let mut gradient = vec![0.0; self.terms.quadratic()];
        for i in 0..v.len() {
            for j in 0..=i {
                gradient[self.terms.curvature(i, j)] = if i == j { v[i] * v[i] } else { 2.0 * v[i] * v[j] };
            }
        }
        self.factor.quadratic_of_inverse(&gradient).sqrt()
    }

    /// Widens the noise of a mean from slopes along each principal axis; see [`EXCESS`].
    fn widened(&self, normal: &Normal, noise: &Matrix) -> Matrix {
        let factor = |(value, axis): (f64, Vec<f64>)| {
            let relative = self.precision_error(&axis) / value;
            Matrix::outer(&axis, (1.0 + EXCESS * relative * relative).sqrt())
        };
        let by =
            normal.precision.eigen().into_iter().map(factor).fold(Matrix::zeros(noise.order()), |sum, one| sum.plus(&one, 1.0));
        by.times(noise).times(&by).symmetrised()
    }

    /// Returns the first-order derivatives of the posterior's mean with respect to slopes and curvatures.
    fn mean_by_coefficient(&self, normal: &Normal, a: usize) -> Vec<f64> {
        let (row, mean) = (normal.covariance.row(a), &normal.mean);
        let mut gradient = row.to_vec();
        gradient.resize(self.terms.quadratic(), 0.0);
        for i in 0..row.len() {
            for j in 0..=i {
                let both = if i == j { row[i] * mean[i] } else { row[i] * mean[j] + row[j] * mean[i] };
                gradient[self.terms.curvature(i, j)] = -both;
            }
        }
        gradient
    }

    fn estimate(&self, normal: Normal) -> Option<Estimate> {
        let (d, first) = (self.terms.dimension, self.terms.quadratic());
        let whitened: Vec<Vec<f64>> = (0..d).map(|a| self.factor.solve_lower(&self.mean_by_coefficient(&normal, a))).collect();
        let lower = self.factor.lower();
        // A cubic term moves the mean in two ways: by its effect on the fitted quadratic, and by its own slope there.
        let by_cubic = Matrix::from_fn(d, |a, j| {
            let own = 0.5 * (normal.mean[j] * normal.mean[j] + normal.covariance[(j, j)]);
            normal.covariance[(a, j)] * own - dot(&whitened[a], &lower.row(first + j)[..first])
        });
        let known = |i: usize| &lower.row(first + i)[first..first + d];
        let cubics = Matrix::from_fn(d, |i, j| dot(known(i), known(j))).cholesky()?;
        let moved: Vec<Vec<f64>> = (0..d).map(|a| cubics.solve_lower(by_cubic.row(a))).collect();
        let coefficients = self.factor.solve(&self.sums.vector[..first + d]);
        let noise = Matrix::from_fn(d, |a, b| dot(&whitened[a], &whitened[b]));
        Some(Estimate {
            noise: if self.kind == AnswerKind::Slope { self.widened(&normal, &noise) } else { noise },
            shift: by_cubic.apply(&coefficients[first..]),
            shift_noise: Matrix::from_fn(d, |a, b| dot(&moved[a], &moved[b])),
            normal,
        })
    }
}
