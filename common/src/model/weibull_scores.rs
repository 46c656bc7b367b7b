//! Scores and information of Weibull survival times.
//!
//! In `kappa = ln k` and `l = ln lambda`, with `z = k (ln t - l)` and `H = e^z`, a record of event `d` has the score
//! `(d (1 + z) - z H, -k (d - H))`. Its observed information is `H (z, -k)(z, -k)'` plus what multiplies
//! `d - H`, which has at the maximum of the likelihood the sum `sum d` in the shape's own entry and 0 elsewhere, as
//! the score is 0 there. So a record's information is taken as
//! `H (z, -k)(z, -k)' + d e e'`, `e` the shape's axis: never negative, the observed information's sum at the
//! maximum, and its expectation at the truth whatever the censoring.

use pulp::{Simd, WithSimd};

use super::elementary::exp;
use super::gradient::{Sloped, gradient_sum};
use super::products::{DIAGONAL, UNIT};
use super::score::ScoreModel;
use super::times::Times;
use conclave_privacy::mechanism::{Clamp, LatticeSum};
use conclave_privacy::pass::few::{FEW, Few};
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::tile::Tile;

/// Places between the least and the greatest time at which records are looked at.
const PLACES: usize = 256;
/// The rounding of a record's vector lengthens it by less than this part.
const ROUNDING: f64 = 1.0 / 4096.0;

/// The scores of a Weibull model.
pub(super) struct WeibullScores(pub(super) Times);

/// A point in the forms that a record's score needs.
#[derive(Clone, Copy)]
struct At {
    shape: f64,
    log_scale: f64,
}

impl At {
    fn new(theta: &[f64]) -> Self {
        assert_eq!(theta.len(), 2, "one value per parameter");
        Self { shape: theta[0], log_scale: libm::log(theta[1]) }
    }

    #[inline(always)]
    fn z(self, log_time: f64) -> f64 {
        self.shape * (log_time - self.log_scale)
    }

    /// The score in the logarithms of shape and scale.
    #[inline(always)]
    fn score(self, z: f64, event: f64) -> [f64; 2] {
        let cumulative = exp(z);
        [event * (1.0 + z) - z * cumulative, -self.shape * (event - cumulative)]
    }

    /// The information's trace.
    fn trace(self, z: f64, event: f64) -> f64 {
        libm::exp(z) * (z * z + self.shape * self.shape) + event
    }
}

/// A record's scores, as slopes in two parameters without a predictor.
struct TimeSlopes {
    times: Times,
    at: At,
}

impl Sloped for TimeSlopes {
    #[inline(always)]
    fn slopes(&self, rows: &Tile<'_>, [shape, scale]: &mut [Few<f64>; 2]) {
        let records = rows.len();
        let (time, event) = (&rows.outcome()[..records], &rows.auxiliary(0)[..records]);
        let (shape, scale) = (&mut shape.0[..records], &mut scale.0[..records]);
        for i in 0..records {
            [shape[i], scale[i]] = self.at.score(self.at.z(self.times.log(time[i])), event[i]);
        }
    }
}

/// The sum over a block of what is information.
struct Information<'a> {
    times: Times,
    block: &'a Block<'a>,
    at: At,
    scale: f64,
}

impl Information<'_> {
    #[inline(always)]
    fn total(&self) -> Vec<i64> {
        let mut totals = vec![0; 3];
        let mut tiles = self.block.tiles(FEW);
        while let Some(rows) = tiles.next_tile() {
            self.add_information(&rows, self.scale, &mut totals);
        }
        totals
    }

    /// The upper triangle of each record's information over its scale, `M^2 = 1`.
    #[inline(always)]
    fn add_information(&self, rows: &Tile<'_>, scale: f64, totals: &mut [i64]) {
        let (time, event) = (rows.outcome(), rows.auxiliary(0));
        let (clamp, most) = (Clamp::symmetric(UNIT), (UNIT * UNIT) as f64);
        for i in 0..rows.len() {
            let z = self.at.z(self.times.log(time[i]));
            // Not a number of a record that is left out, whatever of it is none.
            let root = (exp(z) / scale).sqrt() + 0.0 * event[i];
            let whole = |x: f64| clamp.rounded(x * UNIT as f64);
            let [of_shape, of_scale] = [whole(root * z), whole(-root * self.at.shape)];
            let of_event = whole((event[i] / scale).sqrt() + 0.0 * z);
            let square = of_shape * of_shape + of_event * of_event;
            // Whole numbers, which an f64 holds exactly: what is longer than what is charged counts for nothing.
            let kept = if square + of_scale * of_scale <= most { 1.0 } else { 0.0 };
            let parts = [(square * DIAGONAL).floor(), of_shape * of_scale, (of_scale * of_scale * DIAGONAL).floor()];
            totals.iter_mut().zip(parts).for_each(|(total, part)| *total = total.wrapping_add((kept * part) as i64));
        }
    }
}

