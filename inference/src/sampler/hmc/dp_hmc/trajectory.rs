//! One chain: its place, its own random stream, and its present trajectory.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::law;
use crate::sampler::hmc::momenta::normals;
use crate::sampler::hmc::moves::{Kicked, Moves, TestQuery};
use crate::sampler::hmc::place::{Field, Middle, Place, Slopes, drifted};
use crate::sampler::matrix::Matrix;
use conclave_common::query::{Draw, Query};
use conclave_privacy::mechanism::QueryKind;

/// Largest useful bound of one record's contribution to a ratio, in log-likelihood units: noise that hides a larger one hides
/// everything. Such a trajectory has left the region where its steps are stable, and is rejected without a query. The reverse
/// trajectory has the same bound.
const MOST_RATIO: f64 = 8.0;

/// The end of a trajectory, for which the ratio is released.
struct End {
    place: Place,
    /// Variance of the noise of the test.
    variance: f64,
}

enum Stage {
    /// Between two trajectories, or in one that is already rejected.
    Between,
    /// At the end of a kick's drifts, with the number of kicks so far.
    At(Vec<f64>, u32),
    /// Waiting for the gradient at a midpoint, with the number of kicks so far.
    Middle(Vec<f64>, u32, Box<Middle>),
    End(Box<End>),
}

pub(crate) struct Trajectory {
    id: u32,
    rng: ChaCha20Rng,
    at: Place,
    /// Momentum at the start of the present trajectory, and its present value.
    momenta: (Vec<f64>, Vec<f64>),
    stage: Stage,
    accepted: bool,
    log_alpha: f64,
    /// Variance of the noise of the last test; `None` if there was none.
    tested: Option<f64>,
}

impl Trajectory {
    /// Starts a chain near the search's mean, whose error has this covariance in `u`, or at the job's `start`.
    pub(crate) fn new(field: &Field<'_>, id: u32, error: &Matrix, start: Option<&[f64]>) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(field.target.spec.sampler.seed);
        rng.set_stream(u64::from(id));
        let at = Place::first(field, &mut rng, error, start);
        let momenta = (Vec::new(), Vec::new());
        Self { id, rng, at, momenta, stage: Stage::Between, accepted: false, log_alpha: f64::NEG_INFINITY, tested: None }
    }

    /// Ends the trajectory at its start. Its momentum need not be reversed, because it is drawn afresh before its next use.
    fn reject(&mut self, log_alpha: f64) {
        self.stage = Stage::Between;
        (self.accepted, self.log_alpha, self.tested) = (false, log_alpha, None);
    }
}

impl Moves for Trajectory {
    /// Returns `None` if a midpoint is too far outside the box for a query, which also holds for the reverse trajectory: then the
    /// trajectory ends.
    fn gradient_query(&mut self, field: &Field<'_>, first: bool) -> Option<Query> {
        if first {
            let fresh = normals(&mut self.rng, self.at.u.len());
            self.momenta = (fresh.clone(), fresh);
            self.stage = Stage::At(self.at.u.clone(), 0);
        }
        let Stage::At(from, kicks) = std::mem::replace(&mut self.stage, Stage::Between) else { return None };
        let Some(middle) = Middle::of(field, drifted(&from, &self.momenta.1, field.settings.step)) else {
            self.reject(f64::NEG_INFINITY);
            return None;
        };
        let query = middle.gradient_query(field, self.id);
        self.stage = Stage::Middle(from, kicks, Box::new(middle));
        Some(query)
    }

    fn kick(&mut self, field: &Field<'_>, totals: &[i128], _released: Vec<Vec<i64>>) -> Option<Kicked> {
        let step = field.settings.step;
        let Stage::Middle(from, before, middle) = std::mem::replace(&mut self.stage, Stage::Between) else { return None };
        let Slopes { slope, score, variances } = middle.slopes(field, totals);
        let after = law::kick(step, &self.momenta.1, &slope);
        let to = drifted(&middle.u, &after, step);
        let kicked = Kicked {
            from,
            slope,
            momentum: std::mem::replace(&mut self.momenta.1, after),
            middle: field.coordinates.plain(&middle.u),
            score,
            variances,
            repeated: None, // A momentum that is drawn afresh leads to a new midpoint.
            at_rest: before == 0,
        };
        let kicks = before + 1;
        if kicks < field.settings.test.kicks() {
            self.stage = Stage::At(to, kicks);
            return Some(kicked);
        }
        let bounded = |place: &Place| field.target.model.bound(&self.at.theta, &place.theta) <= MOST_RATIO;
        match Place::of(field, to).filter(bounded) {
            Some(place) => self.stage = Stage::End(Box::new(End { place, variance: 0.0 })),
            None => self.reject(f64::NEG_INFINITY), // The box is part of the prior.
        }
        Some(kicked)
    }

    fn test(&self) -> Option<TestQuery> {
        let Stage::End(end) = &self.stage else { return None };
        Some(TestQuery { kind: QueryKind::Ratio, from: self.at.theta.clone(), to: end.place.theta.clone() })
    }

    fn tested_with(&mut self, variance: f64) {
        if let Stage::End(end) = &mut self.stage {
            end.variance = variance;
        }
    }

    fn decide(&mut self, _step: f64, log_ratio: f64) {
        let Stage::End(end) = std::mem::replace(&mut self.stage, Stage::Between) else { return };
        let End { place, variance } = *end;
        let with_prior = log_ratio + place.log_prior - self.at.log_prior;
        let log_alpha = law::log_acceptance(with_prior, variance, (&self.momenta.0, &self.momenta.1));
        // `libm` makes a replay on another machine decide in the same way.
        if libm::log(1.0 - self.rng.random::<f64>()) < log_alpha {
            self.at = place;
            (self.accepted, self.log_alpha) = (true, log_alpha);
        } else {
            self.reject(log_alpha);
        }
        self.tested = Some(variance);
    }

    fn tested(&self) -> Option<(f64, f64)> {
        self.tested.map(|variance| (self.log_alpha, variance))
    }

    fn draw(&self, warmup: bool, iteration: u64) -> Draw {
        Draw {
            chain: self.id,
            warmup,
            theta: self.at.theta.clone(),
            accepted: self.accepted,
            log_alpha: self.log_alpha,
            iteration,
        }
    }
}
