//! Sums of products of predictors and outcome: those of a linear regression with known error, an exponential family (Algorithm 3),
//! and those from which `augmentation` imputes the records of other regressions.
//!
//! With `z = y - offset`:
//! `-(z - theta . x)^2 / (2 v) = -z^2 / (2 v) + sum_j (theta_j / v) x_j z - sum_{j <= k} c_jk (theta_j theta_k / v) x_j x_k`,
//! with `c_jk` = 1/2 for `j = k` and 1 otherwise. So `S` holds the products `x_j x_k`, `j <= k`, then `x_j z`; the intercept's
//! `x` is 1. Products that are constant over records are omitted: the square of the intercept is part of `log g`, and indicators
//! of two levels of a column are never both 1. If a record may be inert, the intercept's square varies between records and is a
//! component.
//!
//! Where the error is unknown, the products are followed by `z^2`, without which the error is not identified. A binary outcome `y`
//! enters as `z = y - 1/2`: the sensitivity of `x_j z` is half that of `x_j y`, and `z^2` is constant.

use super::exponential_family::{BoundedStatistic, ExponentialFamily};
use super::linear_predictor::LinearPredictor;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::tile::Tile;

/// The family of a linear regression.
pub(super) struct LinearStatistic {
    predictor: LinearPredictor,
    /// The range of the outcome less the offset.
    outcome: (f64, f64),
    /// The number subtracted from an outcome.
    centre: f64,
    /// The known variance of the error.
    variance: Option<f64>,
    components: Vec<Component>,
    /// The factor from an offset's value to the outcome's scale.
    offset: Option<f64>,
}

/// A summed product, with coefficients by index in theta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Component {
    Product(usize, usize),
    Outcome(usize),
    OutcomeSquare,
}

impl LinearStatistic {
    /// Creates the family. `variance` and `outcome` are on the model's scale.
    pub(super) fn new(predictor: LinearPredictor, outcome: (f64, f64), variance: f64) -> Self {
        let d = predictor.len();
        let constant = |j: usize, k: usize| predictor.has_intercept() && j == 0 && k == 0 && !predictor.spares_inert();
        let pairs = (0..d).flat_map(|j| (j..d).map(move |k| (j, k)));
        let products = pairs.filter(|(j, k)| !constant(*j, *k) && !predictor.never_together(*j, *k));
        let components = products.map(|(j, k)| Component::Product(j, k)).chain((0..d).map(Component::Outcome)).collect();
        let (shift, offset) = predictor.offset().map_or(((0.0, 0.0), None), |(range, factor)| (range, Some(factor)));
        let outcome = (outcome.0 - shift.1, outcome.1 - shift.0);
        Self { predictor, outcome, centre: 0.0, variance: Some(variance), components, offset }
    }

    /// Creates the sums of a linear regression with an unknown error, which is no family here.
    pub(super) fn with_square(predictor: LinearPredictor, outcome: (f64, f64)) -> Self {
        let mut sums = Self { variance: None, ..Self::new(predictor, outcome, 1.0) };
        sums.components.push(Component::OutcomeSquare);
        sums
    }

    /// Creates the sums of a logistic regression, which is no family.
    pub(super) fn of_binary_outcome(predictor: LinearPredictor, outcome: (f64, f64)) -> Self {
        let centre = 0.5 * (outcome.0 + outcome.1);
        let outcome = (outcome.0 - centre, outcome.1 - centre);
        Self { centre, variance: None, ..Self::new(predictor, outcome, 1.0) }
    }

    /// Returns true if the sums are the sufficient statistic of an exponential family.
    pub(super) fn is_family(&self) -> bool {
        self.variance.is_some()
    }

    /// Returns the variance of the error; not-a-number if it is unknown.
    fn known_variance(&self) -> f64 {
        self.variance.unwrap_or(f64::NAN)
    }
}

impl BoundedStatistic for LinearStatistic {
    fn ranges(&self) -> Vec<(f64, f64)> {
        let one = |component: &Component| {
            let (low, high) = match *component {
                Component::Product(j, k) => self.predictor.product_range(j, k),
                Component::Outcome(j) => {
                    let ((a, b), (c, d)) = (self.predictor.feature_range(j), self.outcome);
                    let ends = [a * c, a * d, b * c, b * d];
                    ends.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), e| (l.min(*e), h.max(*e)))
                }
                Component::OutcomeSquare => (0.0, self.outcome.0.abs().max(self.outcome.1.abs()).powi(2)),
            };
            // An inert record counts as 0.
            if self.predictor.spares_inert() { (low.min(0.0), high.max(0.0)) } else { (low, high) }
        };
        self.components.iter().map(one).collect()
    }

    fn statistic_kernel(&self, component: usize, pass: BlockPass<'_>) {
        self.predictor.check(pass.columns());
        let first = usize::from(self.predictor.has_intercept());
        let feature = |j: usize| j.checked_sub(first);
        let sum = |value: &dyn Fn(&Tile<'_>, usize) -> f64| pass.statistic(value);
        let outcome = |rows: &Tile<'_>, i: usize| match self.offset {
            Some(factor) => rows.outcome()[i] - rows.auxiliary(0)[i] * factor,
            None => rows.outcome()[i] - self.centre,
        };
        match self.components[component] {
            Component::Product(j, k) => match (feature(j), feature(k)) {
                // Not-a-number for an inert record.
                (None, None) => sum(&|rows, i| 1.0 + 0.0 * rows.outcome()[i]),
                (Some(x), None) | (None, Some(x)) => sum(&|rows, i| rows.predictor(x)[i]),
                (Some(x), Some(z)) => sum(&|rows, i| rows.predictor(x)[i] * rows.predictor(z)[i]),
            },
            Component::Outcome(j) => match feature(j) {
                None => sum(&|rows, i| outcome(rows, i)),
                Some(x) => sum(&|rows, i| rows.predictor(x)[i] * outcome(rows, i)),
            },
            Component::OutcomeSquare => sum(&|rows, i| outcome(rows, i) * outcome(rows, i)),
        }
    }
}

impl ExponentialFamily for LinearStatistic {
    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        let variance = self.known_variance();
        let one = |component: &Component| match *component {
            Component::Product(j, k) if j == k => -0.5 * theta[j] * theta[j] / variance,
            Component::Product(j, k) => -theta[j] * theta[k] / variance,
            Component::Outcome(j) => theta[j] / variance,
            Component::OutcomeSquare => -0.5 / variance,
        };
        self.components.iter().map(one).collect()
    }

    fn log_normaliser(&self, theta: &[f64]) -> f64 {
        let constant = self.predictor.has_intercept() && !self.predictor.spares_inert();
        if constant { -0.5 * theta[0] * theta[0] / self.known_variance() } else { 0.0 }
    }
}
