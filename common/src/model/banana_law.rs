//! The law of the banana in the units of its data: the log ratio of a step and its public constants.

use crate::schema::ColumnSpec;

/// Both outcomes at the ends of their bounds.
pub(super) const CORNERS: [[f64; 2]; 4] = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]];

/// Panics if the shapes differ. Shapes are public.
pub(super) fn check((_, auxiliary): (usize, usize), dimensions: bool) {
    assert_eq!(auxiliary, 1, "a record has two outcomes");
    assert!(dimensions, "one value per parameter");
}

/// The known constants of the law.
pub(super) struct BananaLaw {
    /// Centre and half width of each outcome.
    pub(super) scales: [(f64, f64); 2],
    /// `a`
    pub(super) bend: f64,
    /// The two `tau`.
    pub(super) precision: [f64; 2],
}

impl BananaLaw {
    pub(super) fn new(outcomes: [&ColumnSpec; 2], bend: f64, precision: [f64; 2]) -> Self {
        Self { scales: outcomes.map(|column| (column.centre(), column.half_width())), bend, precision }
    }

    /// Returns the mean of the second outcome.
    pub(super) fn mean(&self, theta: &[f64]) -> f64 {
        theta[1] + self.bend * theta[0] * theta[0]
    }

    pub(super) fn constants(&self, from: &[f64], to: &[f64]) -> Constants {
        // Differences of means, odd in the step, and means of means, symmetric in it.
        let first = self.precision[0] * (to[0] - from[0]);
        let second = self.precision[1] * ((to[1] - from[1]) + self.bend * (to[0] - from[0]) * (to[0] + from[0]));
        let middle = (0.5 * (from[0] + to[0]), 0.5 * (self.mean(from) + self.mean(to)));
        let [one, two] = self.scales;
        Constants { slopes: [first, second], shifts: [one.0 - middle.0, two.0 - middle.1], half_widths: [one.1, two.1] }
    }
}

/// The public constants of a step.
#[derive(Clone, Copy)]
pub(super) struct Constants {
    /// The slope of the ratio in each outcome.
    slopes: [f64; 2],
    /// The middle of each outcome's scale, less the average of its means at both ends of the step.
    shifts: [f64; 2],
    half_widths: [f64; 2],
}

impl Constants {
    #[inline(always)]
    pub(super) fn of_record(&self, [x, z]: [f64; 2]) -> f64 {
        let Self { slopes, shifts, half_widths } = self;
        slopes[0] * (shifts[0] + half_widths[0] * x) + slopes[1] * (shifts[1] + half_widths[1] * z)
    }
}
