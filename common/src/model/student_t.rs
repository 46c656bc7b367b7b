//! Regression with Student's t errors of known degrees of freedom, which is less sensitive to outliers than linear regression
//! (Lange, Little and Taylor, *Robust statistical modeling using the t distribution*, JASA 84, 1989).
//!
//! Density of one record, outcome `y` and linear predictor `eta` on the scale of the outcome's declared bounds,
//! `z = (y - eta) / sigma`, degrees of freedom `nu`: `log p(y | eta, sigma) = -ln(sigma) - (nu + 1)/2 ln(nu + z^2)` up to a
//! constant.
//!
//! Parameters: those of a linear regression, the last being `sigma` > 0, the scale of the errors in half widths of the outcome.
//! The standard deviation is `sigma sqrt(nu / (nu - 2))` if `nu > 2`. An offset is in the outcome's units.
//!
//! Public bound. A movement of the linear predictor by `delta sigma` takes `|z|` from some `u` to at most `u + delta`. The log
//! density decreases most at `u (u + delta) = nu`, or at the closest value that the declared columns allow for `|z|`. For a step
//! of sigma alone the log ratio is monotone in `(y - eta)^2`, so its extremes are at the ends. A step in both is treated as two
//! steps, in either order.

use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::{LinearPredictor, Span};
use super::observed::ObservedForm;
use super::ratio_range::RatioRange;
use super::regression::{LEAST_SCATTER, one_after_the_other};
use super::slopes::{Bends, Slopes};
use crate::elementary::ln_ratio;
use crate::schema::ColumnSpec;

/// The likelihood of an outcome with heavy tails.
pub(super) struct StudentT {
    outcome: (f64, f64),
    centre: f64,
    half_width: f64,
    df: f64,
    /// See [`Scale`].
    excess: f64,
}

/// Public constants of a step.
pub(super) struct Constants {
    /// `1 / sigma` at its two ends.
    precision: (f64, f64),
    /// `ln(sigma / sigma')`.
    logarithm: f64,
    df: f64,
}

impl Constants {
    /// Returns the log ratio from the residuals `before` and `after` the step.
    #[inline(always)]
    fn ratio(&self, before: f64, after: f64) -> f64 {
        let (z, z_to) = (before * self.precision.0, after * self.precision.1);
        self.logarithm - 0.5 * (self.df + 1.0) * ln_ratio(self.df + z_to * z_to, self.df + z * z)
    }
}

impl StudentT {
    pub(super) fn new(outcome: &ColumnSpec, df: f64) -> Self {
        Self {
            outcome: outcome.range(),
            centre: outcome.centre(),
            half_width: outcome.half_width(),
            df,
            excess: positive_excess(df),
        }
    }

    /// Returns the range of a residual's magnitude if the linear predictor lies from `low` to `high`.
    fn residuals(&self, low: f64, high: f64) -> (f64, f64) {
        let (above, below) = (self.outcome.1 - low, high - self.outcome.0);
        // The greatest residual is `above`, the least `-below`.
        ((-above).max(-below).max(0.0), above.max(below))
    }

    /// Returns the range of the log ratio at a fixed sigma. Its middle is 0, since a residual may have either sign.
    fn moving_mean(&self, predictor: &LinearPredictor, step: &Ends<'_>, sigma: f64) -> RatioRange {
        let span = predictor.span(step.from, step.to);
        let Span { low, high, .. } = span;
        let (least, greatest) = self.residuals(low, high);
        let (least, greatest, delta) = (least / sigma, greatest / sigma, span.furthest() / sigma);
        let best = 0.5 * ((delta * delta + 4.0 * self.df).sqrt() - delta);
        let from = best.max(least).min((greatest - delta).max(least));
        let to = (from + delta).min(greatest.max(from));
        let most = 0.5 * (self.df + 1.0) * ln_ratio(self.df + to * to, self.df + from * from);
        RatioRange::of([-most, most])
    }

    /// Returns the range of the log ratio of a step of sigma at these coefficients.
    fn moving_sigma(&self, predictor: &LinearPredictor, theta: &[f64], constants: &Constants) -> RatioRange {
        let (low, high) = predictor.range(theta, 1.0, None);
        let (least, greatest) = self.residuals(low, high);
        RatioRange::of([constants.ratio(least, least), constants.ratio(greatest, greatest)])
    }
}

