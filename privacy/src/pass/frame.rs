//! The frame, the public affine map in which a gradient is released.

/// A public affine map of one record's gradient: `rows . gradient + shift`, in units of the largest contribution of a record
/// ([`crate::mechanism::GRADIENT_UNITS`] lattice units).
///
/// A record contributes the image. An image longer than 1 is moved towards the shift until its length is at most 1. An inert
/// record contributes the shift, the image of a zero gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame<'a> {
    rows: &'a [f64],
    shift: &'a [f64],
}

impl<'a> Frame<'a> {
    /// Returns the number of values of a frame for `parameters` parameters: `d^2 + d`.
    #[must_use]
    pub fn length(parameters: usize) -> usize {
        parameters * (parameters + 1)
    }

    /// Creates a frame from its rows, one after the other, followed by the shift; `None` unless there are `d^2 + d` numbers.
    #[must_use]
    pub fn new(numbers: &'a [f64], parameters: usize) -> Option<Self> {
        if parameters == 0 || numbers.len() != Self::length(parameters) {
            return None;
        }
        let (rows, shift) = numbers.split_at(parameters * parameters);
        Some(Self { rows, shift })
    }

    /// Returns the numbers that identify the gradient in this frame at a point.
    #[must_use]
    pub fn query_at(self, at: &'a [f64]) -> [&'a [f64]; 3] {
        [at, self.rows, self.shift]
    }

    /// Returns the number of parameters.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.shift.len()
    }

    /// Returns the rows, one after the other.
    pub fn rows(&self) -> &'a [f64] {
        self.rows
    }

    /// Returns row `k`: the weight of each parameter's gradient in component `k`.
    #[must_use]
    pub fn row(&self, k: usize) -> &'a [f64] {
        &self.rows[k * self.parameters()..(k + 1) * self.parameters()]
    }

    /// Returns the constant that is added to each component.
    #[must_use]
    pub fn shift(&self) -> &'a [f64] {
        self.shift
    }
}
