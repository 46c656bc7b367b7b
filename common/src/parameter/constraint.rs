//! The constraint on a parameter's values, and the box that a chain keeps it in.

/// The least magnitude of a scaled value or a parameter other than 0: 2^-100.
///
/// Products and differences of such numbers are never subnormal. Many processors take about a hundred times as long for
/// arithmetic on subnormal numbers, so the time of a pass would reveal how many records hold them.
pub const LEAST_MAGNITUDE: f64 = f64::from_bits((1023 - 100) << 52);

/// The set of values that a parameter may take, before any box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// Any real number.
    Real,
    /// Above 0.
    Positive,
    /// Strictly between 0 and 1.
    UnitInterval,
    /// One of `size` consecutive parameters that are positive and sum to 1.
    Simplex {
        /// Number of parameters that sum to 1, at least 2.
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
    /// Returns whether `x` lies in the interval; false for NaN.
    pub fn contains(&self, x: f64) -> bool {
        self.min <= x && x <= self.max
    }
}
