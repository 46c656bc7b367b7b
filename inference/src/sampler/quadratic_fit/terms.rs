//! The polynomial model of a log likelihood. Its linear and quadratic terms are fitted; pure cubic and quartic terms test the
//! fit.
//!
//! `l(x) = sum_j b_j x_j - 1/2 sum_ij H_ij x_i x_j + sum_j c_j x_j^3 / 6 + sum_j q_j x_j^4 / 24`. The coefficients are in the
//! order b, H (row after row, up to the diagonal), c, q.

/// The terms of a polynomial in `dimension` coordinates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) dimension: usize,
}

impl Terms {
    /// Returns the number of linear and quadratic terms, which come first.
    pub(super) fn quadratic(self) -> usize {
        self.dimension + self.dimension * (self.dimension + 1) / 2
    }

    /// Returns the number of all terms.
    pub(super) fn count(self) -> usize {
        self.quadratic() + 2 * self.dimension
    }

    /// Returns the index of `H_ij`.
    pub(super) fn curvature(self, i: usize, j: usize) -> usize {
        let (i, j) = (i.max(j), i.min(j));
        self.dimension + i * (i + 1) / 2 + j
    }

    /// Returns the index of `c_j`.
    pub(super) fn cubic(self, j: usize) -> usize {
        self.quadratic() + j
    }

    /// Returns the index of `q_j`.
    pub(super) fn quartic(self, j: usize) -> usize {
        self.quadratic() + self.dimension + j
    }

    /// Computes each coefficient's factor in `l(to) - l(from)`, sorted by index and without zeros: a move of one coordinate has
    /// few.
    pub(super) fn of_step(self, from: &[f64], to: &[f64], into: &mut Vec<(usize, f64)>) {
        let d = self.dimension;
        into.clear();
        let step = |j: usize| to[j] - from[j];
        let twice_middle = |j: usize| to[j] + from[j];
        let mut put = |place: usize, value: f64| {
            if value != 0.0 {
                into.push((place, value));
            }
        };
        (0..d).for_each(|j| put(j, step(j)));
        for i in 0..d {
            for j in 0..=i {
                // Half of x_i' x_j' - x_i x_j twice over, without its cancellation.
                let product = 0.5 * (step(i) * twice_middle(j) + twice_middle(i) * step(j));
                put(self.curvature(i, j), if i == j { -0.5 * product } else { -product });
            }
        }
        let squares = |j: usize| to[j] * to[j] + from[j] * from[j];
        (0..d).for_each(|j| put(self.cubic(j), step(j) * (squares(j) + to[j] * from[j]) / 6.0));
        (0..d).for_each(|j| put(self.quartic(j), step(j) * twice_middle(j) * squares(j) / 24.0));
    }

    /// Computes each coefficient's factor in the slope of `l` at `x` along `direction`.
    pub(super) fn of_slope(self, x: &[f64], direction: &[f64], into: &mut Vec<(usize, f64)>) {
        let d = self.dimension;
        into.clear();
        let mut put = |place: usize, value: f64| {
            if value != 0.0 {
                into.push((place, value));
            }
        };
        (0..d).for_each(|j| put(j, direction[j]));
        for i in 0..d {
            for j in 0..=i {
                let both = direction[i] * x[j] + direction[j] * x[i];
                put(self.curvature(i, j), if i == j { -0.5 * both } else { -both });
            }
        }
        (0..d).for_each(|j| put(self.cubic(j), direction[j] * x[j] * x[j] / 2.0));
        (0..d).for_each(|j| put(self.quartic(j), direction[j] * x[j] * x[j] * x[j] / 6.0));
    }
}
