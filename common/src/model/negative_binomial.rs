//! Negative binomial regression, with a variance that is quadratic in the mean (NB2; Cameron and Trivedi, *Regression Analysis of
//! Count Data*, 2013, section 3.3).
//!
//! Density of one record, count `y` within the declared bounds, linear predictor `eta` as in [`super::poisson`], mean
//! `mu = e^eta` and dispersion `a`, so that the variance is `mu + a mu^2`; up to `-ln(y!)`:
//! `log p(y | eta, a) = sum_{i < y} ln(1 + a i) + y eta - (y + 1/a) ln(1 + a mu)`. The sum is
//! `ln Gamma(y + 1/a) - ln Gamma(1/a) + y ln(a)`.
//!
//! Parameters: those of a Poisson regression, then `dispersion`, the `a` above, clamped to `[1e-9, 1e9]`.
//!
//! Public bound and centre. In `eta` the log density is concave, and its slope `(y - mu) / (1 + a mu)` increases in `y`; see
//! [`concave_ratios`]. Consider a step of the dispersion alone, upwards for example. From `y` to `y + 1` the log ratio `h(y, mu)`
//! changes by `ln[(1 + a' y)(1 + a mu) / ((1 + a y)(1 + a' mu))]`, which has the sign of `y - mu`. Its derivative in `mu` is
//! `mu - y` times a positive factor. So it is greatest at a corner of the declared ranges, and least at the largest mean and the
//! count just above it, or the count closest to that. A step in both is treated as two steps, in either order.

use super::count_residual::standardised;
use super::counts::Counts;
use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::LinearPredictor;
use super::logistic::logistic;
use super::observed::ObservedForm;
use super::ratio_range::RatioRange;
use super::regression::{concave_ratios, one_after_the_other};
use super::slopes::{Slopes, Standardised};
use super::softplus::softplus;
use crate::elementary::ln_gamma_difference;
use crate::elementary::{digamma_difference, exp, trigamma_difference};
use crate::schema::ColumnSpec;

const DISPERSION: (f64, f64) = (1e-9, 1e9);

/// The likelihood of an overdispersed count.
pub(super) struct NegativeBinomial {
    counts: Counts,
}

/// The dispersion in the forms that a density needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dispersion {
    /// `1 / a`.
    size: f64,
    /// `ln(a)`.
    logarithm: f64,
}

impl Dispersion {
    fn new(a: f64) -> Self {
        let a = a.clamp(DISPERSION.0, DISPERSION.1);
        Self { size: a.recip(), logarithm: libm::log(a) }
    }

    /// Returns the term that depends on the count and the dispersion only.
    #[inline(always)]
    fn of_count(self, y: f64) -> f64 {
        ln_gamma_difference(y + self.size, self.size) + y * self.logarithm
    }

    /// Returns the term that depends on the linear predictor.
    #[inline(always)]
    fn of_mean(self, y: f64, eta: f64) -> f64 {
        y * eta - (y + self.size) * softplus(eta + self.logarithm)
    }

    /// Returns the slope of the log density in `eta`.
    fn slope(self, y: f64, eta: f64) -> f64 {
        y - (y + self.size) * logistic(eta + self.logarithm)
    }
}

/// Public constants of a step.
pub(super) struct Constants {
    counts: Counts,
    from: Dispersion,
    to: Dispersion,
}

impl NegativeBinomial {
    pub(super) fn new(outcome: &ColumnSpec) -> Self {
        Self { counts: Counts::new(outcome) }
    }

    /// Returns the range of the log ratio at a fixed dispersion.
    fn moving_mean(&self, predictor: &LinearPredictor, step: &Ends<'_>, a: Dispersion) -> RatioRange {
        let span = predictor.span(step.from, step.to);
        concave_ratios(span, self.counts.range(), |y, eta| a.of_mean(y, eta), |y, eta| a.slope(y, eta), libm::log)
    }

    /// Returns the range of the log ratio of a step of the dispersion at these coefficients.
    fn moving_dispersion(&self, predictor: &LinearPredictor, theta: &[f64], from: Dispersion, to: Dispersion) -> RatioRange {
        if from == to {
            return RatioRange::of([0.0]);
        }
        if to.logarithm < from.logarithm {
            return self.moving_dispersion(predictor, theta, to, from).reversed();
        }
        let (low, high) = predictor.range(theta, 1.0, None);
        let (least, greatest) = self.counts.range();
        // The slack covers the rounding of a difference of large numbers.
        let ratio = |y: f64, eta: f64| {
            let parts = [to.of_count(y), to.of_mean(y, eta), -from.of_count(y), -from.of_mean(y, eta)];
            let value = (parts[0] + parts[2]) + (parts[1] + parts[3]);
            (value, 1e-13 * parts.iter().map(|part| part.abs()).sum::<f64>())
        };
        let corners = [ratio(least, low), ratio(least, high), ratio(greatest, low), ratio(greatest, high)];
        let most = corners.iter().map(|(value, slack)| value + slack).fold(f64::NEG_INFINITY, f64::max);
        let y = libm::exp(high).ceil().clamp(least, greatest);
        let (value, slack) = ratio(y, libm::log(y).clamp(low, high));
        RatioRange::of([value - slack, most])
    }
}

