//! The search for the posterior's mode before the chains start, from released ratios only.
//!
//! Chains that each walk from a distant start spend the budget on the path, and end far from the mode with an R-hat that can look
//! good. So one shared search goes first, in the unconstrained coordinates of the chains.
//!
//! For each coordinate it sends two paired queries, (u, u ± δ e_j). A parabola through the two answers gives slope and curvature.
//! A damped Newton step follows: the damping weighs the error of u against the noise of the answers (a scalar Kalman filter). δ
//! shrinks from the prior's scale to a few posterior standard deviations. Each query has its own noise scale, at which it costs a
//! planned share of the budget for any δ.
//!
//! With correlated coordinates, such a search creeps along a valley: sweep after sweep it moves in the same direction. That
//! direction is then added to the search ([`Pattern`]), with its own parabola, δ and bound.

use super::axis::{Axis, LEAST_CURVATURE, LEAST_DELTA};
use super::pattern::{self, Pattern, Patterns};
use super::purpose::Purpose;
use crate::sampler::error::SamplerError;
use crate::sampler::space::Space;
use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::Query;
use conclave_common::query::contribution;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP};

/// Number of sweeps over all coordinates in a search for the mode; early ones are cheap and coarse.
const MODE_SWEEPS: u32 = 10;
/// Number of sweeps that only measure curvature.
const CURVATURE_SWEEPS: u32 = 3;
/// Ratio of the budgets of successive sweeps.
const GROWTH: f64 = 1.6;
/// Maximum number of halvings of δ that bring a query's noise into range.
const HALVINGS: u32 = 64;

/// The result of a search.
pub(crate) struct Found {
    pub purpose: Purpose,
    /// Location, in coordinates.
    pub u: Vec<f64>,
    /// Posterior sd of each coordinate given the others.
    pub sd: Vec<f64>,
    /// Standard error of each coordinate of `u`, from noise and remaining movement.
    pub error_sd: Vec<f64>,
}

/// The coordinates of a pair of queries.
struct Pair {
    base: Vec<f64>,
    up: Vec<f64>,
    down: Vec<f64>,
}

/// A search for the mode, or for the curvature around a given point, as a state machine.
pub(crate) struct ModeSearch {
    purpose: Purpose,
    u: Vec<f64>,
    axes: Vec<Axis>,
    patterns: Patterns,
    /// Price of each sweep at one party, as mu².
    price: Vec<f64>,
    /// Units of privacy of the parties: the noise is sized for the party at which a query costs most.
    units: Vec<PrivacyUnit>,
    sweep: usize,
    /// Index of the direction in the sweep: the patterns first, then the coordinates.
    turn: usize,
    pending: Option<Pair>,
}

impl ModeSearch {
    /// Starts a search that may spend `mu_squared` at each party, from the job's start or the priors' centres.
    pub(crate) fn new(
        spec: &JobSpec,
        space: &Space,
        model: &dyn Model,
        records: &[u64],
        purpose: Purpose,
        mu_squared: f64,
    ) -> Self {
        let total: f64 = records.iter().map(|n| *n as f64).sum();
        let u = spec.sampler.start.as_ref().map_or_else(|| space.location.clone(), |theta| space.coordinates(theta));
        let information = model.information_bound();
        let axes: Vec<Axis> = (0..space.dimension())
            .map(|j| {
                let most = total * information[space.parameters[j]] + space.precision[j];
                let width = space.boxes[j].max - space.boxes[j].min;
                let delta = match purpose {
                    Purpose::Mode => space.scale[j],
                    Purpose::Curvature => 2.0 * LEAST_DELTA / most.sqrt(),
                };
                Axis {
                    delta: delta.min(width / 4.0),
                    most_delta: width / 4.0,
                    curvature: most / 2.0,
                    variance: most * most / 4.0,
                    location: space.scale[j].min(width).powi(2),
                    most_location: space.scale[j].min(width).powi(2),
                    most,
                    least: (LEAST_CURVATURE * most).max(space.precision[j]).min(most),
                    path: Vec::new(),
                    noise: 0.0,
                }
            })
            .collect();
        let sweeps = if purpose == Purpose::Mode { MODE_SWEEPS } else { CURVATURE_SWEEPS };
        let weights: Vec<f64> = (0..sweeps).map(|s| GROWTH.powi(s as i32)).collect();
        let sum: f64 = weights.iter().sum();
        let price = weights.iter().map(|w| mu_squared * w / sum).collect();
        let patterns = Patterns::new(&u);
        Self { purpose, axes, patterns, u, price, units: vec![PrivacyUnit::default()], sweep: 0, turn: 0, pending: None }
    }

    /// Moves the search to another starting point.
    pub(crate) fn at(self, u: Vec<f64>) -> Self {
        Self { u, ..self }
    }

    /// Sets the parties' units of privacy: the noise is sized for the party at which a query costs most.
    pub(crate) fn priced_for(self, units: impl Iterator<Item = PrivacyUnit>) -> Self {
        Self { units: units.collect(), ..self }
    }

    /// Returns the present direction: its axis and its unit vector.
    fn current(&mut self) -> (&mut Axis, Vec<f64>) {
        let patterns = self.patterns.active.len();
        if let Some(Pattern { axis, direction }) = self.patterns.active.get_mut(self.turn) {
            return (axis, direction.clone());
        }
        let j = self.turn - patterns;
        let mut direction = vec![0.0; self.u.len()];
        direction[j] = 1.0;
        (&mut self.axes[j], direction)
    }

