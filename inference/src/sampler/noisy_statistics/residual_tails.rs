//! The tails of a linear regression's residuals, from two released numbers, and the clip that they allow.
//!
//! A second release clips residuals `e` at `c`, so it withholds `sum x sign(e) (|e| - c)+`. How much that is depends on the tails,
//! which the second moments do not show. So the mean of `min(e², c²)` is released first, at two clips `c` and `2c`. With the
//! share `S(t)` of records beyond `t`, their difference is the integral of `2 t S(t)` from `c` to `2c`. The mean excess
//! `X(c) = E (|e| - c)+` is the integral of `S` from `c` on. The difference over `2c` is the part of it up to `2c` where the tails are
//! light, and all of it where `S` falls with the third power of t. `X` is taken to fall with the square of the clip, as it does then.
//!
//! Nothing says how the excess depends on the predictors. If it is one-sided and one predictor sd apart, the sum has the covariance
//! `n X² S`, where `n S` are the predictors' moments. This is the allowance, and the clip is the one at which allowance and noise
//! have the smallest sum.

/// Clip of a score of residuals whose tails are not known, in sds of the residuals at the sd's upper limit.
pub(crate) const CLIP: f64 = 4.0;
/// Lower clip, in sds of the residuals at the sd's upper limit.
pub(crate) const NEAR: f64 = 2.5;
/// Upper clip, in multiples of the lower one.
pub(crate) const FAR: f64 = 2.0;
/// Largest clip, in multiples of the lower one.
const FARTHEST: f64 = 8.0;
/// Share of the budget for each of the two numbers.
pub(crate) const TAIL_SHARE: f64 = 0.03;

/// The released mean of `min(e², c²)` at a clip `c`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tail {
    /// c, in the outcome's units.
    pub(crate) clip: f64,
    /// The mean, in the square of these units.
    pub(crate) mean: f64,
    /// Sd of its noise.
    pub(crate) sd: f64,
}

/// The sum of squared residuals at a public point, noisy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResidualSquares {
    /// The point b.
    pub(crate) at: Vec<f64>,
    /// The sum per record.
    pub(crate) mean: f64,
    /// Variance of the mean's noise and of its allowance.
    pub(crate) variance: f64,
}

/// Both numbers, the lower clip's first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ResidualTails {
    near: Tail,
    far: Tail,
}

impl ResidualTails {
    /// Sorts two numbers; `None` unless the clips differ.
    pub(crate) fn new(one: Tail, other: Tail) -> Option<Self> {
        let (near, far) = if one.clip <= other.clip { (one, other) } else { (other, one) };
        (0.0 < near.clip && near.clip < far.clip).then_some(Self { near, far })
    }

    /// Returns the root mean square of what the mean excess of the residuals beyond a clip may be: its estimate and its noise.
    pub(crate) fn excess(&self, clip: f64) -> f64 {
        let Self { near, far } = self;
        let estimate = (far.mean - near.mean).max(0.0);
        let fall = near.clip / clip;
        libm::hypot(estimate, libm::hypot(near.sd, far.sd)) / (2.0 * near.clip) * fall * fall
    }

    /// Returns the mean of the squared residuals, from these numbers at a point, in moments' units.
    pub(crate) fn squares(&self, at: &[f64]) -> ResidualSquares {
        let Self { near, far } = self;
        let half = 0.5 * (far.mean - near.mean).max(0.0);
        let noise = libm::hypot(far.sd, 0.5 * libm::hypot(near.sd, far.sd));
        ResidualSquares { at: at.to_vec(), mean: far.mean + half, variance: noise * noise + half * half }
    }

    /// Returns the share of the records whose residual is between the two clips or beyond, in [0, 1]: the difference of the numbers
    /// over that of the squared clips.
    pub(crate) fn share(&self) -> f64 {
        let Self { near, far } = self;
        ((far.mean - near.mean) / (far.clip * far.clip - near.clip * near.clip)).clamp(0.0, 1.0)
    }

    /// Returns the clip at which the variances of noise and allowance have the smallest sum. `noise` is the variance of a
    /// coefficient that is due to the noise of a score clipped at 1, `allowed` the one that is due to a mean excess of 1.
    pub(crate) fn best_clip(&self, noise: f64, allowed: f64) -> f64 {
        let near = self.near.clip;
        // noise c² + allowed (X(near) near² / c²)²: its derivative is 0 where c^6 = 2 allowed (X(near) near²)² / noise.
        let fixed = self.excess(near) * near * near;
        let best = libm::pow(2.0 * allowed * fixed * fixed / noise, 1.0 / 6.0);
        if best.is_nan() { near * CLIP / NEAR } else { best.clamp(near, FARTHEST * near) }
    }
}

#[cfg(test)]
#[path = "tests/residual_tails.rs"]
mod tests;
