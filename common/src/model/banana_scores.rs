//! Gradients, information and remainders of the banana.
//!
//! With `e = y_2 - theta_2 - a theta_1^2` a record has the gradient `(tau_1 (y_1 - theta_1) + 2 a theta_1 tau_2 e, tau_2 e)`. It
//! is affine in both outcomes, so under any affine map the longest image over the declared bounds is that of one of the four
//! corners.
//!
//! Observed information: `tau_1 E + tau_2 v v'`, with `v = (2 a theta_1, 1)` and `E` the projection on the first coordinate, less
//! `2 a tau_2 e` in the first coordinate. The last term sums to 0 at the maximum of the likelihood. The first two terms are used:
//! they are the expected information, positive semidefinite and the same for every record.
//!
//! The remainder of a step from `theta` to `theta'` with midpoint `m` uses `d = theta' - theta`, `s = theta_1 + theta'_1`,
//! `q = 2 m_1 - s` and the second outcome's mean `mu`:
//!
//! ```text
//! tau_1 d_1 q / 2  +  tau_2 [ (d_2 + a d_1 s) (mu(m) - (mu(theta) + mu(theta')) / 2)  -  a d_1 q (y_2 - mu(m)) ]
//! ```
//!
//! It is affine in the second outcome alone, so its extremes are at the two ends of that outcome's range. Swapping the ends of
//! the step negates it exactly.

use super::banana_law::{BananaLaw, CORNERS, Constants, check};
use super::leverage::Leverage;
use super::remainder::{Along, give_remainders};
use super::score::{Remainder, ScoreModel};
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::blocks::{KernelVisitor, Scratch};
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::hold::{Columns, Place, Sloped};
use conclave_privacy::pass::lattice_frame::{LatticeFrame, WholeFrame};
use conclave_privacy::pass::small_tile::TileLane;
use conclave_privacy::pass::tile::Tile;

/// A gradient has one coefficient, whose predictor is 1, and one further parameter.
const SHAPE: (usize, bool) = (1, true);
/// The reciprocal of the grid of information values. They are rounded down to it, so that no vector becomes longer.
const UNIT: f64 = 65_536.0;
/// The relative amount by which rounding may lengthen a record's vector.
const ROUNDING: f64 = 1.0 / 4096.0;
/// The rounding error of a remainder's bound, relative to the magnitudes in it.
const ARITHMETIC: f64 = 16.0 * f64::EPSILON;

/// The scores of a banana.
pub(super) struct BananaScores<'a>(pub(super) &'a BananaLaw);

/// A point in the form that a record's gradient needs.
#[derive(Clone, Copy)]
pub(super) struct At {
    /// The middle of each outcome's scale, less the outcome's mean.
    shifts: [f64; 2],
    half_widths: [f64; 2],
    precision: [f64; 2],
    /// `2 a theta_1`
    lean: f64,
}

impl At {
    fn new(law: &BananaLaw, theta: &[f64]) -> Self {
        assert_eq!(theta.len(), 2, "one value per parameter");
        let [one, two] = law.scales;
        Self {
            shifts: [one.0 - theta[0], two.0 - law.mean(theta)],
            half_widths: [one.1, two.1],
            precision: law.precision,
            lean: 2.0 * law.bend * theta[0],
        }
    }

    #[inline(always)]
    fn gradient(&self, [x, z]: [f64; 2]) -> [f64; 2] {
        let of_first = self.precision[0] * (self.shifts[0] + self.half_widths[0] * x);
        // Not-a-number for an inert record, whichever of its values is not a number.
        let of_second = self.precision[1] * (self.shifts[1] + self.half_widths[1] * z) + 0.0 * x;
        [of_first + self.lean * of_second, of_second]
    }

    /// Returns the gradients of records at the four corners.
    fn extremes(&self) -> [[f64; 2]; 4] {
        CORNERS.map(|record| self.gradient(record))
    }

    /// Returns the upper triangle of a record's information.
    fn information(&self) -> [f64; 3] {
        let [first, second] = self.precision;
        [first + second * self.lean * self.lean, second * self.lean, second]
    }
}

