//! Linear regression with a normal error. Its standard deviation is known or a parameter.
//!
//! Density of one record, outcome `y` and linear predictor
//! `eta = offset + intercept + sum_j theta_j x_j`, both on the scale of the outcome's declared bounds
//! (`[-1, 1]`): `log p(y | eta, sigma) = -ln(sigma) - (y - eta)^2 / (2 sigma^2)` up to a constant.
//!
//! Parameters: `intercept` (if the job has one), then one coefficient per feature, in half widths of the outcome per unit of the
//! scaled feature. The last is `sigma` > 0, in half widths of the outcome, unless the job states `sd` in the data's units. An
//! offset is in the outcome's units.
//!
//! Log ratio: with the residuals `e` before and `e'` after the step, it is
//! `ln(sigma / sigma') + (e/sigma - e'/sigma') (e/sigma + e'/sigma') / 2`. Both factors `p` and `q` are linear in the outcome and
//! the features, whose ranges are declared. For every `t > 0` the product `p q / 2` is `[(t p + q/t)^2 - (t p - q/t)^2] / 8`, so
//! the ranges of the two linear functions bound it from above and below; several `t` are tried. A step in one coefficient alone
//! is a quadratic in that feature, whose extremes are computed exactly. The middle of the range is the public centre.
//!
//! Exponential family, `sd` known ([`super::linear_statistic`]).

use super::likelihood::{Ends, Likelihood, around};
use super::linear_predictor::LinearPredictor;
use super::ratio_range::RatioRange;
use super::regression::LEAST_SCATTER;
use super::slopes::{Bends, Slopes, Standardised};
use super::weighted::TileStep;
use crate::schema::ColumnSpec;
use conclave_privacy::pass::blocks::KernelVisitor;

/// The likelihood of a normal outcome.
pub(super) struct Linear {
    outcome: (f64, f64),
    centre: f64,
    half_width: f64,
    /// Known standard deviation, in half widths of the outcome.
    sd: Option<f64>,
}

impl Linear {
    /// Creates the likelihood. `sd` is the known standard deviation in the data's units.
    pub(super) fn new(outcome: &ColumnSpec, sd: Option<f64>) -> Self {
        let (centre, half_width) = (outcome.centre(), outcome.half_width());
        Self { outcome: outcome.range(), centre, half_width, sd: sd.map(|sd| sd / half_width) }
    }

    fn sigma(&self, own: Option<f64>) -> f64 {
        self.sd.or(own).unwrap_or(f64::NAN)
    }

    /// Returns sigma before and after a step.
    fn sigmas(&self, own: Option<(f64, f64)>) -> (f64, f64) {
        match (self.sd, own) {
            (Some(sd), _) => (sd, sd),
            (None, Some(own)) => own,
            (None, None) => (f64::NAN, f64::NAN),
        }
    }
}

/// Public constants of a step.
pub(super) struct Constants {
    /// `1 / sigma` at its two ends.
    precision: (f64, f64),
    /// `ln(sigma / sigma')`.
    logarithm: f64,
}

/// Returns the log ratio if sigma does not change: the movement times the residual at the midpoint, divided by the variance.
#[inline(always)]
fn still(by: &f64, [y, middle, direction]: [f64; 3]) -> f64 {
    (by * direction) * (y - middle)
}

impl Likelihood for Linear {
    type Constants = Constants;

    fn constants(&self, _predictor: &LinearPredictor, step: &Ends<'_>) -> Constants {
        let (from, to) = self.sigmas(step.own);
        Constants { precision: (from.recip(), to.recip()), logarithm: libm::log(from) - libm::log(to) }
    }

    #[inline(always)]
    fn log_ratio(constants: &Constants, y: f64, from: f64, to: f64) -> f64 {
        let (before, after) = ((y - from) * constants.precision.0, (y - to) * constants.precision.1);
        0.5 * (before * before - after * after) + constants.logarithm
    }

