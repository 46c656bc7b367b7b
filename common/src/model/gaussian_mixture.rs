//! A mixture of two normal distributions with known spread and weights.
//!
//! Density of one record: `p(y | theta) = w N(y; theta_1, v) + (1 - w) N(y; theta_1 + theta_2, v)`, with
//! `y` and `theta` on the scale of the outcome's declared bounds (`[-1, 1]`) and `v` the known variance
//! of a component on that scale.
//!
//! Parameters: `theta_1`, the mean of the first component, and `theta_2`, the distance of the second mean from it, both in scaled
//! units. Source: Heikkilä et al., *Differentially private Markov chain Monte Carlo* (2019), section 4, eq. (25), there with
//! `w = 1/2`.
//!
//! Log ratio: with `q_j` the log of a component's weighted density, `log p = q_1 + softplus(q_2 - q_1)`, where
//! `q_2 - q_1 = alpha + beta y` with `beta = theta_2 / v`. It is thus an affine function of `y` plus a difference of two softplus
//! functions. Its second derivative is `beta'^2 s(eta') - beta^2 s(eta)`, with the logistic density `s`. Bounds on `s` and its
//! slope bound it on an interval of `y`. Branch and bound then gives the range over the declared outcomes, and from it the public
//! bound and the public centre.
//!
//! Information: at most that of a record whose component is known, `1 / v`.

use super::ratio_range::RatioRange;
use super::softplus::{softplus, softplus_difference};
use super::{Model, envelope};
use crate::schema::ColumnSpec;
use conclave_privacy::pass::blocks::{Kernel, KernelVisitor, Scratch};
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::{BlockPass, ModelData};

/// The largest slope of the logistic density, `1 / (6 sqrt(3))`, rounded up.
const STEEPEST: f64 = 0.096_226;

/// A two-component mixture on a declared column.
pub(super) struct GaussianMixture {
    names: Vec<String>,
    range: (f64, f64),
    centre: f64,
    half_width: f64,
    variance: f64,
    /// `ln((1 - w) / w)`.
    log_odds: f64,
}

/// The public constants of a step's ratios.
#[derive(Clone, Copy)]
pub(super) struct Constants {
    /// The first component's log ratio is `offset + slope y`.
    offset: f64,
    slope: f64,
    /// `alpha` and `beta` before and after the step.
    alpha: (f64, f64),
    beta: (f64, f64),
}

impl Constants {
    #[inline(always)]
    fn ratio(&self, y: f64) -> f64 {
        let (before, after) = (self.alpha.0 + self.beta.0 * y, self.alpha.1 + self.beta.1 * y);
        (self.offset + self.slope * y) + softplus_difference(after, before)
    }

    #[inline(always)]
    fn of_record(&self, [y]: [f64; 1]) -> f64 {
        self.ratio(y)
    }

    /// Returns a bound on the magnitude of the ratio's second derivative in `y` on `[low, high]`.
    fn curvature(&self, low: f64, high: f64) -> f64 {
        let eta = |(alpha, beta): (f64, f64), y: f64| alpha + beta * y;
        let (before, after) = ((self.alpha.0, self.beta.0), (self.alpha.1, self.beta.1));
        let ends = [eta(before, low), eta(before, high), eta(after, low), eta(after, high)];
        // Every eta on the interval lies between these four.
        let (least, greatest) = ends.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, g), e| (l.min(*e), g.max(*e)));
        let nearest = if least > 0.0 { least } else { (-greatest).max(0.0) };
        let tail = libm::exp(-nearest);
        let density = tail / ((1.0 + tail) * (1.0 + tail));
        // The magnitude of the density's slope is at most the density.
        let steepest = density.min(STEEPEST);
        let (b, b_to) = (self.beta.0, self.beta.1);
        let widest = (b * b).max(b_to * b_to);
        let apart = (ends[2] - ends[0]).abs().max((ends[3] - ends[1]).abs());
        let close = ((b_to - b) * (b_to + b)).abs() * density + widest * steepest * apart;
        close.min(widest * density)
    }
}

impl GaussianMixture {
    /// Creates the model. `sd` is a component's standard deviation in the data's units, `weight` the weight of the first
    /// component, strictly between 0 and 1.
    pub(super) fn new(names: Vec<String>, outcome: &ColumnSpec, sd: f64, weight: f64) -> Self {
        let (centre, half_width) = (outcome.centre(), outcome.half_width());
        let scaled = sd / half_width;
        let log_odds = libm::log1p(-weight) - libm::log(weight);
        Self { names, range: outcome.range(), centre, half_width, variance: scaled * scaled, log_odds }
    }

    /// Returns `alpha` and `beta` at a parameter value.
    #[inline(always)]
    fn line(&self, theta: &[f64]) -> (f64, f64) {
        let beta = theta[1] / self.variance;
        (self.log_odds - beta * (theta[0] + 0.5 * theta[1]), beta)
    }

    #[inline(always)]
    fn step(&self, from: &[f64], to: &[f64]) -> Constants {
        let slope = (to[0] - from[0]) / self.variance;
        let (before, after) = (self.line(from), self.line(to));
        Constants { offset: -0.5 * slope * (from[0] + to[0]), slope, alpha: (before.0, after.0), beta: (before.1, after.1) }
    }
}

impl Kernel for GaussianMixture {
    type Constants = Constants;

    fn constants(&self, from: &[f64], to: &[f64]) -> Constants {
        self.step(from, to)
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Tile<'_>, constants: &Constants, _scratch: &mut Scratch, visitor: &mut impl KernelVisitor) {
        visitor.over([rows.outcome()], constants, Constants::of_record);
    }
}

impl Model for GaussianMixture {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        let constants = self.step(from, to);
        envelope::range(self.range.0, self.range.1, |y| constants.ratio(y), |low, high| constants.curvature(low, high))
    }

    fn information_bound(&self) -> Vec<f64> {
        vec![1.0 / self.variance; 2]
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        assert!(pass.steps().all(|step| step.from.len() == 2 && step.to.len() == 2), "one value per parameter");
        pass.ratios(self);
    }

    /// Omits the constant `n (ln w - ln(2 pi v) / 2)`.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let (alpha, beta) = self.line(theta);
        let one = |y: &f64| -0.5 / self.variance * (y - theta[0]) * (y - theta[0]) + softplus(alpha + beta * y);
        data.outcome.iter().map(one).sum()
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        vec![self.centre + self.half_width * theta[0], self.half_width * theta[1]]
    }
}