impl WithSimd for &Information<'_> {
    type Output = Vec<i64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Vec<i64> {
        self.total()
    }
}

impl WeibullScores {
    /// `z` at the least and the greatest time, and between.
    fn places(&self, at: At) -> impl Iterator<Item = f64> {
        let least = self.0.least_log;
        (0..=PLACES).map(move |place| at.z(least * (1.0 - place as f64 / PLACES as f64)))
    }

    fn check(block: &Block<'_>) {
        assert_eq!(block.columns().1, 1, "a time has its event");
    }
}

impl ScoreModel for WeibullScores {
    fn coefficients(&self) -> usize {
        2
    }

    fn parameters(&self) -> usize {
        2
    }

    /// In units of the scale.
    fn most_squares(&self) -> u64 {
        1
    }

    fn gradient_sum(&self, block: &Block<'_>, at: &[f64], frame: Frame<'_>) -> LatticeSum {
        Self::check(block);
        gradient_sum(&TimeSlopes { times: self.0, at: At::new(at) }, block, (at, frame), (1, true))
    }

    fn curvature_sum(&self, block: &Block<'_>, at: &[f64], scales: [f64; 2]) -> LatticeSum {
        Self::check(block);
        let sum = Information { times: self.0, block, at: At::new(at), scale: scales[0] };
        LatticeSum::of_several(&block.arch().dispatch(&sum))
    }

    fn moments_sum(&self, _block: &Block<'_>) -> Option<LatticeSum> {
        None
    }

    fn moments_outcome(&self) -> Option<(f64, f64)> {
        None
    }

    fn coding(&self) -> Vec<bool> {
        vec![false; 2]
    }

    fn range(&self, at: &[f64], direction: &[f64]) -> (f64, f64) {
        let at = At::new(at);
        let moved = |z: f64| direction[0] * z - direction[1] * at.shape;
        let (one, other) = (moved(at.z(self.0.least_log)), moved(at.z(0.0)));
        (one.min(other), one.max(other))
    }

    fn offset_range(&self) -> (f64, f64) {
        (0.0, 0.0)
    }

    fn extreme_gradients(&self, at: &[f64]) -> Option<Vec<Vec<f64>>> {
        let at = At::new(at);
        Some(self.places(at).flat_map(|z| [0.0, 1.0].map(|event| at.score(z, event).to_vec())).collect())
    }

    fn gradient_bound(&self, at: &[f64]) -> [f64; 2] {
        let gradients = self.extreme_gradients(at).unwrap_or_default();
        [gradients.iter().map(|g| g[0].hypot(g[1])).fold(0.0, f64::max), 0.0]
    }

    fn most_information(&self, at: &[f64]) -> [f64; 2] {
        let at = At::new(at);
        // The trace grows with z from -1 on and is below 2 + k^2 before.
        let most = self.places(at).map(|z| at.trace(z, 1.0)).fold(0.0, f64::max);
        [most * (1.0 + ROUNDING), 1.0]
    }

    /// Of records without censoring: `pi^2/6 + (1 - gamma)^2` for the shape, `k^2` for the scale.
    fn even_information(&self, at: &[f64]) -> Vec<f64> {
        vec![1.823_680_660_852_878_6, at[0] * at[0]]
    }

    fn has_intercept(&self) -> bool {
        false
    }

    fn is_indicator(&self, _j: usize) -> bool {
        false
    }

    fn leaves_out(&self) -> bool {
        false
    }

    fn groups(&self) -> Vec<Vec<usize>> {
        vec![vec![0], vec![1]]
    }

    fn never_together(&self, _j: usize, _k: usize) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "tests/weibull_scores.rs"]
mod tests;
