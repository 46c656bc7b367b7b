//! One chain: its place and momentum, its own random stream, and the step that it is in.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::law;
use super::momenta::momenta;
use super::moves::{Kicked, Moves, Question};
use super::place::{Field, Middle, Place, Slopes, drifted};
use super::repeats::Asked;
use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::noisy_statistics::scores::plain;
use conclave_common::job::HmcTest;
use conclave_common::query::{Draw, Query};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::GRADIENT_SCALE;

/// How often, in steps, a momentum is drawn afresh. It is drawn without a look at anything, and so nothing changes but that no two places
/// can throw a chain to and fro between them for ever.
const REFRESHED: f64 = 0.02;
/// A remainder that may be beyond this is no answer: noise that hides it hides everything, and such a step is rejected unasked. The bound is that
/// of the way back, too.
const MOST_REMAINDER: f64 = 0.1;

/// The end of a step, of which the remainder is asked.
struct End {
    place: Place,
    momentum: Vec<f64>,
    middle: Vec<f64>,
    /// The second part of the question.
    numbers: Vec<f64>,
    /// What the prior's log ratio is beyond its slope.
    prior: f64,
    /// The variance of the noise that the test is asked with.
    variance: f64,
}

enum Stage {
    Between,
    Middle(Box<Middle>),
    End(Box<End>),
}

pub(crate) struct Walker {
    id: u32,
    rng: ChaCha20Rng,
    at: Place,
    momentum: Vec<f64>,
    stage: Stage,
    asked: Asked,
    accepted: bool,
    log_alpha: f64,
    /// The variance of the noise of the last step's test; `None` where it had none.
    tested: Option<f64>,
}

impl Walker {
    /// A chain near the mean of what was found, whose error has this covariance in `u`, or at `start` where the job gives one.
    pub(crate) fn new(field: &Field<'_>, id: u32, error: &Matrix, start: Option<&[f64]>) -> Self {
        let sampler = &field.target.spec.sampler;
        let mut rng = ChaCha20Rng::seed_from_u64(sampler.seed);
        rng.set_stream(u64::from(id));
        let at = Place::first(field, &mut rng, error, start);
        let momentum = momenta(&mut rng, at.u.len(), field.settings.step);
        Self {
            id,
            rng,
            at,
            momentum,
            stage: Stage::Between,
            asked: Asked::default(),
            accepted: false,
            log_alpha: f64::NEG_INFINITY,
            tested: None,
        }
    }

    fn reject(&mut self, log_alpha: f64) {
        self.momentum.iter_mut().for_each(|p| *p = -*p);
        (self.accepted, self.log_alpha, self.tested) = (false, log_alpha, None);
    }

    fn take(&mut self, (place, momentum): (Place, Vec<f64>), log_alpha: f64) {
        (self.at, self.momentum) = (place, momentum);
        (self.accepted, self.log_alpha) = (true, log_alpha);
    }

    /// Where the step ends; `None` beyond the box, which is part of the prior, and where no bound says what a step leaves.
    fn end(&self, field: &Field<'_>, middle: &Middle, u: Vec<f64>) -> Option<Place> {
        let bounded = |place: &Place| {
            let bound = field.scores.remainder_bound([&self.at.theta, &middle.theta, &place.theta]);
            field.settings.test == HmcTest::None || bound.is_some_and(|bound| bound <= MOST_REMAINDER)
        };
        Place::of(field, u).filter(bounded)
    }
}

impl Moves for Walker {
    /// `None` where the middle lies too far outside the box to be asked about: then the momentum is turned round, and the step is over.
    fn question(&mut self, field: &Field<'_>, _first: bool) -> Option<Query> {
        let step = field.settings.step;
        let refreshed = self.rng.random::<f64>() < REFRESHED;
        if refreshed {
            self.momentum = momenta(&mut self.rng, self.at.u.len(), step);
        }
        let Some(middle) = Middle::of(field, drifted(&self.at.u, &self.momentum, step)) else {
            self.reject(f64::NEG_INFINITY);
            return None;
        };
        let query = middle.question(field, self.id);
        self.stage = Stage::Middle(Box::new(middle));
        Some(query)
    }

    /// The kick, and with it where the step ends.
    fn kick(&mut self, field: &Field<'_>, totals: &[i128], released: Vec<Vec<i64>>) -> Option<Kicked> {
        let Field { coordinates, settings, .. } = field;
        let Stage::Middle(middle) = std::mem::replace(&mut self.stage, Stage::Between) else { return None };
        let Slopes { slope, score, variances } = middle.told(field, totals);
        let momentum = law::kick(settings.step, &self.momentum, &slope, &variances);
        let kicked = Kicked {
            from: self.at.u.clone(),
            slope,
            momentum: self.momentum.clone(),
            middle: coordinates.plain(&middle.u),
            score,
            variances,
            repeated: self.asked.note(&middle.u, released),
            at_rest: true,
        };
        let Some(place) = self.end(field, &middle, drifted(&middle.u, &momentum, settings.step)) else {
            self.reject(f64::NEG_INFINITY);
            return Some(kicked);
        };
        if settings.test == HmcTest::None {
            self.take((place, momentum), 0.0);
            self.tested = Some(0.0);
            return Some(kicked);
        }
        let Middle { theta, at, numbers, prior_slope, .. } = *middle;
        let half = 0.5 * settings.step;
        let by: Vec<f64> = self.momentum.iter().zip(&momentum).map(|(p, q)| half * (p + q)).collect();
        let by = coordinates.step(&by);
        let weights = at.frame.inverse.transposed().apply(&by).into_iter().map(|w| plain(w / GRADIENT_SCALE));
        let constant = if coordinates.centred > 0.0 { plain(dot(&at.frame.centre, &by)) } else { 0.0 };
        let prior = place.log_prior - self.at.log_prior - dot(&prior_slope, &by);
        let numbers = numbers.into_iter().chain(weights).chain([constant]).collect();
        self.stage = Stage::End(Box::new(End { place, momentum, middle: theta, numbers, prior, variance: 0.0 }));
        Some(kicked)
    }

    /// For what the step's gradient leaves of its log ratio.
    fn test(&self) -> Option<Question> {
        let Stage::End(end) = &self.stage else { return None };
        let from = [&self.at.theta[..], &end.middle, &end.place.theta].concat();
        Some(Question { kind: QueryKind::Remainder { parameters: end.middle.len() as u32 }, from, to: end.numbers.clone() })
    }

    fn tested_with(&mut self, variance: f64) {
        if let Stage::End(end) = &mut self.stage {
            end.variance = variance;
        }
    }

    fn decide(&mut self, step: f64, remainder: f64) {
        let Stage::End(end) = std::mem::replace(&mut self.stage, Stage::Between) else { return };
        let log_alpha = law::log_acceptance(step, remainder + end.prior, end.variance, (&self.momentum, &end.momentum));
        // `libm`, so that a replay on another machine decides alike.
        if libm::log(1.0 - self.rng.random::<f64>()) < log_alpha {
            self.take((end.place, end.momentum), log_alpha);
        } else {
            self.reject(log_alpha);
        }
        self.tested = Some(end.variance);
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
