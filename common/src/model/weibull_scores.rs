//! Scores and information of Weibull survival times.
//!
//! Let `kappa = ln k`, `l = ln lambda`, `z = k (ln t - l)` and `H = e^z`. A record with event `d` has the score
//! `(d (1 + z) - z H, -k (d - H))`. Its observed information is `H (z, -k)(z, -k)'` plus a term that multiplies `d - H`. At the
//! maximum of the likelihood the score is 0, so that term sums to `sum d` in the shape's own entry and to 0 elsewhere. A record's
//! information is therefore defined as `H (z, -k)(z, -k)' + d e e'`, with `e` the unit vector of the shape. It is positive
//! semidefinite, has the same sum as the observed information at the maximum, and has its expectation at the true parameters
//! under any censoring.

use super::observed::ObservedForm;
use super::score::ScoreModel;
use super::times::Times;
use crate::elementary::exp;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::hold::{Columns, Place, Sloped};
use conclave_privacy::pass::small_tile::TileLane;
use conclave_privacy::pass::tile::Tile;

/// Places between the least and the greatest time at which records are evaluated.
const PLACES: usize = 256;
/// The relative amount by which rounding may lengthen a record's vector.
const ROUNDING: f64 = 1.0 / 4096.0;

/// The scores of a Weibull model.
pub(super) struct WeibullScores(pub(super) Times);

/// A point in the form that a record's score needs.
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

    /// Returns the score in the logarithms of shape and scale.
    #[inline(always)]
    fn score(self, z: f64, event: f64) -> [f64; 2] {
        let cumulative = exp(z);
        [event * (1.0 + z) - z * cumulative, -self.shape * (event - cumulative)]
    }

    /// Returns the trace of the information.
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
    fn slopes(&self, rows: &Tile<'_>, [shape, scale]: &mut [TileLane<f64>; 2]) {
        let records = rows.len();
        let (time, event) = (&rows.outcome()[..records], &rows.auxiliary(0)[..records]);
        let (shape, scale) = (&mut shape.0[..records], &mut scale.0[..records]);
        for i in 0..records {
            [shape[i], scale[i]] = self.at.score(self.at.z(self.times.log(time[i])), event[i]);
        }
    }
}

/// A record's information divided by its scale: the sum of the outer products of `(shape, scale)` and of `(event, 0)`.
struct Information {
    times: Times,
    at: At,
    scale: f64,
}

/// The columns of a record's information: shape and scale, then the event.
const PLACES_OF_INFORMATION: [Place; 3] =
    [Place { vector: 0, component: 0 }, Place { vector: 0, component: 1 }, Place { vector: 1, component: 0 }];

impl Columns for Information {
    type Room = ();

    fn room(&self) {}

    #[inline(always)]
    fn fill<const N: usize>(&self, rows: &Tile<'_>, (): &mut (), columns: &mut [[f64; N]]) {
        let (time, event) = (rows.outcome(), rows.auxiliary(0));
        let [of_shape, of_scale, of_event] = columns else { return };
        for i in 0..rows.len() {
            let z = self.at.z(self.times.log(time[i]));
            // Not-a-number for an inert record, whichever of its values is missing.
            let root = (exp(z) / self.scale).sqrt() + 0.0 * event[i];
            (of_shape[i], of_scale[i]) = (root * z, -root * self.at.shape);
            of_event[i] = (event[i] / self.scale).sqrt() + 0.0 * z;
        }
    }
}

impl WeibullScores {
    /// Yields `z` at the least and the greatest time, and between.
    fn places(&self, at: At) -> impl Iterator<Item = f64> {
        let least = self.0.least_log;
        (0..=PLACES).map(move |place| at.z(least * (1.0 - place as f64 / PLACES as f64)))
    }

    fn check(pass: &BlockPass<'_>) {
        assert_eq!(pass.columns().1, 1, "a time has its event");
    }
}

impl ScoreModel for WeibullScores {
    fn coefficients(&self) -> usize {
        2
    }

    /// In units of the scale.
    fn most_squares(&self) -> u64 {
        1
    }

    fn gradient_kernel(&self, at: &[f64], frame: Frame<'_>, pass: BlockPass<'_>) {
        Self::check(&pass);
        pass.ball(&TimeSlopes { times: self.0, at: At::new(at) }, at, frame, 1, true);
    }

    fn curvature_kernel(&self, at: &[f64], scales: [f64; 2], pass: BlockPass<'_>) {
        Self::check(&pass);
        let kernel = Information { times: self.0, at: At::new(at), scale: scales[0] };
        pass.trace(&kernel, 2, &PLACES_OF_INFORMATION);
    }

    fn range(&self, at: &[f64], direction: &[f64]) -> (f64, f64) {
        let at = At::new(at);
        let moved = |z: f64| direction[0] * z - direction[1] * at.shape;
        let (one, other) = (moved(at.z(self.0.least_log)), moved(at.z(0.0)));
        (one.min(other), one.max(other))
    }

    fn extreme_gradients(&self, at: &[f64]) -> Option<Vec<Vec<f64>>> {
        let at = At::new(at);
        Some(self.places(at).flat_map(|z| [0.0, 1.0].map(|event| at.score(z, event).to_vec())).collect())
    }

    fn gradient_bound(&self, at: &[f64]) -> [f64; 2] {
        let gradients = self.extreme_gradients(at).unwrap_or_default();
        [gradients.iter().map(|g| libm::hypot(g[0], g[1])).fold(0.0, f64::max), 0.0]
    }

    fn most_information(&self, at: &[f64]) -> [f64; 2] {
        let at = At::new(at);
        // The trace increases with z from -1 on and is below 2 + k^2 before.
        let most = self.places(at).map(|z| at.trace(z, 1.0)).fold(0.0, f64::max);
        [most * (1.0 + ROUNDING), 1.0]
    }

    fn observed(&self, _at: &[f64]) -> ObservedForm {
        ObservedForm::Times
    }

    /// For records without censoring: `pi^2/6 + (1 - gamma)^2` for the shape, `k^2` for the scale.
    fn even_information(&self, at: &[f64]) -> Vec<f64> {
        vec![1.823_680_660_852_878_6, at[0] * at[0]]
    }
}

#[cfg(test)]
#[path = "tests/weibull_scores.rs"]
mod tests;