    #[inline(always)]
    fn log_ratios(constants: &Constants, moving: &TileStep<'_>, visitor: &mut impl KernelVisitor) {
        let (a, b) = constants.precision;
        // A public condition: sigma does not change.
        if a == b {
            visitor.over(moving.columns(), &(moving.by * (a * a)), still);
        } else {
            visitor.over(moving.columns(), &(0.5 * moving.by, constants), around::<Self>);
        }
    }

    fn log_density(&self, y: f64, eta: f64, own: Option<f64>) -> f64 {
        let sigma = self.sigma(own);
        let z = (y - eta) / sigma;
        -0.5 * z * z - libm::log(sigma)
    }

    fn ratios(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> RatioRange {
        let Constants { precision: (a, b), logarithm } = self.constants(predictor, step);
        let pair = || step.from.iter().zip(step.to);
        // Exact if sigma does not change: then only the step itself remains.
        let still = a == b;
        let p = Residual {
            outcome: a - b,
            theta: pair().map(|(from, to)| if still { (from - to) * a } else { from * a - to * b }).collect(),
        };
        let q = Residual {
            outcome: a + b,
            theta: pair().map(|(from, to)| if still { (from + to) * a } else { from * a + to * b }).collect(),
        };
        let over =
            Over { predictor, outcome: self.outcome, only: predictor.indicator_moved(step.from, step.to).filter(|_| still) };
        let mut range = over.product(&p, &q);
        if still && let Some((j, feature)) = predictor.moved(step.from, step.to) {
            range = over.one_coefficient(&p, &q, j, feature.copied());
        }
        if over.only.is_some() {
            // The records that do not move.
            range = (range.0.min(0.0), range.1.max(0.0));
        }
        RatioRange::of([0.5 * range.0 + logarithm, 0.5 * range.1 + logarithm])
    }

    fn information(&self) -> (f64, f64) {
        let sd = self.sd.unwrap_or(LEAST_SCATTER);
        ((sd * sd).recip(), 2.0)
    }

    fn outcome_scale(&self) -> Option<(f64, f64)> {
        Some((self.centre, self.half_width))
    }
}

/// The linear function `outcome (y - offset) - theta . x` of a record.
struct Residual {
    outcome: f64,
    theta: Vec<f64>,
}

/// The set of records over which a range is computed.
struct Over<'a> {
    predictor: &'a LinearPredictor,
    outcome: (f64, f64),
    /// If given, only the records whose feature of this number is 1.
    only: Option<usize>,
}

impl Over<'_> {
    fn range(&self, f: &Residual) -> (f64, f64) {
        let (low, high) = self.predictor.range(&f.theta, f.outcome, self.only);
        let (a, b) = (f.outcome * self.outcome.0, f.outcome * self.outcome.1);
        (a.min(b) - high, a.max(b) - low)
    }

    /// Returns the least and the greatest product of two linear functions, rounded outward no further than their ranges. Negating
    /// one of them yields the exact negatives, swapped.
    fn product(&self, p: &Residual, q: &Residual) -> (f64, f64) {
        let (of_p, of_q) = (self.range(p), self.range(q));
        let corners = [of_p.0 * of_q.0, of_p.0 * of_q.1, of_p.1 * of_q.0, of_p.1 * of_q.1];
        let (mut low, mut high) = corners.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), c| (l.min(*c), h.max(*c)));
        let furthest = |(low, high): (f64, f64)| high.max(-low);
        let (most_p, most_q) = (furthest(of_p), furthest(of_q));
        if !(most_p > 0.0 && most_q > 0.0 && most_p.is_finite() && most_q.is_finite()) {
            return (low, high);
        }
        for spread in [0.25, 0.5, std::f64::consts::FRAC_1_SQRT_2, 1.0, std::f64::consts::SQRT_2, 2.0, 4.0] {
            let t = (most_q / most_p).sqrt() * spread;
            let mixed = |sign: f64| {
                let mix = |p: f64, q: f64| t * p + sign * (q / t);
                let theta = p.theta.iter().zip(&q.theta).map(|(p, q)| mix(*p, *q)).collect();
                let most = furthest(self.range(&Residual { outcome: mix(p.outcome, q.outcome), theta }));
                0.25 * most * most
            };
            high = high.min(mixed(1.0));
            low = low.max(-mixed(-1.0));
        }
        (low, high)
    }

    /// Returns the same range if `p` is a multiple of one feature with this range (1 for the intercept), coefficient `j`. The
    /// product is then a quadratic in the feature.
    fn one_coefficient(&self, p: &Residual, q: &Residual, j: usize, feature: Option<(f64, f64)>) -> (f64, f64) {
        let mut theta = q.theta.clone();
        let own = std::mem::take(&mut theta[j]);
        // q = rest - own x, p = -step x.
        let (least, greatest) = self.range(&Residual { outcome: q.outcome, theta });
        let step = -p.theta[j];
        let at = |x: f64, rest: f64| x * (rest - own * x);
        let (low, high) = feature.filter(|_| self.only.is_none()).unwrap_or((1.0, 1.0));
        let mut range = (f64::INFINITY, f64::NEG_INFINITY);
        for rest in [least, greatest] {
            let vertex = (rest / (2.0 * own)).clamp(low, high);
            let vertex = if vertex.is_nan() { low } else { vertex };
            for x in [low, high, vertex] {
                let value = at(x, rest);
                range = (range.0.min(value), range.1.max(value));
            }
        }
        let (a, b) = (step * range.0, step * range.1);
        (a.min(b), a.max(b))
    }
}

