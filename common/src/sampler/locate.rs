//! Finding the mode before the chains start, from released ratios alone.
//!
//! Chains that each walk from a distant start spend the budget on the way, and end it far from the mode with an R-hat
//! that can look good. So one shared search goes first. Coordinate by coordinate it asks two paired questions,
//! (theta, theta ± δ e_j); a parabola through the two answers gives slope and curvature, a Newton step follows, damped by how
//! well theta is known already against how noisy the answer is (a scalar Kalman filter), and δ shrinks from the prior's scale to a few posterior standard deviations. Each question has a noise scale of its own,
//! sized so that it costs a planned share of the budget, whatever δ is.

use super::{Query, SamplerError};
use crate::accounting::PrivacyUnit;
use crate::job::{Interval, JobSpec};
use crate::mechanism::{NoiseScale, QueryKind, STEP};
use crate::model::{Model, contribution};

/// Sweeps over all coordinates of a search for the mode; early ones are cheap and coarse.
const MODE_SWEEPS: u32 = 10;
/// Sweeps that only measure curvature.
const CURVATURE_SWEEPS: u32 = 3;
/// Each sweep may spend this many times what the one before it did.
const GROWTH: f64 = 1.6;
/// δ is at most divided by this from sweep to sweep.
const SHRINK: f64 = 5.0;
/// δ ends between these many posterior standard deviations: below, the curvature drowns in noise; above, the parabola bends.
const LEAST_DELTA: f64 = 4.0;
const MOST_DELTA: f64 = 12.0;
/// Relative error at which a curvature is good enough.
const CURVATURE_ERROR: f64 = 0.1;
/// Relative process noise of a curvature from one sweep to the next while δ still shrinks: theta moves, and a long
/// parabola measures another curvature than a short one.
const DRIFT: f64 = 0.3;
/// The same once δ has settled.
const SETTLED_DRIFT: f64 = 0.05;
/// Least curvature, as a share of the greatest possible one.
const LEAST_CURVATURE: f64 = 1e-5;
/// What theta still moved over the last so many sweeps counts as its error: with correlated coordinates a search by
/// coordinates creeps, and its last step alone would look small.
const CREEP_SWEEPS: usize = 3;
/// How often δ is halved to bring a question's noise into range.
const HALVINGS: u32 = 64;

/// What a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Move to the mode and measure the curvature there.
    Mode,
    /// Stay at the given start and measure the curvature.
    Curvature,
}

/// What a search found.
pub(super) struct Found {
    pub purpose: Purpose,
    pub theta: Vec<f64>,
    /// Posterior sd of each coordinate given the others.
    pub sd: Vec<f64>,
    /// Standard error of each coordinate of `theta`: noise, and how far it was from standing still.
    pub error_sd: Vec<f64>,
}

/// One coordinate's state.
struct Axis {
    delta: f64,
    /// Greatest δ: a pair of questions fits into the box around a point near its edge.
    most_delta: f64,
    curvature: f64,
    /// Variance of `curvature`.
    variance: f64,
    /// Variance of the coordinate's distance from where the search is going; never above the prior's scale.
    location: f64,
    most_location: f64,
    /// Greatest possible curvature: all records' Fisher information at its bound, plus the prior's.
    most: f64,
    least: f64,
    /// The coordinate after each sweep, from the start on.
    path: Vec<f64>,
}

/// The search as a state machine.
pub(super) struct Locate {
    purpose: Purpose,
    theta: Vec<f64>,
    axes: Vec<Axis>,
    /// mu² of one question, by sweep.
    price: Vec<f64>,
    /// What the parties protect: the noise is sized for the one at which a question costs most.
    units: Vec<PrivacyUnit>,
    sweep: usize,
    coordinate: usize,
}

impl Locate {
    /// A search that may spend `mu_squared` at each party, from the job's start or the prior's centre.
    pub(super) fn new(spec: &JobSpec, model: &dyn Model, records: &[u64], purpose: Purpose, mu_squared: f64) -> Self {
        let total: f64 = records.iter().map(|n| *n as f64).sum();
        let theta = spec.sampler.start.clone().unwrap_or_else(|| {
            let inside = |(p, s): (&crate::prior::Prior, &crate::job::Interval)| p.location().clamp(s.min, s.max);
            spec.priors.iter().zip(&spec.support).map(inside).collect()
        });
        let information = model.information_bound();
        let axes = information.iter().zip(spec.priors.iter().zip(&spec.support)).map(|(info, (prior, box_))| {
            let most = total * info + prior.precision();
            let least = (LEAST_CURVATURE * most).max(prior.precision()).min(most);
            let most_delta = (box_.max - box_.min) / 4.0;
            let delta = match purpose {
                Purpose::Mode => prior.scale(),
                Purpose::Curvature => 2.0 * LEAST_DELTA / most.sqrt(),
            };
            let most_location = prior.scale().min(box_.max - box_.min).powi(2);
            Axis {
                delta: delta.min(most_delta),
                most_delta,
                curvature: most / 2.0,
                variance: most * most / 4.0,
                location: most_location,
                most_location,
                most,
                least,
                path: Vec::new(),
            }
        });
        let sweeps = if purpose == Purpose::Mode { MODE_SWEEPS } else { CURVATURE_SWEEPS };
        let weights: Vec<f64> = (0..sweeps).map(|s| GROWTH.powi(s as i32)).collect();
        let questions = 2.0 * theta.len() as f64;
        let sum: f64 = weights.iter().sum();
        let price = weights.iter().map(|w| mu_squared * w / (sum * questions)).collect();
        Self { purpose, axes: axes.collect(), theta, price, units: vec![PrivacyUnit::default()], sweep: 0, coordinate: 0 }
    }