impl Likelihood for StudentT {
    type Constants = Constants;

    fn constants(&self, _predictor: &LinearPredictor, step: &Ends<'_>) -> Constants {
        let (from, to) = step.own.unwrap_or((f64::NAN, f64::NAN));
        Constants { precision: (from.recip(), to.recip()), logarithm: libm::log(from) - libm::log(to), df: self.df }
    }

    #[inline(always)]
    fn log_ratio(constants: &Constants, y: f64, from: f64, to: f64) -> f64 {
        constants.ratio(y - from, y - to)
    }

    fn log_density(&self, y: f64, eta: f64, own: Option<f64>) -> f64 {
        let sigma = own.unwrap_or(f64::NAN);
        let z = (y - eta) / sigma;
        -libm::log(sigma) - 0.5 * (self.df + 1.0) * libm::log(self.df + z * z)
    }

    fn ratios(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> RatioRange {
        let constants = self.constants(predictor, step);
        let (sigma, sigma_to) = step.own.unwrap_or((f64::NAN, f64::NAN));
        if step.from == step.to {
            return self.moving_sigma(predictor, step.from, &constants);
        }
        one_after_the_other(
            self.moving_mean(predictor, step, sigma),
            self.moving_sigma(predictor, step.to, &constants),
            self.moving_sigma(predictor, step.from, &constants),
            self.moving_mean(predictor, step, sigma_to),
        )
    }

    fn information(&self) -> (f64, f64) {
        let linear = (self.df + 1.0) / (self.df + 3.0) / (LEAST_SCATTER * LEAST_SCATTER);
        (linear, 2.0 * self.df / (self.df + 3.0))
    }

    fn outcome_scale(&self) -> Option<(f64, f64)> {
        Some((self.centre, self.half_width))
    }
}

/// The scale and the degrees of freedom at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    df: f64,
    /// `df sigma^2`.
    spread: f64,
    /// The expected positive part of a record's observed information about `eta`, as a multiple of the expected whole.
    excess: f64,
}

/// Returns the mean of the positive part of `cos² a cos 2 a` as a multiple of the mean, for the angle `a` of a residual
/// `sqrt(df) sigma tan a` of the law itself. The two means are proportional to those of the observed information in `eta`, whose
/// positive part is that of residuals below `sqrt(df) sigma`.
fn positive_excess(df: f64) -> f64 {
    const PLACES: usize = 512;
    let mean = |end: f64| {
        let by = end / PLACES as f64;
        let at = |k: usize| {
            let angle = (k as f64 + 0.5) * by;
            by * libm::pow(libm::cos(angle), df + 1.0) * libm::cos(2.0 * angle)
        };
        (0..PLACES).map(at).sum::<f64>()
    };
    mean(std::f64::consts::FRAC_PI_4) / mean(std::f64::consts::FRAC_PI_2)
}

impl Slopes for StudentT {
    type At = Scale;

    fn slopes_at(&self, own: Option<f64>) -> Scale {
        let sigma = own.unwrap_or(f64::NAN);
        Scale { df: self.df, spread: self.df * sigma * sigma, excess: self.excess }
    }

    #[inline(always)]
    fn slopes(scale: &Scale, y: f64, eta: f64) -> [f64; 2] {
        let residual = y - eta;
        let slope = (scale.df + 1.0) * residual / (scale.spread + residual * residual);
        [slope, slope * residual - 1.0]
    }

    /// The observed information about `eta` is negative for a residual beyond `sqrt(nu) sigma`. Such a record counts as 0, and the
    /// others are scaled so that the expectation is right under the law itself. The mixed entry is not released.
    #[inline(always)]
    fn information_at(scale: &Scale, y: f64, eta: f64) -> [f64; 2] {
        let residual = y - eta;
        let square = residual * residual;
        let part = (scale.spread + square).recip();
        let positive = scale.spread - square;
        let positive = if positive < 0.0 { 0.0 } else { positive };
        let linear = (scale.df + 1.0) * positive * part * part / scale.excess;
        [linear, 2.0 * (scale.df + 1.0) * scale.spread * square * part * part]
    }