impl Slopes for Linear {
    /// `1 / sigma^2`.
    type At = f64;

    const BY_MOMENTS: bool = true;

    const BOUNDS_INFLUENCE: bool = true;

    fn slopes_at(&self, own: Option<f64>) -> f64 {
        let sigma = self.sigma(own);
        (sigma * sigma).recip()
    }

    #[inline(always)]
    fn slopes(precision: &f64, y: f64, eta: f64) -> [f64; 2] {
        let residual = y - eta;
        [residual * precision, residual * residual * precision - 1.0]
    }

    #[inline(always)]
    fn information_at(precision: &f64, y: f64, eta: f64) -> [f64; 2] {
        let counts = 0.0 * (y + eta);
        [precision + counts, 2.0 + counts]
    }

    /// Huber's score; its slope is 1 within the clip and 0 beyond.
    #[inline(always)]
    fn standardised(precision: &f64, y: f64, eta: f64, clip: f64) -> Standardised {
        let root = precision.sqrt();
        let residual = (y - eta) * root;
        let within = f64::from(u8::from(residual.abs() <= clip));
        Standardised { root, residual: residual.clamp(-clip, clip), slope: within }
    }

    fn most_information(&self, precision: &f64, _low: f64, _high: f64) -> [f64; 2] {
        [*precision, 2.0]
    }

    fn bends(&self, _range: (f64, f64), _least: Option<f64>) -> Option<Bends> {
        self.sd.map(|sd| Bends::of_predictor((sd * sd).recip(), 0.0))
    }

    /// The slopes, as functions of the residual, lie on a parabola. It lies within the polygon of its ends and the intersections
    /// of adjacent tangents, each at the mean of two residuals and at their product.
    fn slopes_within(&self, precision: &f64, low: f64, high: f64) -> Option<Vec<[f64; 2]>> {
        /// Arcs between adjacent tangents.
        const ARCS: usize = 8;
        let (least, greatest) = self.outcome;
        let residual = |k: usize| (least - high) + (greatest - low - (least - high)) * (k as f64 / ARCS as f64);
        let met = |a: f64, b: f64| [0.5 * (a + b) * precision, a * b * precision - 1.0];
        let ends = [residual(0), residual(ARCS)].map(|r| met(r, r));
        Some(ends.into_iter().chain((0..ARCS).map(|k| met(residual(k), residual(k + 1)))).collect())
    }

    fn outcomes(&self) -> (f64, f64) {
        self.outcome
    }

    fn extreme_outcomes(&self, _precision: &f64, eta: f64) -> Vec<f64> {
        let (least, greatest) = self.outcome;
        vec![least, greatest, eta.clamp(least, greatest)]
    }
}