    /// The search from another point.
    pub(super) fn at(self, theta: Vec<f64>) -> Self {
        Self { theta, ..self }
    }

    /// The search for parties that protect these units: its noise is sized for the one at which a question costs most.
    pub(super) fn priced_for(self, units: impl Iterator<Item = PrivacyUnit>) -> Self {
        Self { units: units.collect(), ..self }
    }

    /// The two paired questions of the present coordinate.
    ///
    /// Near the box's edge they are centred as far inside as δ asks; theta itself stays.
    pub(super) fn queries(&mut self, spec: &JobSpec, model: &dyn Model) -> Result<Vec<Query>, SamplerError> {
        let j = self.coordinate;
        let mut halvings = 0;
        loop {
            let delta = self.axes[j].delta;
            let Interval { min, max } = spec.support[j];
            let mut base = self.theta.clone();
            base[j] = base[j].clamp(min + delta, max - delta);
            let side = |sign: f64| {
                let mut to = base.clone();
                to[j] = (to[j] + sign * delta).clamp(min, max);
                to
            };
            let (up, down) = (side(1.0), side(-1.0));
            match self.noise(spec, model, &base, [&up, &down]) {
                // A long step's bound, and with it the noise, may be beyond what the lattice holds; both shrink with δ.
                Err(_) if halvings < HALVINGS => {
                    self.axes[j].delta /= 2.0;
                    halvings += 1;
                }
                noise => {
                    let noise = noise?;
                    let query = |chain, to| Query { chain, kind: QueryKind::Ratio, from: base.clone(), to, noise };
                    return Ok(vec![query(0, up), query(1, down)]);
                }
            }
        }
    }

    /// The noise at which a question of the present sweep costs what was planned; never below the job's own.
    fn noise(&self, spec: &JobSpec, model: &dyn Model, from: &[f64], to: [&[f64]; 2]) -> Result<NoiseScale, SamplerError> {
        let mut dearest = 0.0_f64;
        for unit in &self.units {
            for to in to {
                let part = contribution(model, &spec.privacy, *unit, from, to)?;
                dearest = dearest.max(unit.adjacency.factor() as f64 * part.sensitivity.units() as f64);
            }
        }
        let sd = dearest * STEP / self.price[self.sweep].sqrt();
        Ok(NoiseScale::from_sd(sd.max(spec.privacy.noise.sd()))?)
    }

    /// Takes the two answers: fits the parabola, steps, resizes δ.
    pub(super) fn absorb(&mut self, spec: &JobSpec, queries: &[Query], ratios: &[f64]) {
        let ([up, down], [r_up, r_down]) = (queries, ratios) else { return };
        let j = self.coordinate;
        let ratio = |q: &Query, likelihood: f64| likelihood + spec.log_prior(&q.to) - spec.log_prior(&q.from);
        let (rise, fall) = (ratio(up, *r_up), ratio(down, *r_down));
        let variance = spec.parties.len() as f64 * up.noise.variance();
        let axis = &mut self.axes[j];
        let delta = axis.delta;
        axis.learn_curvature(-(rise + fall) / (delta * delta), 2.0 * variance / delta.powi(4));
        let mut step = 0.0;
        if self.purpose == Purpose::Mode {
            let newton = (rise - fall) / (2.0 * delta) / axis.curvature;
            let gain = axis.location / (axis.location + variance / 2.0 / (delta * axis.curvature).powi(2));
            let target = up.from[j] + newton;
            let before = self.theta[j];
            step = (gain * (target - before)).clamp(-delta, delta);
            self.theta[j] = (before + step).clamp(spec.support[j].min, spec.support[j].max);
            axis.location = ((1.0 - gain) * axis.location + step * step).min(axis.most_location);
        }
        axis.path.push(self.theta[j]);
        let growth = self.price.get(self.sweep + 1).map_or(1.0, |next| next / self.price[self.sweep]);
        axis.resize(step.abs(), variance / growth);
        self.coordinate += 1;
        if self.coordinate == self.theta.len() {
            self.coordinate = 0;
            self.sweep += 1;
        }
    }

    /// The outcome, once the last sweep is answered.
    pub(super) fn found(&self) -> Option<Found> {
        (self.sweep == self.price.len()).then(|| Found {
            purpose: self.purpose,
            theta: self.theta.clone(),
            sd: self.axes.iter().map(Axis::sd).collect(),
            error_sd: self.axes.iter().map(Axis::error_sd).collect(),
        })
    }
}

impl Axis {
    /// Weighs a measured curvature of this variance against what is known (a scalar Kalman step), within its limits.
    fn learn_curvature(&mut self, measured: f64, variance: f64) {
        let gain = self.variance / (self.variance + variance);
        self.curvature = (self.curvature + gain * (measured - self.curvature)).clamp(self.least, self.most);
        self.variance *= 1.0 - gain;
    }

    /// Chooses the next δ; `variance` is what one answer's noise would have next time at the present δ.
    fn resize(&mut self, step: f64, variance: f64) {
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

    /// Posterior sd given the other coordinates, on the small side of what is known: a radius that is too small costs
    /// rounds, one that is too large costs budget.
    fn sd(&self) -> f64 {
        (self.curvature + self.variance.sqrt()).sqrt().recip()
    }

    fn error_sd(&self) -> f64 {
        let creep = match self.path.as_slice() {
            [.., last] => last - self.path[self.path.len().saturating_sub(CREEP_SWEEPS + 1)],
            [] => 0.0,
        };
        (self.location + creep * creep).min(self.most_location).sqrt()
    }
}
