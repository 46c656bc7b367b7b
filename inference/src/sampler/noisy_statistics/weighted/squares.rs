//! The residuals' sd from sums of their clipped squares at the answer.
//!
//! The sum at the upper clip `c` withholds what lies beyond. Where the share of residuals beyond `t` falls with the third power of `t`,
//! that is `a / (c - a)` times what lies between a lower clip `a` and `c`. Of that, beyond a normal law's part, half is added, and the
//! other half is the sd of an allowance, which is at least half of its noise. Neither is more than what the table of residuals leaves
//! room for.

use super::progress::Progress;

/// Least variance, in units of the located one.
const LEAST: f64 = 0.02;
/// Ratio of two clips up to which their sums are of the same squares.
const APART: f64 = 1.05;
/// Sds of its noise up to which an excess counts as noise.
const SEEN: f64 = 1.0;

/// Greatest number of sums.
pub(super) const SUMS: usize = 3;

/// The mean of the squared residuals, clipped, in units of the located variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Squares {
    /// The clip, in located sds.
    pub(super) clip: f64,
    pub(super) mean: f64,
    /// Sd of the mean's noise.
    pub(super) sd: f64,
    /// True if no residual within the declared bounds is clipped.
    pub(super) whole: bool,
}

impl Squares {
    /// Returns the mean of two sums at the same clip, by their precisions.
    fn pooled(&self, other: &Self) -> Self {
        let (a, b) = (other.sd * other.sd, self.sd * self.sd);
        let part = if a + b > 0.0 { a / (a + b) } else { 0.5 };
        let sd = libm::hypot(part * self.sd, (1.0 - part) * other.sd);
        Self { mean: part * self.mean + (1.0 - part) * other.mean, sd, ..*self }
    }

    /// Returns the sums at the lower and the upper clip, once all are released: three, or one with no residual clipped.
    pub(super) fn bounds(sums: &[Self]) -> Option<[Self; 2]> {
        let last = sums.last()?;
        if last.whole {
            return Some([*last; 2]);
        }
        let [near, middle, last] = <&[Self; SUMS]>::try_from(sums).ok()?;
        let alike = last.clip < APART * middle.clip;
        Some(if alike { [*near, last.pooled(middle)] } else { [*middle, *last] })
    }
}

/// The mean square that an upper clip withholds, beyond a normal law's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Withheld {
    /// 0 where it is within its noise.
    pub(super) excess: f64,
    /// Sd of its noise.
    pub(super) noise: f64,
}

impl Withheld {
    /// Estimates it from what lies between two clips.
    pub(super) fn new(near: &Squares, far: &Squares) -> Self {
        // The located sd is that of the bulk, which the tails do not widen.
        let normal = clipped_square(far.clip) - clipped_square(near.clip);
        let beyond = near.clip / (far.clip - near.clip).max(f64::MIN_POSITIVE);
        let noise = beyond * libm::hypot(near.sd, far.sd);
        let excess = beyond * (far.mean - near.mean - normal);
        Self { excess: Some(excess).filter(|excess| *excess > SEEN * noise).unwrap_or(0.0), noise }
    }
}

/// The likelihood of log sigma.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LogSigma {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl LogSigma {
    /// Returns the located log sigma. Its sd is above the limit of the check: a job that ends before the sums of squares has no adequate
    /// answer.
    pub(super) fn located(progress: &Progress) -> Self {
        const SD: f64 = 0.3;
        Self { mean: progress.log_sigma, variance: SD * SD }
    }

    /// Estimates log sigma in units of the located one, from the sums at a lower and an upper clip. `added` is the mean square that the
    /// noise of the coefficients adds to the residuals of this many records, for a number of coefficients. `unseen` is the greatest
    /// mean square that may lie beyond the upper clip.
    pub(super) fn new([near, far]: [&Squares; 2], (added, records, order): (f64, f64, f64), unseen: f64) -> Self {
        let unseen = if far.whole { 0.0 } else { unseen };
        let Withheld { excess, noise } = Withheld::new(near, far);
        let excess = excess.min(unseen);
        let mean = (unclipped(far) + 0.5 * excess - added).max(LEAST);
        let of = |error: f64| (0.5 * error / mean) * (0.5 * error / mean);
        let variance = 0.5 / records + of(far.sd) + of(0.5 * excess.max(noise.min(unseen))) + of(added) * 2.0 / order;
        Self { mean: 0.5 * libm::log(mean), variance }
    }

    /// Returns it in other units.
    pub(super) fn moved(self, log_unit: f64) -> Self {
        Self { mean: self.mean + log_unit, ..self }
    }
}

/// Returns the variance of the normal law whose squares have this mean at the clip. The parameter's box may keep the clip small.
fn unclipped(squares: &Squares) -> f64 {
    let mut variance = squares.mean.max(LEAST);
    if squares.whole {
        return variance;
    }
    for _ in 0..50 {
        variance = squares.mean.max(LEAST) / clipped_square(squares.clip / variance.sqrt());
        // Beyond it the clip leaves nothing to see.
        variance = variance.min(squares.clip * squares.clip);
    }
    variance
}

/// Returns the mean of `min(r², c²)` of a standard normal law.
fn clipped_square(c: f64) -> f64 {
    let within = libm::erf(c / std::f64::consts::SQRT_2);
    let density = libm::exp(-0.5 * c * c) / (2.0 * std::f64::consts::PI).sqrt();
    within - 2.0 * c * density + c * c * (1.0 - within)
}

#[cfg(test)]
#[path = "../tests/weighted_squares.rs"]
mod tests;
