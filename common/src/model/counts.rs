//! Counts as a shard holds them, and in their own units.

use crate::schema::ColumnSpec;

/// The conversion of a count between a shard's scale and its own units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Counts {
    centre: f64,
    half_width: f64,
}

impl Counts {
    pub(super) fn new(outcome: &ColumnSpec) -> Self {
        Self { centre: outcome.centre(), half_width: outcome.half_width() }
    }

    /// Returns the integer count that a scaled value represents, up to 2^50.
    #[inline(always)]
    pub(super) fn of(self, scaled: f64) -> f64 {
        /// 1.5 * 2^52. Adding it rounds to an integer, ties to even.
        const ROUNDER: f64 = 6_755_399_441_055_744.0;
        ((self.centre + self.half_width * scaled) + ROUNDER) - ROUNDER
    }

    /// Returns the least and the greatest count.
    pub(super) fn range(self) -> (f64, f64) {
        (self.of(-1.0), self.of(1.0))
    }

    /// Returns scaled values of the least and the greatest count and of some between, whose distances from the least grow by a
    /// factor of about 1.5.
    pub(super) fn spread(self) -> Vec<f64> {
        let (least, greatest) = self.range();
        let mut counts = vec![least];
        let mut above = 1.0_f64;
        while least + above < greatest {
            counts.push(least + above);
            above = (1.5 * above).ceil();
        }
        counts.push(greatest);
        counts.into_iter().map(|count| ((count - self.centre) / self.half_width).clamp(-1.0, 1.0)).collect()
    }
}