impl Sloped for At {
    #[inline(always)]
    fn slopes(&self, rows: &Tile<'_>, [first, second]: &mut [TileLane<f64>; 2]) {
        let records = rows.len();
        let (x, z) = (&rows.outcome()[..records], &rows.auxiliary(0)[..records]);
        let (first, second) = (&mut first.0[..records], &mut second.0[..records]);
        for i in 0..records {
            [first[i], second[i]] = self.gradient([x[i], z[i]]);
        }
    }
}

/// A step of a remainder.
struct BananaAlong {
    middle: At,
    constants: Constants,
    /// The inner product of the step with the vector of weight 1 in the first slope.
    first: f64,
}

impl Along for BananaAlong {
    type Slopes = At;
    /// Both outcomes.
    type Moved<'r> = [&'r [f64]; 2];

    fn slopes(&self) -> At {
        self.middle
    }

    #[inline(always)]
    fn moved<'r>(
        &self,
        rows: &Tile<'r>,
        sums: &'r mut [TileLane<f64>; 3],
        _scratch: &'r mut Scratch,
    ) -> (&'r [f64], [&'r [f64]; 2]) {
        let along = &mut sums[0].0[..rows.len()];
        along.fill(self.first);
        (along, [rows.outcome(), rows.auxiliary(0)])
    }

    #[inline(always)]
    fn log_ratios(&self, moved: &[&[f64]; 2], visitor: &mut impl KernelVisitor) {
        visitor.over(*moved, &self.constants, Constants::of_record);
    }
}

/// A record's information divided by its scale: the sum of two outer products, the same for every record.
struct Information {
    /// The first vector's components, and the one component of the second.
    numbers: [f64; 3],
}

/// The columns of a record's information.
const PLACES_OF_INFORMATION: [Place; 3] =
    [Place { vector: 0, component: 0 }, Place { vector: 0, component: 1 }, Place { vector: 1, component: 0 }];

impl Columns for Information {
    type Room = ();

    fn room(&self) {}

    #[inline(always)]
    fn fill<const N: usize>(&self, rows: &Tile<'_>, (): &mut (), columns: &mut [[f64; N]]) {
        for (column, number) in columns.iter_mut().zip(self.numbers) {
            for ((value, x), z) in column.iter_mut().zip(rows.outcome()).zip(rows.auxiliary(0)) {
                // Not-a-number for an inert record.
                *value = number + 0.0 * x + 0.0 * z;
            }
        }
    }
}

