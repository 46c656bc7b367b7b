//! The fit solved: the posterior that it makes, its noise, and whether it may be believed.

use super::chi_square::ChiSquare;
use super::normal::{Normal, Quadratic};
use super::normal_equations::NormalEquations;
use super::prior::PriorTerms;
use super::terms::Terms;
use crate::sampler::matrix::{Cholesky, Matrix, dot};

/// Precision of a prior around 0 on all but the linear coefficients, where curvatures are about 1: too
/// little to be felt, enough to divide by.
const RIDGE: f64 = 1e-4;
/// Least answers per coefficient: each has a tenth of its noise's variance to tell.
const LEAST_PER_TERM: u64 = 20;
/// Standard errors by which the posterior's precision is above 0 in every direction.
const LEAST_ERRORS: f64 = 3.0;
/// Probability below which chance is no longer taken for the reason.
const LEAST_PROBABILITY: f64 = 0.001;

/// Why a fit is not to be shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Doubt {
    /// Fewer answers than coefficients ask for.
    Few { needed: u64 },
    /// No normal distribution comes of it.
    Undetermined,
    /// A direction, mostly of this coordinate, whose precision is so many standard errors.
    Weak { coordinate: usize, errors: f64 },
    /// Cubic terms are there.
    Skewed,
    /// Quartic terms are there.
    Bent(ChiSquare),
    /// Answers lie further off than their noise.
    Scattered(ChiSquare),
}

/// The posterior that a fit makes, and how far noise may have moved it.
pub(super) struct Estimate {
    /// The posterior given the fitted quadratic.
    pub(super) normal: Normal,
    /// Covariance of the mean's noise.
    pub(super) noise: Matrix,
    /// What the fitted cubic terms would move the mean by, and the covariance of that.
    pub(super) shift: Vec<f64>,
    pub(super) shift_noise: Matrix,
}

impl Estimate {
    /// Variance along `direction` by which the cubic terms widen the noise: as much of their squared shift
    /// as its own noise does not account for.
    pub(super) fn widening(&self, direction: &[f64]) -> f64 {
        let shift = dot(direction, &self.shift);
        (shift * shift - self.shift_noise.quadratic(direction)).max(0.0)
    }
}

/// A solved fit.
pub(super) struct Solution {
    /// Whether there are cubic terms; `None` where that could not be computed.
    pub(super) cubic: Option<ChiSquare>,
    pub(super) estimate: Result<Estimate, Doubt>,
}

/// Solves the sums of a fit.
pub(super) fn solve(terms: Terms, sums: &NormalEquations, prior: &PriorTerms<'_>) -> Solution {
    let ridge = |place: usize| if place < terms.dimension { 0.0 } else { RIDGE };
    let Some(factor) = sums.matrix(ridge).cholesky() else {
        return Solution { cubic: None, estimate: Err(Doubt::Undetermined) };
    };
    let fit = Fit { terms, sums, factor };
    let [cubic, quartic, residual] = fit.tests();
    let needed = LEAST_PER_TERM * terms.count() as u64;
    if sums.answers < needed {
        return Solution { cubic: Some(cubic), estimate: Err(Doubt::Few { needed }) };
    }
    let doubts = [(cubic, Doubt::Skewed), (quartic, Doubt::Bent(quartic)), (residual, Doubt::Scattered(residual))];
    let doubt = doubts.into_iter().find(|(test, _)| test.p_value() < LEAST_PROBABILITY);
    let estimate = fit.normal(prior).and_then(|normal| match doubt {
        Some((_, doubt)) => Err(doubt),
        None => fit.estimate(normal).ok_or(Doubt::Undetermined),
    });
    Solution { cubic: Some(cubic), estimate }
}

/// The sums of a fit and the factor of their matrix, whose leading rows are the factor of fewer terms.
struct Fit<'a> {
    terms: Terms,
    sums: &'a NormalEquations,
    factor: Cholesky,
}

impl Fit<'_> {
    /// What cubic terms add to the quadratic, what quartic ones add to both, and what is left.
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

    /// The posterior, where its precision is known in every direction.
    fn normal(&self, prior: &PriorTerms<'_>) -> Result<Normal, Doubt> {
        let coefficients = self.factor.solve(&self.sums.vector[..self.terms.quadratic()]);
        let normal = Quadratic::of(self.terms, &coefficients).times(prior).ok_or(Doubt::Undetermined)?;
        let pairs = normal.precision.eigen().into_iter();
        let weakest = pairs.map(|(value, v)| (value / self.precision_error(&v), v)).min_by(|a, b| a.0.total_cmp(&b.0));
        match weakest {
            Some((errors, v)) if errors.is_nan() || errors < LEAST_ERRORS => {
                let coordinate = (0..v.len()).max_by(|i, j| v[*i].abs().total_cmp(&v[*j].abs())).unwrap_or(0);
                Err(Doubt::Weak { coordinate, errors })
            }
            _ => Ok(normal),
        }
    }

    /// Standard error of `v' H v`.
    fn precision_error(&self, v: &[f64]) -> f64 {
        let mut gradient = vec![0.0; self.terms.quadratic()];
        for i in 0..v.len() {
            for j in 0..=i {
                gradient[self.terms.curvature(i, j)] = if i == j { v[i] * v[i] } else { 2.0 * v[i] * v[j] };
            }
        }
        self.factor.quadratic_of_inverse(&gradient).sqrt()
    }

    /// How the posterior's mean follows the coefficients, to first order: of slopes and curvatures jointly.
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
        // A cubic term moves the mean by what it takes from the fitted quadratic and by its own slope there.
        let by_cubic = Matrix::from_fn(d, |a, j| {
            let own = 0.5 * (normal.mean[j] * normal.mean[j] + normal.covariance[(j, j)]);
            normal.covariance[(a, j)] * own - dot(&whitened[a], &lower.row(first + j)[..first])
        });
        let known = |i: usize| &lower.row(first + i)[first..first + d];
        let cubics = Matrix::from_fn(d, |i, j| dot(known(i), known(j))).cholesky()?;
        let moved: Vec<Vec<f64>> = (0..d).map(|a| cubics.solve_lower(by_cubic.row(a))).collect();
        let coefficients = self.factor.solve(&self.sums.vector[..first + d]);
        Some(Estimate {
            noise: Matrix::from_fn(d, |a, b| dot(&whitened[a], &whitened[b])),
            shift: by_cubic.apply(&coefficients[first..]),
            shift_noise: Matrix::from_fn(d, |a, b| dot(&moved[a], &moved[b])),
            normal,
        })
    }
}
