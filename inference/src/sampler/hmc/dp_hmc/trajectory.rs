//! One chain: its state, and its present trajectory.

use super::law;
use crate::sampler::hmc::{ChainState, Field, Kicked, Middle, Moves, Place, Slopes, TestQuery, drifted};
use crate::sampler::{Matrix, normals};
use conclave_common::query::Query;
use conclave_privacy::mechanism::QueryKind;

/// Largest useful bound of one record's contribution to a ratio, in log-likelihood units: noise that hides a larger one hides
/// everything. Such a trajectory has left the region where its steps are stable, and is rejected without a query. The reverse
/// trajectory has the same bound.
const MOST_RATIO: f64 = 8.0;

enum Stage {
    /// Between two trajectories, or in one that is already rejected.
    Between,
    /// At the end of a kick's drifts, with the number of kicks so far.
    At(Vec<f64>, u32),
    /// Waiting for the gradient at a midpoint, with the number of kicks so far.
    Middle(Vec<f64>, u32, Box<Middle>),
    /// At the end, for which the ratio is released.
    End(Place),
}

pub(crate) struct Trajectory {
    chain: ChainState,
    /// Momentum at the start of the present trajectory, and its present value.
    momenta: (Vec<f64>, Vec<f64>),
    stage: Stage,
}

impl Trajectory {
    /// Starts a chain near the search's mean, whose error has this covariance in `u`, or at the job's `start`.
    pub(crate) fn new(field: &Field<'_>, id: u32, error: &Matrix, start: Option<&[f64]>) -> Self {
        let chain = ChainState::new(field, id, error, start);
        Self { chain, momenta: (Vec::new(), Vec::new()), stage: Stage::Between }
    }
}

// A momentum need not be reversed at a rejection, because it is drawn afresh before its next use.
impl Moves for Trajectory {
    fn state(&self) -> &ChainState {
        &self.chain
    }

    fn state_mut(&mut self) -> &mut ChainState {
        &mut self.chain
    }

    /// Returns `None` if a midpoint is too far outside the box for a query, which also holds for the reverse trajectory: then the
    /// trajectory ends.
    fn gradient_query(&mut self, field: &Field<'_>, first: bool) -> Option<Query> {
        if first {
            let ChainState { rng, at, .. } = &mut self.chain;
            let fresh = normals(rng, at.u.len());
            self.momenta = (fresh.clone(), fresh);
            self.stage = Stage::At(at.u.clone(), 0);
        }
        let Stage::At(from, kicks) = std::mem::replace(&mut self.stage, Stage::Between) else { return None };
        let Some(middle) = Middle::of(field, drifted(&from, &self.momenta.1, field.settings.step)) else {
            self.chain.reject();
            return None;
        };
        let query = middle.gradient_query(field, self.chain.id);
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
        let bounded = |place: &Place| field.target.model.bound(&self.chain.at.theta, &place.theta) <= MOST_RATIO;
        match Place::of(field, to).filter(bounded) {
            Some(place) => self.stage = Stage::End(place),
            None => self.chain.reject(), // The box is part of the prior.
        }
        Some(kicked)
    }

    fn test(&self) -> Option<TestQuery> {
        let Stage::End(end) = &self.stage else { return None };
        Some(TestQuery { kind: QueryKind::Ratio, from: self.chain.at.theta.clone(), to: end.theta.clone() })
    }

    fn decide(&mut self, _step: f64, log_ratio: f64) {
        let Stage::End(place) = std::mem::replace(&mut self.stage, Stage::Between) else { return };
        let with_prior = log_ratio + place.log_prior - self.chain.at.log_prior;
        let log_alpha = law::log_acceptance(with_prior, self.chain.test_variance, (&self.momenta.0, &self.momenta.1));
        if self.chain.decides(log_alpha) {
            self.chain.at = place;
        }
    }
}
