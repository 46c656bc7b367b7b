//! A frame: the public map that a gradient is released in.

/// A public affine map of one record's gradient: `rows . gradient + shift`, in units of what a record
/// contributes at most ([`crate::mechanism::GRADIENT_UNITS`] lattice units).
///
/// A record contributes the image, shortened to length 1 where it is longer; one that is left out
/// contributes the shift, which is the image of no gradient at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame<'a> {
    rows: &'a [f64],
    shift: &'a [f64],
}

impl<'a> Frame<'a> {
    /// Numbers of a frame for so many parameters: `d^2 + d`.
    #[must_use]
    pub fn length(parameters: usize) -> usize {
        parameters * (parameters + 1)
    }

    /// The frame of these numbers, its rows one after the other and then the shift; `None` where there are not
    /// `d^2 + d` of them.
    #[must_use]
    pub fn new(numbers: &'a [f64], parameters: usize) -> Option<Self> {
        if parameters == 0 || numbers.len() != Self::length(parameters) {
            return None;
        }
        let (rows, shift) = numbers.split_at(parameters * parameters);
        Some(Self { rows, shift })
    }

    /// The numbers that identify the gradient in this frame at a point.
    #[must_use]
    pub fn asked_at(self, at: &'a [f64]) -> [&'a [f64]; 3] {
        [at, self.rows, self.shift]
    }

    /// Number of parameters.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.shift.len()
    }

    /// The rows, one after the other.
    pub fn rows(&self) -> &'a [f64] {
        self.rows
    }

    /// What parameter's part of the gradient goes with which weight into component `k`.
    #[must_use]
    pub fn row(&self, k: usize) -> &'a [f64] {
        &self.rows[k * self.parameters()..(k + 1) * self.parameters()]
    }

    /// What is added to each component.
    #[must_use]
    pub fn shift(&self) -> &'a [f64] {
        self.shift
    }
}