    /// Returns the two paired queries of the present direction.
    ///
    /// Near the box's edge their centre moves inside as far as δ requires; u itself stays.
    pub(crate) fn queries(&mut self, spec: &JobSpec, space: &Space, model: &dyn Model) -> Result<Vec<Query>, SamplerError> {
        let mut halvings = 0;
        loop {
            let u = self.u.clone();
            let (axis, direction) = self.current();
            let pair = pair(&u, &direction, axis.delta, space);
            let [from, up, down] = [&pair.base, &pair.up, &pair.down].map(|u| space.theta_inside(spec, u));
            match self.noise(spec, model, &from, [&up, &down]) {
                // The bound of a long step, and with it the noise, may exceed the lattice's range; both shrink with δ.
                Err(_) if halvings < HALVINGS => {
                    self.current().0.delta /= 2.0;
                    halvings += 1;
                }
                noise => {
                    let noise = noise?;
                    self.pending = Some(pair);
                    let query = |chain, to| Query { chain, kind: QueryKind::Ratio, from: from.clone(), to, noise };
                    return Ok(vec![query(0, up), query(1, down)]);
                }
            }
        }
    }

    /// Returns the noise at which a query of the present sweep costs its planned price; at least the job's own.
    fn noise(&self, spec: &JobSpec, model: &dyn Model, from: &[f64], to: [&[f64]; 2]) -> Result<NoiseScale, SamplerError> {
        let mut sensitivity = 0.0_f64;
        for unit in &self.units {
            for to in to {
                let part = contribution(model, &spec.privacy, *unit, from, to)?;
                sensitivity = sensitivity.max(unit.adjacency.factor() as f64 * part.sensitivity.units() as f64);
            }
        }
        let queries = 2.0 * (self.u.len() + self.patterns.active.len()) as f64;
        let sd = sensitivity * STEP / (self.price[self.sweep] / queries).sqrt();
        Ok(NoiseScale::from_sd(sd.max(spec.privacy.noise.sd()))?)
    }

    /// Processes the two noisy log likelihood ratios: fits the parabola, takes a step, resizes δ.
    pub(crate) fn absorb(&mut self, spec: &JobSpec, space: &Space, queries: &[Query], ratios: &[f64]) {
        let ([up, down], [r_up, r_down], Some(pair)) = (queries, ratios, self.pending.take()) else { return };
        let log_prior = |u: &[f64], theta: &[f64]| space.log_prior(spec, u, theta);
        let base = log_prior(&pair.base, &up.from);
        let rise = r_up + log_prior(&pair.up, &up.to) - base;
        let fall = r_down + log_prior(&pair.down, &down.to) - base;
        let variance = spec.parties.len() as f64 * up.noise.variance();
        let growth = self.price.get(self.sweep + 1).map_or(1.0, |next| next / self.price[self.sweep]);
        let (purpose, before) = (self.purpose, self.u.clone());
        let (axis, direction) = self.current();
        let delta = axis.delta;
        axis.learn_curvature(-(rise + fall) / (delta * delta), 2.0 * variance / delta.powi(4));
        let mut step = 0.0;
        if purpose == Purpose::Mode {
            let newton = (rise - fall) / (2.0 * delta) / axis.curvature;
            let offset: f64 = direction.iter().zip(pair.base.iter().zip(&before)).map(|(d, (b, u))| d * (b - u)).sum();
            step = axis.step(offset + newton, variance);
        }
        axis.resize(step.abs(), variance / growth);
        for ((u, d), box_) in self.u.iter_mut().zip(&direction).zip(&space.boxes) {
            *u = (*u + step * d).clamp(box_.min, box_.max);
        }
        self.next_turn(step, space);
    }

    /// Ends a step along the present direction and continues with the next one.
    fn next_turn(&mut self, step: f64, space: &Space) {
        match self.turn.checked_sub(self.patterns.active.len()) {
            Some(j) => self.axes[j].path.push(self.u[j]),
            None => pattern::increase_errors(&mut self.axes, &self.patterns.active[self.turn], step),
        }
        self.turn += 1;
        if self.turn == self.axes.len() + self.patterns.active.len() {
            self.turn = 0;
            self.sweep += 1;
            if self.purpose == Purpose::Mode {
                self.patterns.end_sweep(&self.axes, &self.u, space);
            }
        } else if self.turn == self.patterns.active.len() {
            self.patterns.begin_coordinates(&self.u);
        }
    }

    /// Returns the result after the last sweep.
    pub(crate) fn found(&self) -> Option<Found> {
        (self.sweep == self.price.len()).then(|| Found {
            purpose: self.purpose,
            u: self.u.clone(),
            sd: self.axes.iter().map(Axis::sd).collect(),
            error_sd: self
                .axes
                .iter()
                .zip(self.patterns.variances())
                .map(|(axis, variance)| libm::hypot(axis.error_sd(), variance.sqrt()))
                .collect(),
        })
    }
}

/// Returns the coordinates of a pair of queries at distance `delta` along `direction`, inside the box.
fn pair(u: &[f64], direction: &[f64], delta: f64, space: &Space) -> Pair {
    let reach: Vec<f64> = direction.iter().map(|d| delta * d.abs()).collect();
    let base: Vec<f64> = u
        .iter()
        .zip(reach.iter().zip(&space.boxes))
        .map(|(u, (reach, box_))| if *reach == 0.0 { *u } else { u.clamp(box_.min + reach, box_.max - reach) })
        .collect();
    let side = |sign: f64| {
        let moved = base.iter().zip(direction).zip(&space.boxes);
        moved.map(|((b, d), box_)| (b + sign * delta * d).clamp(box_.min, box_.max)).collect()
    };
    let (up, down) = (side(1.0), side(-1.0));
    Pair { base, up, down }
}
