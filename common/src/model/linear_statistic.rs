//! Linear regression with known error as an exponential family (Algorithm 3).
//!
//! With `z = y - offset`: `-(z - theta . x)^2 / (2 v) = -z^2 / (2 v) + sum_j (theta_j / v) x_j z - sum_{j <= k} c_jk (theta_j theta_k / v) x_j x_k`, `c_jk` being 1/2
//! for `j = k` and 1 otherwise. So `S` holds the products `x_j x_k`, `j <= k`, then `x_j z`; the intercept's `x` is 1. Products that are the
//! same for every record are not in it: the intercept's square is `log g`, and indicators of two levels of a column are never both 1.
//! Where a record may be left out, the intercept's square is a component, since then it is not the same for every record.

use super::ModelData;
use super::exponential_family::{ExponentialFamily, sum_on_lattice};
use super::linear_predictor::LinearPredictor;
use crate::mechanism::LatticeSum;

/// The family of a linear regression.
pub(super) struct LinearStatistic {
    predictor: LinearPredictor,
    /// Of the outcome less the offset.
    outcome: (f64, f64),
    variance: f64,
    components: Vec<Component>,
    /// What an offset's value is multiplied by to be on the outcome's scale.
    offset: f64,
}

/// What is summed; coefficients by their number in theta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Component {
    Product(usize, usize),
    Outcome(usize),
}

impl LinearStatistic {
    /// `variance` and `outcome` are on the model's scale.
    pub(super) fn new(predictor: LinearPredictor, outcome: (f64, f64), variance: f64) -> Self {
        let d = predictor.len();
        let constant = |j: usize, k: usize| predictor.has_intercept() && j == 0 && k == 0 && !predictor.has_levels();
        let pairs = (0..d).flat_map(|j| (j..d).map(move |k| (j, k)));
        let products = pairs.filter(|(j, k)| !constant(*j, *k) && !predictor.never_together(*j, *k));
        let components = products.map(|(j, k)| Component::Product(j, k)).chain((0..d).map(Component::Outcome)).collect();
        let (shift, offset) = predictor.offset().unwrap_or(((0.0, 0.0), 0.0));
        let outcome = (outcome.0 - shift.1, outcome.1 - shift.0);
        Self { predictor, outcome, variance, components, offset }
    }
}

impl ExponentialFamily for LinearStatistic {
    fn ranges(&self) -> Vec<(f64, f64)> {
        let one = |component: &Component| {
            let (low, high) = match *component {
                Component::Product(j, k) => self.predictor.product_range(j, k),
                Component::Outcome(j) => {
                    let ((a, b), (c, d)) = (self.predictor.feature_range(j), self.outcome);
                    let ends = [a * c, a * d, b * c, b * d];
                    ends.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), e| (l.min(*e), h.max(*e)))
                }
            };
            // A record that is left out counts as 0.
            if self.predictor.has_levels() { (low.min(0.0), high.max(0.0)) } else { (low, high) }
        };
        self.components.iter().map(one).collect()
    }

    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        let one = |component: &Component| match *component {
            Component::Product(j, k) if j == k => -0.5 * theta[j] * theta[j] / self.variance,
            Component::Product(j, k) => -theta[j] * theta[k] / self.variance,
            Component::Outcome(j) => theta[j] / self.variance,
        };
        self.components.iter().map(one).collect()
    }

    fn log_normaliser(&self, theta: &[f64]) -> f64 {
        let constant = self.predictor.has_intercept() && !self.predictor.has_levels();
        if constant { -0.5 * theta[0] * theta[0] / self.variance } else { 0.0 }
    }

    fn statistic_sum(&self, data: &ModelData, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        self.predictor.check(data);
        let records = 0..data.outcome.len();
        let first = usize::from(self.predictor.has_intercept());
        let feature = |j: usize| j.checked_sub(first).map(|j| data.predictors[j].as_slice());
        // Not a number for a record that is left out.
        let one = |i: usize| 1.0 + 0.0 * data.outcome[i];
        let outcome = |i: usize| match data.auxiliary.first() {
            Some(offset) => data.outcome[i] - offset[i] * self.offset,
            None => data.outcome[i],
        };
        match self.components[component] {
            Component::Product(j, k) => match (feature(j), feature(k)) {
                (None, None) => sum_on_lattice(records.map(one), step, limits),
                (Some(x), None) | (None, Some(x)) => sum_on_lattice(records.map(|i| x[i]), step, limits),
                (Some(x), Some(z)) => sum_on_lattice(records.map(|i| x[i] * z[i]), step, limits),
            },
            Component::Outcome(j) => match feature(j) {
                None => sum_on_lattice(records.map(outcome), step, limits),
                Some(x) => sum_on_lattice(records.map(|i| x[i] * outcome(i)), step, limits),
            },
        }
    }
}