    /// At a residual of 0 for `eta`, and at one of the root of the spread for the scale.
    fn most_information(&self, scale: &Scale, _low: f64, _high: f64) -> [f64; 2] {
        [(scale.df + 1.0) / (scale.spread * scale.excess), 0.5 * (scale.df + 1.0)]
    }

    fn observed(scale: &Scale, _high: f64, _intercept: bool) -> ObservedForm {
        let sigma = (scale.spread / scale.df).sqrt();
        ObservedForm::HeavyTails { mixed: 2.0 * (scale.df + 2.0) / (scale.df + 5.0), unit: sigma }
    }

    fn most_expected(&self, scale: &Scale, _low: f64, _high: f64) -> [f64; 2] {
        let linear = (scale.df + 1.0) * scale.df / ((scale.df + 3.0) * scale.spread);
        [linear, 2.0 * scale.df / (scale.df + 3.0)]
    }

    /// Let `z = (y - eta) / sigma`. The second derivative in `eta` is `-(nu + 1) (nu - z²) / (sigma (nu + z²))²`, least at 0 and
    /// greatest at `z² = 3 nu`. The mixed one in `eta` and `ln sigma` is `-2 nu (nu + 1) z / (sigma (nu + z²)²)`, largest in
    /// magnitude at `z² = nu / 3`, where it is `(9 / 8 sqrt(3)) (nu + 1) / (sqrt(nu) sigma)`. The one in `ln sigma` is
    /// `-2 nu (nu + 1) z² / (nu + z²)²`, least at `z² = nu`.
    fn bends(&self, _range: (f64, f64), least: Option<f64>) -> Option<Bends> {
        let (sigma, more) = (least?, self.df + 1.0);
        let falling = more / (self.df * sigma * sigma);
        let mixed = 9.0 / (8.0 * 3.0_f64.sqrt()) * more / (self.df.sqrt() * sigma);
        Some(Bends { predictor: [falling, falling / 8.0], mixed, own: [0.5 * more, 0.0] })
    }

    /// Let `tan(angle / 2)` be the residual in roots of the spread. The slopes `(nu + 1) / 2 (sin / root, 1 - cos) - (0, 1)` are
    /// then an arc of an ellipse. It lies within the polygon of its ends and the intersections of adjacent tangents.
    fn slopes_within(&self, scale: &Scale, low: f64, high: f64) -> Option<Vec<[f64; 2]>> {
        /// Arcs of the whole ellipse, for which two tangents meet 0.9 % further from its centre than the arc; and the minimum for
        /// a short arc, which is close to a parabola.
        const ARCS: f64 = 24.0;
        const LEAST_ARCS: f64 = 8.0;
        let (least, greatest) = self.outcome;
        let (root, half) = (scale.spread.sqrt(), 0.5 * (scale.df + 1.0));
        let angle = |residual: f64| 2.0 * libm::atan(residual / root);
        let (from, to) = (angle(least - high), angle(greatest - low));
        let arcs = (ARCS * (to - from) / std::f64::consts::TAU).ceil().max(LEAST_ARCS);
        let by = (to - from) / arcs;
        let point = |angle: f64, farther: f64| {
            [half * libm::sin(angle) * farther / root, half * (1.0 - libm::cos(angle) * farther) - 1.0]
        };
        let met = (0..arcs as usize).map(|k| point(from + (k as f64 + 0.5) * by, libm::cos(0.5 * by).recip()));
        Some([point(from, 1.0), point(to, 1.0)].into_iter().chain(met).collect())
    }

    fn outcomes(&self) -> (f64, f64) {
        self.outcome
    }

    /// The slope is greatest where the residual equals the root of the spread. The slope in the scale grows more slowly beyond.
    fn extreme_outcomes(&self, scale: &Scale, eta: f64) -> Vec<f64> {
        /// In roots of the spread.
        const RESIDUALS: [f64; 7] = [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
        let (least, greatest) = self.outcome;
        let root = scale.spread.sqrt();
        let both = RESIDUALS.iter().flat_map(|r| [eta - r * root, eta + r * root]);
        // For a wide spread the slope in the scale is a parabola in the outcome.
        let even = (0..=8).map(|k| least + (greatest - least) * f64::from(k) / 8.0);
        even.chain(both.filter(|y| *y > least && *y < greatest)).collect()
    }
}
