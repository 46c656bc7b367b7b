//! One chain: its state and momentum, and its present step.

use rand::RngExt;

use super::law;
use super::repeats::QueryHistory;
use super::{ChainState, Field, Kicked, Middle, Moves, Place, Slopes, TestQuery, drifted, momenta};
use crate::sampler::noisy_statistics::scores::plain;
use crate::sampler::{Matrix, dot};
use conclave_common::job::HmcTest;
use conclave_common::query::Query;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::GRADIENT_SCALE;

/// Probability per step that the momentum is drawn afresh. The draw is independent of everything else, so it only prevents a
/// chain from moving back and forth between two places forever.
const REFRESHED: f64 = 0.02;
/// Largest useful bound on a remainder: noise that hides a larger one hides everything, so such a step is rejected without a
/// query. The reverse step has the same bound.
const MOST_REMAINDER: f64 = 0.1;

/// The end of a step, for which the remainder is released.
struct End {
    place: Place,
    momentum: Vec<f64>,
    middle: Vec<f64>,
    /// Second part of the query.
    numbers: Vec<f64>,
    /// The prior's log ratio minus its slope along the step.
    prior: f64,
}

enum Stage {
    Between,
    Middle(Box<Middle>),
    End(Box<End>),
}

pub(crate) struct Walker {
    chain: ChainState,
    momentum: Vec<f64>,
    stage: Stage,
    history: QueryHistory,
}

impl Walker {
    /// Starts a chain near the search's mean, whose error has this covariance in `u`, or at the job's `start`.
    pub(crate) fn new(field: &Field<'_>, id: u32, error: &Matrix, start: Option<&[f64]>) -> Self {
        let mut chain = ChainState::new(field, id, error, start);
        let momentum = momenta(&mut chain.rng, chain.at.u.len(), field.settings.step);
        Self { chain, momentum, stage: Stage::Between, history: QueryHistory::default() }
    }

    fn reverse(&mut self) {
        self.momentum.iter_mut().for_each(|p| *p = -*p);
    }

    /// Returns the end of the step; `None` outside the box, which is part of the prior, or without a bound on the step's
    /// remainder.
    fn end(&self, field: &Field<'_>, middle: &Middle, u: Vec<f64>) -> Option<Place> {
        let leverage = field.coordinates.leverage();
        let bounded = |place: &Place| {
            let points = [&self.chain.at.theta[..], &middle.theta, &place.theta];
            let bound = field.scores.remainder_bound(points, leverage.as_ref());
            field.settings.test == HmcTest::None || bound.is_some_and(|bound| bound <= MOST_REMAINDER)
        };
        Place::of(field, u).filter(bounded)
    }
}

impl Moves for Walker {
    fn state(&self) -> &ChainState {
        &self.chain
    }

    fn state_mut(&mut self) -> &mut ChainState {
        &mut self.chain
    }

    /// Returns `None` if the midpoint is too far outside the box for a query: then the momentum is reversed, and the step ends.
    fn gradient_query(&mut self, field: &Field<'_>, _first: bool) -> Option<Query> {
        let step = field.settings.step;
        let ChainState { rng, at, .. } = &mut self.chain;
        if rng.random::<f64>() < REFRESHED {
            self.momentum = momenta(rng, at.u.len(), step);
        }
        let Some(middle) = Middle::of(field, drifted(&at.u, &self.momentum, step)) else {
            self.reverse();
            self.chain.reject();
            return None;
        };
        let query = middle.gradient_query(field, self.chain.id);
        self.stage = Stage::Middle(Box::new(middle));
        Some(query)
    }

    /// Applies the kick, which determines the step's end.
    fn kick(&mut self, field: &Field<'_>, totals: &[i128], released: Vec<Vec<i64>>) -> Option<Kicked> {
        let Field { coordinates, settings, .. } = field;
        let Stage::Middle(middle) = std::mem::replace(&mut self.stage, Stage::Between) else { return None };
        let Slopes { slope, score, variances } = middle.slopes(field, totals);
        let momentum = law::kick(settings.step, &self.momentum, &slope, &variances);
        let kicked = Kicked {
            from: self.chain.at.u.clone(),
            slope,
            momentum: self.momentum.clone(),
            middle: coordinates.plain(&middle.u),
            score,
            variances,
            repeated: self.history.note(&middle.u, released),
            at_rest: true,
        };
        let Some(place) = self.end(field, &middle, drifted(&middle.u, &momentum, settings.step)) else {
            self.reverse();
            self.chain.reject();
            return Some(kicked);
        };
        if settings.test == HmcTest::None {
            (self.chain.at, self.momentum) = (place, momentum);
            self.chain.accept();
            return Some(kicked);
        }
        let Middle { theta, at, numbers, prior_slope, .. } = *middle;
        let half = 0.5 * settings.step;
        let by: Vec<f64> = self.momentum.iter().zip(&momentum).map(|(p, q)| half * (p + q)).collect();
        let by = coordinates.step(&by);
        let weights = at.frame.inverse.transposed().apply(&by).into_iter().map(|w| plain(w / GRADIENT_SCALE));
        let constant = if coordinates.centred > 0.0 { plain(dot(&at.frame.centre, &by)) } else { 0.0 };
        let prior = place.log_prior - self.chain.at.log_prior - dot(&prior_slope, &by);
        let numbers = numbers.into_iter().chain(weights).chain([constant]).chain(coordinates.trace()).collect();
        self.stage = Stage::End(Box::new(End { place, momentum, middle: theta, numbers, prior }));
        Some(kicked)
    }

    /// Asks for the remainder of the step's log ratio beyond its gradient.
    fn test(&self) -> Option<TestQuery> {
        let Stage::End(end) = &self.stage else { return None };
        let from = [&self.chain.at.theta[..], &end.middle, &end.place.theta].concat();
        Some(TestQuery { kind: QueryKind::Remainder { parameters: end.middle.len() as u32 }, from, to: end.numbers.clone() })
    }

    fn decide(&mut self, step: f64, remainder: f64) {
        let Stage::End(end) = std::mem::replace(&mut self.stage, Stage::Between) else { return };
        let momenta = (&self.momentum[..], &end.momentum[..]);
        let log_alpha = law::log_acceptance(step, remainder + end.prior, self.chain.test_variance, momenta);
        if self.chain.decides(log_alpha) {
            (self.chain.at, self.momentum) = (end.place, end.momentum);
        } else {
            self.reverse();
        }
    }
}
