//! Public bounds of the data's columns.

/// Least magnitude of a scaled value or a parameter, other than 0: 2^-100.
///
/// Products and differences of numbers that keep to it are never subnormal. Arithmetic on subnormal numbers takes many
/// processors some hundred times as long, so that the time of a pass would tell how many records hold them.
pub const LEAST_MAGNITUDE: f64 = f64::from_bits((1023 - 100) << 52);

/// What is publicly declared about one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColumnSpec {
    /// A number, clamped to `[min, max]` and scaled to [−1, 1].
    Numeric {
        /// Least value, in the data's units.
        min: f64,
        /// Greatest value, in the data's units.
        max: f64,
    },
    /// 0 or 1, left as it is.
    Binary,
}

impl ColumnSpec {
    /// A raw value on the model's scale.
    ///
    /// Total: whatever the record holds, the result lies in [`ColumnSpec::range`], or is NaN for NaN.
    /// What a record holds must never decide whether a job is answered.
    pub fn scale(&self, value: f64) -> f64 {
        let scaled = match *self {
            ColumnSpec::Numeric { min, max } => {
                (value.clamp(min, max) - self.centre()) / self.half_width().max(f64::MIN_POSITIVE)
            }
            ColumnSpec::Binary if value.is_nan() => value,
            ColumnSpec::Binary => f64::from(u8::from(value >= 0.5)),
        };
        if scaled.abs() < LEAST_MAGNITUDE { 0.0 } else { scaled.clamp(self.range().0, self.range().1) }
    }

    /// Least and greatest scaled value.
    pub fn range(&self) -> (f64, f64) {
        match self {
            ColumnSpec::Numeric { .. } => (-1.0, 1.0),
            ColumnSpec::Binary => (0.0, 1.0),
        }
    }

    /// The data's value that becomes 0.
    pub fn centre(&self) -> f64 {
        match *self {
            ColumnSpec::Numeric { min, max } => min / 2.0 + max / 2.0,
            ColumnSpec::Binary => 0.0,
        }
    }

    /// How much of the data's unit is one scaled unit.
    pub fn half_width(&self) -> f64 {
        match *self {
            ColumnSpec::Numeric { min, max } => max / 2.0 - min / 2.0,
            ColumnSpec::Binary => 1.0,
        }
    }
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
