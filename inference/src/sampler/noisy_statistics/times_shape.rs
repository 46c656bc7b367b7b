//! The shape of a Weibull likelihood, which is skewed, from the information at its greatest value.
//!
//! Coordinates are the logarithms of the shape and the scale. Let `u = kappa (log t - s)` at the mode, `S_j` the sum of
//! `u^j e^u` over all records, and `d` the number of events. The mode has `S_0 = d`, and events have a mean of `u` of
//! `S_1/d - 1`. The information there is `d [[1 + S_2/d, -kappa S_1/d], [-kappa S_1/d, kappa²]]`. So it contains `kappa² d`, and
//! mean `m` and variance `v` of `u` under weights `e^u`. At another point, let `r` be the ratio of the shapes and
//! `b = kappa r (s_mode - s)`, so that `u` becomes `r u + b`. The log likelihood falls by `d` times
//! `e^b M(r) - 1 - b - log r - (r - 1)(m - 1)`, where `M(r)` is the weighted mean of `e^((r - 1) u)`.
//!
//! Only `M` depends on more than `m` and `v`. Uncensored records of a Weibull law have `u` distributed as `log X` for `X` with the
//! law Gamma(2). The law of `m_0 + c log X` with the same mean and variance stands in for that of other records:
//! `M(r) = e^((r - 1) m_0) Gamma(2 + c (r - 1))`. Its skewness is -0.8. That of the records of four real data sets lies between
//! -0.3 and -3.8, and their exact posterior means are within 0.003 posterior sds of those by this law. Means by a quadratic are off
//! by up to 0.08.

use crate::sampler::matrix::Matrix;

/// Mean and variance of `log X` for `X` with the law Gamma(2): `digamma(2)` and `trigamma(2)`.
const LOG_GAMMA: (f64, f64) = (0.422_784_335_098_467_14, 0.644_934_066_848_226_4);
/// Largest `c`, at which `Gamma` keeps a positive argument for every ratio of shapes. Variances beyond are noise.
const MOST_SCALE: f64 = 2.0;
/// Largest logarithm of the ratio of a sum of weights to that at the mode, and of a ratio of shapes.
const FARTHEST: f64 = 30.0;
/// Squared length of a step, per event, below which rounding exceeds the skewness.
const SHORTEST: f64 = 1e-12;

/// A Weibull likelihood around its mode, per event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimesShape {
    /// The shape at the mode.
    kappa: f64,
    /// Weighted mean of `u`.
    mean: f64,
    /// `c`.
    scale: f64,
}

impl TimesShape {
    /// Returns the shape of the likelihood with this mode and this information there, which may be noisy. `None` if the released
    /// number of events is not positive.
    pub(super) fn of(mode: &[f64], information: &Matrix) -> Option<Self> {
        let kappa = libm::exp(*mode.first()?);
        let events = information[(1, 1)] / (kappa * kappa);
        let mean = -information[(0, 1)] / (kappa * events);
        let variance = (information[(0, 0)] / events - 1.0 - mean * mean).max(0.0);
        let scale = (variance / LOG_GAMMA.1).sqrt().min(MOST_SCALE);
        let usable = events > 0.0 && kappa.is_finite() && mean.is_finite() && scale.is_finite();
        usable.then_some(Self { kappa, mean, scale })
    }

    /// Returns the fall of the log likelihood on a step from the mode, relative to that of the quadratic with the same information:
    /// positive and finite for every finite step, and 1 for a step of length 0.
    pub(super) fn fall(&self, step: &[f64]) -> f64 {
        let &[of_shape, of_scale] = step else { return 1.0 };
        let quadratic = 0.5 * self.squared_length(of_shape, of_scale);
        if quadratic.is_finite() && quadratic > SHORTEST { self.depth(of_shape, of_scale) / quadratic } else { 1.0 }
    }

    /// Returns the fall of the log likelihood, per event.
    fn depth(&self, of_shape: f64, of_scale: f64) -> f64 {
        let most = libm::exp(FARTHEST);
        let of_shape = of_shape.min(FARTHEST);
        let above = libm::expm1(of_shape);
        let moved = -self.kappa * libm::exp(of_shape) * of_scale;
        let centre = self.mean - self.scale * LOG_GAMMA.0;
        let log_sum = moved + above * centre + libm::lgamma(2.0 + self.scale * above);
        // A sum of weights that is not a number is out of reach too.
        if log_sum > FARTHEST || log_sum.is_nan() {
            return most;
        }
        let depth = libm::expm1(log_sum) - moved - of_shape - above * (self.mean - 1.0);
        depth.clamp(f64::MIN_POSITIVE, most)
    }

    /// Returns the squared length of a step in the metric of the information, per event.
    fn squared_length(&self, of_shape: f64, of_scale: f64) -> f64 {
        let variance = self.scale * self.scale * LOG_GAMMA.1;
        let moved = self.mean * of_shape - self.kappa * of_scale;
        (1.0 + variance) * (of_shape * of_shape) + moved * moved
    }
}

#[cfg(test)]
#[path = "tests/times_shape.rs"]
mod tests;
