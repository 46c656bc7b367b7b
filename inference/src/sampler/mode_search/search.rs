//! A search finds the posterior's mode before the chains start, from released ratios alone.
//!
//! Chains that each walk from a distant start spend the budget on the way, and end it far from the mode
//! with an R-hat that can look good. So one shared search goes first, in the unconstrained coordinates that
//! the chains walk in. Coordinate by coordinate it asks two paired queries, (u, u ± δ e_j); a parabola
//! through the two answers gives slope and curvature, a Newton step follows, damped by how well u is known
//! already against how noisy the answer is (a scalar Kalman filter), and δ shrinks from the prior's scale
//! to a few posterior standard deviations. Each query has a noise scale of its own, sized so that it costs
//! a planned share of the budget, whatever δ is.
//!
//! Where coordinates are correlated, such a search creeps along a valley: sweep after sweep it moves the
//! same way. Then that way itself becomes one more direction of the search ([`Pattern`]), with its own
//! parabola, δ and bound.

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

/// Sweeps over all coordinates of a search for the mode; early ones are cheap and coarse.
const MODE_SWEEPS: u32 = 10;
/// Sweeps that only measure curvature.
const CURVATURE_SWEEPS: u32 = 3;
/// Each sweep may spend this many times what the one before it did.
const GROWTH: f64 = 1.6;
/// How often δ is halved to bring a query's noise into range.
const HALVINGS: u32 = 64;

/// What a search found.
pub(crate) struct Found {
    pub purpose: Purpose,
    /// The place, in coordinates.
    pub u: Vec<f64>,
    /// Posterior sd of each coordinate given the others.
    pub sd: Vec<f64>,
    /// Standard error of each coordinate of `u`: noise, and how far it was from standing still.
    pub error_sd: Vec<f64>,
}

/// The coordinates of a pair of queries.
struct Pair {
    base: Vec<f64>,
    up: Vec<f64>,
    down: Vec<f64>,
}

/// A search for the mode, or for the curvature around a given place, as a state machine.
pub(crate) struct ModeSearch {
    purpose: Purpose,
    u: Vec<f64>,
    axes: Vec<Axis>,
    patterns: Patterns,
    /// mu² that one party spends in each sweep.
    price: Vec<f64>,
    /// What the parties protect: the noise is sized for the one at which a query costs most.
    units: Vec<PrivacyUnit>,
    sweep: usize,
    /// Which direction of the sweep: the patterns first, then the coordinates.
    turn: usize,
    asked: Option<Pair>,
}

impl ModeSearch {
    /// A search that may spend `mu_squared` at each party, from the job's start or the priors' centres.
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
        Self { purpose, axes, patterns, u, price, units: vec![PrivacyUnit::default()], sweep: 0, turn: 0, asked: None }
    }

    /// The search from another point.
    pub(crate) fn at(self, u: Vec<f64>) -> Self {
        Self { u, ..self }
    }

    /// The search for parties that protect these units: its noise is sized for the one at which a query
    /// costs most.
    pub(crate) fn priced_for(self, units: impl Iterator<Item = PrivacyUnit>) -> Self {
        Self { units: units.collect(), ..self }
    }

    /// The present direction: its axis, and its vector where it is not a coordinate's own.
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

    /// The two paired queries of the present direction.
    ///
    /// Near the box's edge they are centred as far inside as δ asks; u itself stays.
    pub(crate) fn queries(&mut self, spec: &JobSpec, space: &Space, model: &dyn Model) -> Result<Vec<Query>, SamplerError> {
        let mut halvings = 0;
        loop {
            let u = self.u.clone();
            let (axis, direction) = self.current();
            let pair = pair(&u, &direction, axis.delta, space);
            let [from, up, down] = [&pair.base, &pair.up, &pair.down].map(|u| space.theta_inside(spec, u));
            match self.noise(spec, model, &from, [&up, &down]) {
                // A long step's bound, and with it the noise, may be beyond what the lattice holds; both
                // shrink with δ.
                Err(_) if halvings < HALVINGS => {
                    self.current().0.delta /= 2.0;
                    halvings += 1;
                }
                noise => {
                    let noise = noise?;
                    self.asked = Some(pair);
                    let query = |chain, to| Query { chain, kind: QueryKind::Ratio, from: from.clone(), to, noise };
                    return Ok(vec![query(0, up), query(1, down)]);
                }
            }
        }
    }

    /// The noise at which a query of the present sweep costs what was planned; never below the job's own.
    fn noise(&self, spec: &JobSpec, model: &dyn Model, from: &[f64], to: [&[f64]; 2]) -> Result<NoiseScale, SamplerError> {
        let mut dearest = 0.0_f64;
        for unit in &self.units {
            for to in to {
                let part = contribution(model, &spec.privacy, *unit, from, to)?;
                dearest = dearest.max(unit.adjacency.factor() as f64 * part.sensitivity.units() as f64);
            }
        }
        let queries = 2.0 * (self.u.len() + self.patterns.active.len()) as f64;
        let sd = dearest * STEP / (self.price[self.sweep] / queries).sqrt();
        Ok(NoiseScale::from_sd(sd.max(spec.privacy.noise.sd()))?)
    }

    /// Takes the two noisy log likelihood ratios: fits the parabola, steps, resizes δ.
    pub(crate) fn absorb(&mut self, spec: &JobSpec, space: &Space, queries: &[Query], ratios: &[f64]) {
        let ([up, down], [r_up, r_down], Some(pair)) = (queries, ratios, self.asked.take()) else { return };
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

    /// Ends a step along the present direction and turns to the next one.
    fn next_turn(&mut self, step: f64, space: &Space) {
        match self.turn.checked_sub(self.patterns.active.len()) {
            Some(j) => self.axes[j].path.push(self.u[j]),
            None => pattern::unsettle(&mut self.axes, &self.patterns.active[self.turn], step),
        }
        self.turn += 1;
        if self.turn == self.axes.len() + self.patterns.active.len() {
            self.turn = 0;
            self.sweep += 1;
            if self.purpose == Purpose::Mode {
                self.patterns.sweep_done(&self.axes, &self.u, space);
            }
        } else if self.turn == self.patterns.active.len() {
            self.patterns.coordinates_begin(&self.u);
        }
    }

    /// The outcome, once the last sweep is answered.
    pub(crate) fn found(&self) -> Option<Found> {
        (self.sweep == self.price.len()).then(|| Found {
            purpose: self.purpose,
            u: self.u.clone(),
            sd: self.axes.iter().map(Axis::sd).collect(),
            error_sd: self
                .axes
                .iter()
                .zip(self.patterns.variances())
                .map(|(axis, variance)| axis.error_sd().hypot(variance.sqrt()))
                .collect(),
        })
    }
}

/// The coordinates of a pair of queries at distance `delta` along `direction`, inside the box.
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
