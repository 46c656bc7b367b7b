//! The banana, a benchmark of samplers: two normal outcomes of which the second's mean bends with the
//! first's.
//!
//! Density of one record: `y_1 ~ N(theta_1, 1 / tau_1)`, `y_2 ~ N(theta_2 + a theta_1^2, 1 / tau_2)`
//! (variances), independent, with known `a` and precisions `tau_1`, `tau_2`. Outcomes and parameters are
//! in the data's units; a shard holds both outcomes scaled, the second as its first auxiliary column.
//!
//! Parameters: `theta_1` and `theta_2`, any real numbers. Source: the banana-shaped distributions on
//! which adaptive samplers are tried since Haario, Saksman & Tamminen, *Adaptive proposal distribution
//! for random walk Metropolis algorithm* (1999), here as a likelihood.
//!
//! Log ratio: affine in both outcomes, so that its range over the declared bounds is that of their four corners. A job that sets
//! a clip has that alone instead: what happens where a clip cuts many ratios is what such a job is there to show.
//!
//! Gradient, with `e = y_2 - theta_2 - a theta_1^2`: `(tau_1 (y_1 - theta_1) + 2 a theta_1 tau_2 e, tau_2 e)`, affine in both outcomes too;
//! see [`super::banana_scores`].
//!
//! Information: `tau_2` about `theta_2`; about `theta_1` it is `tau_1 + 4 a^2 theta_1^2 tau_2`, which
//! has no supremum, and `|theta_1| = 1` stands for all.

use super::banana_scores::BananaScores;
use super::blocks::{self, Kernel, KernelVisitor, Scratch};
use super::ratio_range::RatioRange;
use super::score::ScoreModel;
use super::tile::Tile;
use super::{Block, Model, ModelData, Step};
use crate::mechanism::LatticeSum;
use crate::schema::ColumnSpec;

/// The banana on two declared numeric columns.
pub(super) struct Banana {
    names: Vec<String>,
    /// Centre and half width of each outcome.
    pub(super) scales: [(f64, f64); 2],
    pub(super) bend: f64,
    pub(super) precision: [f64; 2],
    /// Whether a job's clip stands in the place of a bound.
    clipped: bool,
}

/// What of a step is public.
#[derive(Clone, Copy)]
pub(super) struct Constants {
    /// What the ratio grows by per unit of each outcome.
    slopes: [f64; 2],
    /// How far the middle of each outcome's scale is from the mean of its means.
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

impl Banana {
    /// `bend` is `a`, `precision` the two `tau`; `clipped` where the job's clip stands in the place of a bound.
    pub(super) fn new(names: Vec<String>, outcomes: [&ColumnSpec; 2], (bend, precision): (f64, [f64; 2]), clipped: bool) -> Self {
        Self { names, scales: outcomes.map(|column| (column.centre(), column.half_width())), bend, precision, clipped }
    }

    /// Of the second outcome.
    pub(super) fn mean(&self, theta: &[f64]) -> f64 {
        theta[1] + self.bend * theta[0] * theta[0]
    }
}

/// Both outcomes at the ends of their bounds.
pub(super) const CORNERS: [[f64; 2]; 4] = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]];

/// Panics when shapes differ, which are public.
pub(super) fn check((_, auxiliary): (usize, usize), dimensions: bool) {
    assert_eq!(auxiliary, 1, "a record has two outcomes");
    assert!(dimensions, "one value per parameter");
}

impl Kernel for Banana {
    type Constants = Constants;

    fn constants(&self, from: &[f64], to: &[f64]) -> Constants {
        // Differences of means, odd in the step, and means of means, symmetric in it.
        let first = self.precision[0] * (to[0] - from[0]);
        let second = self.precision[1] * ((to[1] - from[1]) + self.bend * (to[0] - from[0]) * (to[0] + from[0]));
        let middle = (0.5 * (from[0] + to[0]), 0.5 * (self.mean(from) + self.mean(to)));
        let [one, two] = self.scales;
        Constants { slopes: [first, second], shifts: [one.0 - middle.0, two.0 - middle.1], half_widths: [one.1, two.1] }
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Tile<'_>, constants: &Constants, _scratch: &mut Scratch, visitor: &mut impl KernelVisitor) {
        visitor.over([rows.outcome(), rows.auxiliary(0)], constants, Constants::of_record);
    }
}

impl Model for Banana {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        if self.clipped {
            return RatioRange::unbounded();
        }
        let constants = self.constants(from, to);
        RatioRange::of(CORNERS.map(|record| constants.of_record(record)))
    }

    fn information_bound(&self) -> Vec<f64> {
        let [first, second] = self.precision;
        vec![first + 4.0 * self.bend * self.bend * second, second]
    }

    fn block_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        check(block.columns(), steps.iter().all(|step| step.from.len() == 2 && step.to.len() == 2));
        blocks::lattice_sums(self, block, steps)
    }

    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        Some(Box::new(BananaScores(self)))
    }

    /// Up to the constant of both normal densities.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        check((0, data.auxiliary.len()), theta.len() == 2);
        let means = [theta[0], self.mean(theta)];
        let one = |j: usize, x: f64| {
            let away = self.scales[j].0 + self.scales[j].1 * x - means[j];
            -0.5 * self.precision[j] * away * away
        };
        data.outcome.iter().zip(&data.auxiliary[0]).map(|(x, z)| one(0, *x) + one(1, *z)).sum()
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        theta.to_vec()
    }
}
