//! The polynomial that a log likelihood is taken to be, as terms with coefficients: linear and quadratic
//! ones, which are fitted, and pure cubic and quartic ones, which tell whether the fit may be believed.
//!
//! `l(x) = sum_j b_j x_j - 1/2 sum_ij H_ij x_i x_j + sum_j c_j x_j^3 / 6 + sum_j q_j x_j^4 / 24`; the
//! coefficients stand in the order b, H (row after row, up to the diagonal), c, q.

/// The terms of a polynomial of so many coordinates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) dimension: usize,
}

impl Terms {
    /// Number of linear and quadratic terms: the first ones.
    pub(super) fn quadratic(self) -> usize {
        self.dimension + self.dimension * (self.dimension + 1) / 2
    }

    /// Number of all terms.
    pub(super) fn count(self) -> usize {
        self.quadratic() + 2 * self.dimension
    }

    /// Place of `H_ij`.
    pub(super) fn curvature(self, i: usize, j: usize) -> usize {
        let (i, j) = (i.max(j), i.min(j));
        self.dimension + i * (i + 1) / 2 + j
    }

    /// Place of `c_j`.
    pub(super) fn cubic(self, j: usize) -> usize {
        self.quadratic() + j
    }

    /// Place of `q_j`.
    pub(super) fn quartic(self, j: usize) -> usize {
        self.quadratic() + self.dimension + j
    }

    /// What each coefficient is multiplied by in `l(to) - l(from)`, by place and only where it is not 0: a
    /// move of one coordinate has few.
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

    /// What each coefficient is multiplied by in the slope of `l` at `x` along `direction`.
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
