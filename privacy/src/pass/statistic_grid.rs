//! The lattice of one component of a sufficient statistic (Algorithm 3).

use crate::mechanism::{MechanismError, Sensitivity};

/// Lattice units in the width of a component's public range, 2^32. Noise of scale s is then `s / 2^32` of the range, as a ratio's
/// noise is `s / 2^32` log-likelihood units.
const UNITS_PER_RANGE: f64 = 4_294_967_296.0;
/// The largest limit in lattice units. Beyond it the range is too far from 0 for its width.
const MOST_UNITS: f64 = (1_u64 << 50) as f64;

/// The lattice of one component. It is public and identical at every party, since only the model's range determines it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatisticGrid {
    /// The lattice step, in the component's own units.
    pub step: f64,
    /// The interval to which one record's value is clamped, in lattice units: `[floor(least / step), ceil(greatest / step)]`.
    pub limits: (i64, i64),
}

impl StatisticGrid {
    /// Creates the lattice of a component whose value for one record lies from `least` to `greatest`.
    ///
    /// # Errors
    /// [`MechanismError::Range`] for a range that is not finite, is empty, or lies too far from 0 for its width.
    pub fn new((least, greatest): (f64, f64)) -> Result<Self, MechanismError> {
        let refused = MechanismError::Range(least, greatest);
        if !(least.is_finite() && greatest.is_finite() && least <= greatest) {
            return Err(refused);
        }
        // A component that is constant over records still needs a lattice.
        let width = if greatest > least { greatest - least } else { greatest.abs().max(1.0) };
        // Division by a power of two: exact.
        let step = width / UNITS_PER_RANGE;
        let (low, high) = ((least / step).floor(), (greatest / step).ceil());
        if !(step.is_normal() && low.abs() <= MOST_UNITS && high.abs() <= MOST_UNITS) {
            return Err(refused);
        }
        Ok(Self { step, limits: (low as i64, high as i64) })
    }

    /// Creates the lattices of all components from their ranges.
    ///
    /// # Errors
    /// [`MechanismError::Range`] if a range has no lattice.
    #[cfg(any(test, feature = "test-util"))]
    pub fn of_ranges(ranges: Vec<(f64, f64)>) -> Result<Vec<Self>, MechanismError> {
        ranges.into_iter().map(Self::new).collect()
    }

    /// Returns the sensitivity under replacement of one record: the distance between the limits, at least 1.
    ///
    /// Proof: `docs/explanation/proofs.md`, section 1.
    #[must_use]
    pub fn sensitivity(&self) -> Sensitivity {
        // At most 2^32 + 2: the limits are those of the range, rounded outward.
        let width = self.limits.1.abs_diff(self.limits.0).max(1);
        Sensitivity::from_units(width).unwrap_or_else(|_| unreachable!("a range is at most 2^32 + 2 units wide"))
    }

    /// Returns whether the sum over `records` records fits a lattice sum.
    #[must_use]
    pub fn sum_fits(&self, records: u64) -> bool {
        let most = self.limits.0.unsigned_abs().max(self.limits.1.unsigned_abs());
        u128::from(records) * u128::from(most) < 1 << 62
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unusable_ranges_are_refused() {
        for bad in [(0.0, f64::INFINITY), (f64::NAN, 1.0), (1.0, 0.0), (1e9, 1e9 + 1e-3), (0.0, 1e-310)] {
            assert!(matches!(StatisticGrid::new(bad), Err(MechanismError::Range(..))), "{bad:?}");
        }
        assert_eq!(StatisticGrid::new((1.0, 1.0)).unwrap().sensitivity().units(), 1);
    }

    #[test]
    fn a_sum_that_does_not_fit_is_seen() {
        let grid = StatisticGrid::new((0.0, 1.0)).unwrap();
        assert_eq!(grid.limits, (0, 1 << 32));
        assert!(grid.sum_fits((1 << 30) - 1) && !grid.sum_fits(1 << 30));
    }

    proptest! {
        #[test]
        fn every_value_in_the_range_lies_within_the_limits(a in -1e6..1e6f64, w in 1e-3..1e6f64, at in 0.0..=1.0f64) {
            let range = (a, a + w);
            let Ok(grid) = StatisticGrid::new(range) else { return Ok(()) };
            let value = (a + at * w).clamp(range.0, range.1);
            let units = (value / grid.step).round_ties_even();
            prop_assert!(grid.limits.0 as f64 <= units && units <= grid.limits.1 as f64);
            let width = grid.sensitivity().units();
            prop_assert!(((1_u64 << 32) - 2..=(1 << 32) + 2).contains(&width));
        }
    }
}