impl ScoreModel for BananaScores<'_> {
    fn coefficients(&self) -> usize {
        2
    }

    /// In units of the scale.
    fn most_squares(&self) -> u64 {
        1
    }

    fn gradient_kernel(&self, at: &[f64], frame: Frame<'_>, pass: BlockPass<'_>) {
        check(pass.columns(), at.len() == 2);
        pass.ball(&At::new(self.0, at), at, frame, SHAPE.0, SHAPE.1);
    }

    fn remainder_bound(&self, [from, middle, to]: [&[f64]; 3], _leverage: Option<&Leverage<'_>>) -> Option<f64> {
        let BananaLaw { scales: [_, (centre, half_width)], bend, precision } = *self.0;
        let by = [to[0] - from[0], to[1] - from[1]];
        let (sum, off) = (from[0] + to[0], 2.0 * middle[0] - (from[0] + to[0]));
        let (means, here) = (0.5 * (self.0.mean(from) + self.0.mean(to)), self.0.mean(middle));
        let along = by[1] + bend * by[0] * sum;
        let of_first = 0.5 * precision[0] * by[0] * off;
        let bent = bend * by[0] * off;
        let at = |end: f64| {
            let away = centre + end * half_width - here;
            (of_first + precision[1] * (along * (here - means) - bent * away)).abs()
        };
        // The magnitudes that are subtracted: those of the two means and of the first parameters.
        let rounded = precision[1] * along.abs() * (here.abs() + means.abs())
            + (0.5 * precision[0] + precision[1] * bend.abs() * (centre.abs() + half_width + here.abs()))
                * by[0].abs()
                * (2.0 * middle[0].abs() + sum.abs());
        Some(at(-1.0).max(at(1.0)) + ARITHMETIC * rounded)
    }

    fn vector_rounding(&self, step: &Remainder<'_>) -> f64 {
        WholeFrame::new(step.frame, SHAPE.0).rounding(step.weights)
    }

    fn remainder_kernel(&self, step: &Remainder<'_>, pass: BlockPass<'_>) {
        let [from, middle, to] = step.points;
        check(pass.columns(), step.points.iter().all(|point| point.len() == 2));
        let along = |weights: &[f64]| BananaAlong {
            middle: At::new(self.0, middle),
            constants: self.0.constants(from, to),
            first: weights.iter().sum(),
        };
        give_remainders(step, SHAPE, along, pass);
    }

    /// The same for every record.
    fn curvature_kernel(&self, at: &[f64], scales: [f64; 2], pass: BlockPass<'_>) {
        check(pass.columns(), at.len() == 2);
        let At { precision, lean, .. } = At::new(self.0, at);
        let root = (precision[1] / scales[0]).sqrt();
        let numbers = [root * lean, root, (precision[0] / scales[0]).sqrt()].map(|x| (x * UNIT).trunc() / UNIT);
        // Values beyond the charged bound contribute no information.
        let fits = numbers.iter().map(|x| x * x).sum::<f64>() <= 1.0;
        let kernel = Information { numbers: if fits { numbers } else { [f64::NAN; 3] } };
        pass.trace(&kernel, 2, &PLACES_OF_INFORMATION);
    }

    /// Returns the relative change of the information about the first parameter along the step, in either direction.
    ///
    /// It accounts for the slope of the second outcome's mean and for the movement of that mean, which sums to 0 where the search
    /// ends. It has no unit, like the movement of a regression's linear predictor.
    fn range(&self, at: &[f64], direction: &[f64]) -> (f64, f64) {
        let here = At::new(self.0, at);
        let ([information, ..], [_, second]) = (here.information(), self.0.precision);
        let leaning = direction[0].abs() * (second / information).sqrt();
        let moved = second * (here.lean * direction[0] + direction[1]).abs() / information;
        let most = 2.0 * self.0.bend.abs() * leaning.max(moved);
        (-most, most)
    }

    fn extreme_gradients(&self, at: &[f64]) -> Option<Vec<Vec<f64>>> {
        Some(At::new(self.0, at).extremes().map(|gradient| gradient.to_vec()).to_vec())
    }

    fn reach(&self, at: &[f64], image: &dyn Fn(&[f64]) -> Vec<f64>) -> Option<f64> {
        let length = |gradient: [f64; 2]| image(&gradient).iter().map(|x| x * x).sum::<f64>().sqrt();
        let lengths = At::new(self.0, at).extremes().map(length);
        // `f64::max` would ignore a value that is not a number.
        Some(lengths.into_iter().fold(0.0, |most: f64, length| if most.is_nan() || length <= most { most } else { length }))
    }

    fn widened(&self, at: &[f64], frame: Frame<'_>) -> f64 {
        let extremes = At::new(self.0, at).extremes();
        let most = [0, 1].map(|j| extremes.iter().fold(0.0, |most: f64, gradient| most.max(gradient[j].abs())));
        LatticeFrame::new(frame, SHAPE.0).widened(most)
    }

    fn gradient_bound(&self, at: &[f64]) -> [f64; 2] {
        [At::new(self.0, at).extremes().iter().map(|g| libm::hypot(g[0], g[1])).fold(0.0, f64::max), 0.0]
    }

    fn most_information(&self, at: &[f64]) -> [f64; 2] {
        let [first, _, second] = At::new(self.0, at).information();
        [(first + second) * (1.0 + ROUNDING), 1.0]
    }

    fn even_information(&self, at: &[f64]) -> Vec<f64> {
        let [first, _, second] = At::new(self.0, at).information();
        vec![first, second]
    }
}

#[cfg(test)]
#[path = "tests/banana_scores.rs"]
mod tests;
