//! The state of a search along one direction: the parabola's curvature, the extent δ, and the error of the location.

/// Largest factor by which δ shrinks from sweep to sweep.
const SHRINK: f64 = 5.0;
/// Limits of the final δ in posterior standard deviations: below, noise hides the curvature; above, the log likelihood deviates
/// from a parabola.
pub(super) const LEAST_DELTA: f64 = 4.0;
const MOST_DELTA: f64 = 12.0;
/// Relative error at which a curvature is accurate enough.
const CURVATURE_ERROR: f64 = 0.1;
/// Relative process noise of a curvature from one sweep to the next while δ still shrinks: theta moves, and a long parabola
/// measures another curvature than a short one.
const DRIFT: f64 = 0.3;
/// Relative process noise once δ has settled.
const SETTLED_DRIFT: f64 = 0.05;
/// Least curvature, as a share of the greatest possible one.
pub(super) const LEAST_CURVATURE: f64 = 1e-5;
/// Number of last sweeps whose movement of theta counts as its error: with correlated coordinates a search by coordinates creeps,
/// and its last step alone would look small.
const CREEP_SWEEPS: usize = 3;

/// The state of one direction.
pub(super) struct Axis {
    pub(super) delta: f64,
    /// Greatest δ at which a pair of queries fits into the box around a point near its edge.
    pub(super) most_delta: f64,
    pub(super) curvature: f64,
    /// Variance of `curvature`.
    pub(super) variance: f64,
    /// Variance of the coordinate's distance from the target of the search; at most the prior's scale.
    pub(super) location: f64,
    pub(super) most_location: f64,
    /// Greatest possible curvature: the bound of all records' Fisher information, plus the prior's precision.
    pub(super) most: f64,
    pub(super) least: f64,
    /// The coordinate after each sweep, from the start.
    pub(super) path: Vec<f64>,
    /// Variance of the last step that is due to noise.
    pub(super) noise: f64,
}

impl Axis {
    /// Combines a measured curvature of this variance with the present estimate (a scalar Kalman step), within its limits.
    pub(super) fn learn_curvature(&mut self, measured: f64, variance: f64) {
        let gain = self.variance / (self.variance + variance);
        self.curvature = (self.curvature + gain * (measured - self.curvature)).clamp(self.least, self.most);
        self.variance *= 1.0 - gain;
    }

    /// Returns the step towards a location at this distance, measured with answers of this noise variance; at most δ.
    pub(super) fn step(&mut self, distance: f64, variance: f64) -> f64 {
        let error = variance / 2.0 / (self.delta * self.curvature).powi(2);
        let gain = self.location / (self.location + error);
        let step = (gain * distance).clamp(-self.delta, self.delta);
        self.location = ((1.0 - gain) * self.location + step * step).min(self.most_location);
        self.noise = gain * gain * error;
        step
    }

    /// Chooses the next δ; `variance` is the next noise variance of one answer at the present δ.
    pub(super) fn resize(&mut self, step: f64, variance: f64) {
        let sd = self.curvature.sqrt().recip();
        // An answer's noise sd is proportional to δ, a curvature's therefore to 1/δ.
        let wanted = (2.0 * variance).sqrt() / (self.delta * self.curvature * CURVATURE_ERROR);
        let target = wanted.clamp(LEAST_DELTA * sd, MOST_DELTA * sd);
        let old = self.delta;
        let new = if step >= old { 2.0 * old } else { target.max(2.0 * step).max(old / SHRINK).min(old.max(target)) };
        self.delta = new.min(self.most_delta);
        let drift = if self.delta < old / 1.5 || self.delta > old * 1.5 { DRIFT } else { SETTLED_DRIFT };
        self.variance += (drift * self.curvature).powi(2);
    }

    /// Returns the posterior sd given the other coordinates, at the low end of its error range: a radius that is too small costs
    /// rounds, one that is too large costs budget.
    pub(super) fn sd(&self) -> f64 {
        (self.curvature + self.variance.sqrt()).sqrt().recip()
    }

    pub(super) fn error_sd(&self) -> f64 {
        let creep = match self.path.as_slice() {
            [.., last] => last - self.path[self.path.len().saturating_sub(CREEP_SWEEPS + 1)],
            [] => 0.0,
        };
        (self.location + creep * creep).min(self.most_location).sqrt()
    }
}
