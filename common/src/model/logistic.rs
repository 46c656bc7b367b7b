//! Logistic regression.
//!
//! Density of one record, outcome `y` in `[0, 1]` (0 or 1 as a rule), predictors `x`, with the intercept's `x_0 = 1`:
//! `log p(y | x, theta) = y eta - ln(1 + e^eta)`, `eta = sum_j theta_j x_j`.
//!
//! Parameters: `intercept` (where the job has one), then one coefficient per predictor, on the log-odds scale per unit of the scaled
//! predictor: numeric predictors span `[-1, 1]`, binary ones are 0 or 1.
//!
//! Public bound: the derivative of the log density along a step is `(y - p) Delta_eta`, where `p` is the logistic function of an `eta` on
//! the segment between the two parameter values. Over the declared bounds of the columns `|Delta_eta|` and `p` lie in intervals known
//! without data, which bounds the integral. Where predictors are wide this tends to `sum_j |Delta_j| max|x_j|`, and it is less when
//! no record can have an extreme `eta`.

use std::ops::Range;

use super::blocks::{self, Kernel};
use super::softplus::{softplus, softplus_difference};
use super::{Model, ModelData, Step, outward};
use crate::job::ColumnSpec;
use crate::mechanism::LatticeSum;

/// A logistic regression on declared columns.
pub(super) struct Logistic {
    names: Vec<String>,
    outcome: (f64, f64),
    intercept: bool,
    predictors: Vec<Predictor>,
}

struct Predictor {
    range: (f64, f64),
    centre: f64,
    half_width: f64,
}

impl Logistic {
    /// `names` holds one name per parameter; `outcome` and `predictors` are the declared columns.
    pub(super) fn new(names: Vec<String>, outcome: &ColumnSpec, intercept: bool, predictors: &[ColumnSpec]) -> Self {
        let predictors = predictors
            .iter()
            .map(|column| Predictor { range: column.range(), centre: column.centre(), half_width: column.half_width() })
            .collect();
        Self { names, outcome: outcome.range(), intercept, predictors }
    }

    /// The intercept (0 without one) and the coefficients of the predictors.
    #[inline(always)]
    fn split<'t>(&self, theta: &'t [f64]) -> (f64, &'t [f64]) {
        if self.intercept { (theta[0], &theta[1..]) } else { (0.0, theta) }
    }

    /// `eta` of each record of `rows`.
    #[inline(always)]
    fn linear_predictor(&self, data: &ModelData, rows: Range<usize>, theta: &[f64], out: &mut [f64]) {
        let (intercept, coefficients) = self.split(theta);
        out.fill(intercept);
        for (coefficient, column) in coefficients.iter().zip(&data.predictors) {
            for (eta, x) in out.iter_mut().zip(&column[rows.clone()]) {
                *eta += coefficient * x;
            }
        }
    }

    /// Least and greatest `sum_j theta_j x_j` over the declared bounds.
    fn range_of(&self, theta: impl Iterator<Item = f64>) -> (f64, f64) {
        let intercept = self.intercept.then_some((1.0, 1.0));
        let ranges = intercept.into_iter().chain(self.predictors.iter().map(|p| p.range));
        theta.zip(ranges).fold((0.0, 0.0), |(low, high), (theta, (least, greatest))| {
            let (a, b) = (theta * least, theta * greatest);
            (low + a.min(b), high + a.max(b))
        })
    }
}

impl Kernel for Logistic {
    #[inline(always)]
    fn log_ratios(&self, data: &ModelData, rows: Range<usize>, step: (&[f64], &[f64]), scratch: &mut [f64], out: &mut [f64]) {
        self.linear_predictor(data, rows.clone(), step.0, scratch);
        self.linear_predictor(data, rows.clone(), step.1, out);
        for ((to, from), y) in out.iter_mut().zip(scratch.iter()).zip(&data.outcome[rows]) {
            *to = y * (*to - from) - softplus_difference(*to, *from);
        }
    }
}

impl Model for Logistic {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        let (low, high) = self.range_of(from.iter().zip(to).map(|(from, to)| to - from));
        let furthest = high.max(-low);
        let ((low_from, high_from), (low_to, high_to)) = (self.range_of(from.iter().copied()), self.range_of(to.iter().copied()));
        let least_p = logistic(low_from.min(low_to));
        let greatest_p = logistic(high_from.max(high_to));
        let steepest = (self.outcome.1 - least_p).max(greatest_p - self.outcome.0);
        outward(furthest * steepest)
    }

    fn information_bound(&self) -> Vec<f64> {
        let intercept = self.intercept.then_some(1.0);
        let predictors = self.predictors.iter().map(|p| p.range.0.abs().max(p.range.1.abs()));
        intercept.into_iter().chain(predictors).map(|x| 0.25 * x * x).collect()
    }

    fn lattice_sums(&self, data: &ModelData, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        self.check(data, steps.iter().flat_map(|step| [step.from, step.to]));
        blocks::lattice_sums(self, data, steps)
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        self.check(data, [theta].into_iter());
        let mut eta = vec![0.0; data.outcome.len()];
        self.linear_predictor(data, 0..eta.len(), theta, &mut eta);
        eta.iter().zip(&data.outcome).map(|(eta, y)| y * eta - softplus(*eta)).sum()
    }

    /// A predictor enters as `(x - centre) / half_width`: its coefficient is divided by the half width, and what the centres contribute
    /// moves into the intercept. (Without an intercept, a numeric predictor keeps its centre: then only slopes are reported.)
    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        let (intercept, coefficients) = self.split(theta);
        let slopes: Vec<f64> = coefficients.iter().zip(&self.predictors).map(|(b, p)| b / p.half_width).collect();
        let moved: f64 = slopes.iter().zip(&self.predictors).map(|(b, p)| b * p.centre).sum();
        self.intercept.then_some(intercept - moved).into_iter().chain(slopes).collect()
    }
}

impl Logistic {
    /// Panics when shapes differ. They are public: a party checks the request, and its own loader makes the data.
    fn check<'t>(&self, data: &ModelData, thetas: impl Iterator<Item = &'t [f64]>) {
        assert_eq!(data.predictors.len(), self.predictors.len(), "a shard has one column per predictor");
        assert!(data.predictors.iter().all(|column| column.len() == data.outcome.len()), "a shard's columns are of one length");
        for theta in thetas {
            assert_eq!(theta.len(), self.names.len(), "one value per parameter");
        }
    }
}

/// `1 / (1 + e^-x)` by `libm`, whose bits are the same on every machine: a party and a coordinator compute the same bound.
fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}
