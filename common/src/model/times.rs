//! Positive times as a shard holds them, in units of their declared maximum.

use crate::elementary::ln;
use crate::schema::ColumnSpec;

/// A declared column of times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// `t` at `x = 0`, and the slope of `t` in `x`.
    pub(super) middle: f64,
    pub(super) half: f64,
    /// The logarithm of the least `t`; that of the greatest is 0.
    pub(super) least_log: f64,
    /// The declared maximum, in the data's unit of time.
    pub(super) longest: f64,
}

impl Times {
    /// Creates the scale. `time` has a declared minimum above 0.
    pub(super) fn new(time: &ColumnSpec) -> Self {
        let longest = time.centre() + time.half_width();
        let shortest = (time.centre() - time.half_width()).max(f64::EPSILON * longest);
        let (middle, half) = (time.centre() / longest, time.half_width() / longest);
        Self { middle, half, least_log: libm::log(shortest / longest), longest }
    }

    /// Returns `ln t` for a shard's `x`.
    #[inline(always)]
    pub(super) fn log(&self, x: f64) -> f64 {
        ln(self.middle + self.half * x)
    }
}
