//! A constraint says what values a parameter may take, an interval what box it is kept in.

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
