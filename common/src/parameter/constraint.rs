//! A constraint says what values a parameter may take, an interval what box it is kept in.

/// Least magnitude of a scaled value or a parameter, other than 0: 2^-100.
///
/// Products and differences of numbers that keep to it are never subnormal. Arithmetic on subnormal
/// numbers takes many processors some hundred times as long, so that the time of a pass would tell how
/// many records hold them.
pub const LEAST_MAGNITUDE: f64 = f64::from_bits((1023 - 100) << 52);

/// What values a parameter may take at all, before any box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// Any real number.
    Real,
    /// Above 0.
    Positive,
    /// Strictly between 0 and 1.
    UnitInterval,
    /// One of `size` consecutive parameters that are positive and add up to 1.
    Simplex {
        /// Number of parameters that add up to 1, at least 2.
        size: usize,
    },
}

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

impl Interval {
    /// Whether `x` lies inside; never for NaN.
    pub fn contains(&self, x: f64) -> bool {
        self.min <= x && x <= self.max
    }
}
