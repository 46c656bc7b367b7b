//! Public bounds of the data's columns.

use super::levels::{Levels, number};
use crate::parameter::LEAST_MAGNITUDE;

/// The public declaration of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnSpec {
    /// A number, clamped to `[min, max]` and scaled to [−1, 1].
    Numeric {
        /// Least value, in the data's units.
        min: f64,
        /// Greatest value, in the data's units.
        max: f64,
    },
    /// 0 or 1, unchanged.
    Binary,
    /// One of these values, the first being the reference. A record holds the value's number, from 0.
    Levels(Levels),
}

/// A categorical column and its levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategoricalFeature {
    /// The column.
    pub column: String,
    /// Its levels, at least two.
    pub levels: Vec<String>,
}

impl ColumnSpec {
    /// Returns a raw value on the model's scale.
    ///
    /// The function is total: for any record, the result lies in [`ColumnSpec::range`] or is NaN, for NaN and for a value that is
    /// not a level. A record's contents must never decide whether a job is answered.
    pub fn scale(&self, value: f64) -> f64 {
        let scaled = match *self {
            ColumnSpec::Numeric { min, max } => {
                (value.clamp(min, max) - self.centre()) / self.half_width().max(f64::MIN_POSITIVE)
            }
            _ if value.is_nan() => value,
            // A number that belongs to no level becomes NaN.
            ColumnSpec::Levels(ref levels) => {
                let last = levels.len().saturating_sub(1) as f64;
                if value >= 0.0 && value <= last && value.fract() == 0.0 { value } else { f64::NAN }
            }
            ColumnSpec::Binary => f64::from(u8::from(value >= 0.5)),
        };
        if scaled.abs() < LEAST_MAGNITUDE { 0.0 } else { scaled.clamp(self.range().0, self.range().1) }
    }

    /// Returns the number of the level that a text denotes, as [`ColumnSpec::scale`] takes it; NaN if there is none. [`Levels`] states
    /// the comparison.
    pub fn level_of(&self, text: &str) -> f64 {
        let ColumnSpec::Levels(levels) = self else { return number(text) };
        levels.of_text(text).map_or(f64::NAN, |at| at as f64)
    }

    /// Returns the numbers that the levels denote in a column of numbers, in order, for [`level_at`]; NaN for a level that is no
    /// number. `None` if the column has no levels.
    pub fn level_numbers(&self) -> Option<Vec<f64>> {
        let ColumnSpec::Levels(levels) = self else { return None };
        Some(levels.numbers())
    }

    /// Returns the names of the levels, `0` and `1` for a binary column; `None` for a numeric one.
    pub fn level_names(&self) -> Option<Vec<String>> {
        match self {
            ColumnSpec::Levels(levels) => Some(levels.to_vec()),
            ColumnSpec::Binary => Some(["0", "1"].map(str::to_owned).to_vec()),
            ColumnSpec::Numeric { .. } => None,
        }
    }

    /// Returns true if two levels denote the same number, so that a column of numbers does not determine the level.
    pub fn has_equal_numbers(&self) -> bool {
        let numbers = self.level_numbers().unwrap_or_default();
        numbers.iter().zip(0..).any(|(number, at)| numbers[..at].contains(number))
    }

    /// Returns the least and the greatest scaled value.
    pub fn range(&self) -> (f64, f64) {
        match self {
            ColumnSpec::Numeric { .. } => (-1.0, 1.0),
            ColumnSpec::Binary => (0.0, 1.0),
            ColumnSpec::Levels(levels) => (0.0, levels.len().saturating_sub(1) as f64),
        }
    }

    /// Returns the value, in the data's units, that becomes 0.
    pub fn centre(&self) -> f64 {
        match *self {
            ColumnSpec::Numeric { min, max } => min / 2.0 + max / 2.0,
            ColumnSpec::Binary | ColumnSpec::Levels(_) => 0.0,
        }
    }

    /// Returns the size of one scaled unit in the data's units.
    pub fn half_width(&self) -> f64 {
        match *self {
            ColumnSpec::Numeric { min, max } => max / 2.0 - min / 2.0,
            ColumnSpec::Binary | ColumnSpec::Levels(_) => 1.0,
        }
    }
}

/// Returns the number of the level that equals a numeric value, for a column of numbers. The number of steps does not depend
/// on the value.
pub fn level_at(numbers: &[f64], value: f64) -> f64 {
    numbers.iter().enumerate().rev().fold(f64::NAN, |found, (at, number)| if *number == value { at as f64 } else { found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scales_and_clamps() {
        let age = ColumnSpec::Numeric { min: 20.0, max: 80.0 };
        assert_eq!([10.0, 20.0, 50.0, 80.0, 99.0].map(|v| age.scale(v)), [-1.0, -1.0, 0.0, 1.0, 1.0]);
        let centred = ColumnSpec::Numeric { min: -1.0, max: 1.0 };
        assert_eq!([1e-300, -1e-31, f64::MIN_POSITIVE / 2.0].map(|v| centred.scale(v)), [0.0; 3]);
        assert_eq!([0.0, 1.0, 7.0, -3.0].map(|v| ColumnSpec::Binary.scale(v)), [0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn levels_are_found_by_text_and_by_number() {
        let ward = ColumnSpec::Levels(["a", "1", "2.5"].into_iter().collect());
        assert_eq!(["a", "1", "2.5"].map(|t| ward.level_of(t)), [0.0, 1.0, 2.0]);
        assert!(["A", "b", "", "NaN", "inf", "3", "1.0", "01", "25e-1"].iter().all(|t| ward.level_of(t).is_nan()));
        assert!(!ward.has_equal_numbers() && ColumnSpec::Levels(["1", "a", "01"].into_iter().collect()).has_equal_numbers());
        let numbers = ward.level_numbers().unwrap_or_default();
        assert_eq!([1.0, 2.5].map(|v| level_at(&numbers, v)), [1.0, 2.0]);
        assert!([0.0, f64::NAN, f64::INFINITY].iter().all(|v| level_at(&numbers, *v).is_nan()));
        assert_eq!(level_at(&[f64::NAN, 3.0, 3.0], 3.0), 1.0, "the first of two that are the same");
        assert_eq!([0.0, 2.0].map(|v| ward.scale(v)), [0.0, 2.0]);
        assert!([-1.0, 0.5, 3.0, f64::NAN].iter().all(|v| ward.scale(*v).is_nan()));
    }

    proptest! {
        #[test]
        fn any_value_lands_in_range(v in any::<f64>(), a in -1e9..1e9f64, w in 1e-6..1e9f64) {
            for column in [ColumnSpec::Numeric { min: a, max: a + w }, ColumnSpec::Binary] {
                let (lo, hi) = column.range();
                let s = column.scale(v);
                prop_assert!(s.is_nan() == v.is_nan());
                prop_assert!(s.is_nan() || (lo <= s && s <= hi));
                prop_assert!(s.is_nan() || s == 0.0 || s.abs() >= LEAST_MAGNITUDE);
            }
        }
    }
}