impl NegativeBinomial {
    /// Returns the expected information about the logarithm of the dispersion at a linear predictor: the sum over counts `i` of
    /// `P(Y > i) / (1 + a i)²`, less the information about `eta`.
    fn expected_of_dispersion(&self, a: Dispersion, eta: f64) -> f64 {
        /// Counts that are summed; the terms fall as their square.
        const TERMS: usize = 4096;
        let (dispersion, mean) = (a.size.recip(), libm::exp(eta).min(self.counts.range().1.max(1.0)));
        let share = mean / (a.size + mean);
        let mut density = libm::exp(-a.size * libm::log1p(mean * dispersion));
        let (mut above, mut sum) = (1.0 - density, 0.0);
        for i in 0..TERMS {
            sum += above.max(0.0) / (1.0 + dispersion * i as f64).powi(2);
            density *= (i as f64 + a.size) / (i as f64 + 1.0) * share;
            above -= density;
        }
        (sum - a.size * share).max(f64::MIN_POSITIVE)
    }
}

impl Likelihood for NegativeBinomial {
    type Constants = Constants;

    fn constants(&self, _predictor: &LinearPredictor, step: &Ends<'_>) -> Constants {
        let (from, to) = step.own.unwrap_or((f64::NAN, f64::NAN));
        Constants { counts: self.counts, from: Dispersion::new(from), to: Dispersion::new(to) }
    }

    #[inline(always)]
    fn log_ratio(constants: &Constants, y: f64, from: f64, to: f64) -> f64 {
        let y = constants.counts.of(y);
        let (a, b) = (constants.from, constants.to);
        // A public condition: the dispersion does not change.
        let of_count = if a == b { 0.0 } else { b.of_count(y) - a.of_count(y) };
        of_count + (b.of_mean(y, to) - a.of_mean(y, from))
    }

    fn log_density(&self, y: f64, eta: f64, own: Option<f64>) -> f64 {
        let (y, a) = (self.counts.of(y), Dispersion::new(own.unwrap_or(f64::NAN)));
        a.of_count(y) + a.of_mean(y, eta)
    }

    fn ratios(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> RatioRange {
        let Constants { from, to, .. } = self.constants(predictor, step);
        if step.from == step.to {
            return self.moving_dispersion(predictor, step.from, from, to);
        }
        one_after_the_other(
            self.moving_mean(predictor, step, from),
            self.moving_dispersion(predictor, step.to, from, to),
            self.moving_dispersion(predictor, step.from, from, to),
            self.moving_mean(predictor, step, to),
        )
    }

    /// For the linear predictor `mu / (1 + a mu)`, bounded by the largest declared count; for the log dispersion a generous
    /// value.
    fn information(&self) -> (f64, f64) {
        (self.counts.range().1.max(1.0), 1.0)
    }
}

impl Slopes for NegativeBinomial {
    type At = (Counts, Dispersion);

    const BOUNDS_INFLUENCE: bool = true;

    const CENTRED_BY_TABLE: bool = true;

    fn slopes_at(&self, own: Option<f64>) -> (Counts, Dispersion) {
        (self.counts, Dispersion::new(own.unwrap_or(f64::NAN)))
    }

    #[inline(always)]
    fn slopes((counts, a): &(Counts, Dispersion), y: f64, eta: f64) -> [f64; 2] {
        let y = counts.of(y);
        let x = eta + a.logarithm;
        let falling = exp(-x.abs());
        let p = (if x < 0.0 { falling } else { 1.0 }) / (1.0 + falling);
        let slope = y - (y + a.size) * p;
        let of_count = a.size * digamma_difference(y + a.size, a.size);
        [slope, slope + a.size * softplus(x) - of_count]
    }

    /// The dispersion's entry is `kappa² (psi'(kappa) - psi'(y + kappa))`, the sum of `1 / (1 + a i)²` over `i < y`. Less the
    /// information about `eta`, it is minus the second derivative in `kappa`, times `kappa²`, up to a term linear in `y - mu`.
    #[inline(always)]
    fn information_at((counts, a): &(Counts, Dispersion), y: f64, eta: f64) -> [f64; 2] {
        let mean = exp(eta);
        let own = a.size * a.size * trigamma_difference(a.size, counts.of(y) + a.size);
        let own = if own < 0.0 { 0.0 } else { own };
        [mean / (1.0 + mean / a.size) + 0.0 * y, own + 0.0 * eta]
    }

    #[inline(always)]
    fn standardised((counts, a): &(Counts, Dispersion), y: f64, eta: f64, clip: f64) -> Standardised {
        standardised(*counts, [y, eta], a.size.recip(), clip)
    }

    /// Both increase: in the linear predictor and in the count.
    fn most_information(&self, at: &(Counts, Dispersion), _low: f64, high: f64) -> [f64; 2] {
        let [of_eta, own] = Self::information_at(at, 1.0, high);
        [of_eta, own.max(f64::MIN_POSITIVE)]
    }

    fn observed((_, a): &(Counts, Dispersion), high: f64, intercept: bool) -> ObservedForm {
        ObservedForm::Counts { size: a.size, most: logistic(high + a.logarithm), intercept }
    }

    fn most_expected(&self, at: &(Counts, Dispersion), _low: f64, high: f64) -> [f64; 2] {
        let [of_eta, _] = Self::information_at(at, 1.0, high);
        [of_eta, self.expected_of_dispersion(at.1, high)]
    }

    fn outcomes(&self) -> (f64, f64) {
        (-1.0, 1.0)
    }

    /// The slope in the dispersion also has an extreme between the ends, at a count near the mean.
    fn extreme_outcomes(&self, _at: &(Counts, Dispersion), _eta: f64) -> Vec<f64> {
        self.counts.spread()
    }
}
