//! One chain: its place and momentum, its own random stream, and the step that it is in.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::coordinates::{At, Coordinates};
use super::law;
use super::momenta::{momenta, normals};
use super::repeats::Asked;
use super::settings::Settings;
use crate::mechanism::QueryKind;
use crate::model::{GRADIENT_SCALE, ScoreModel};
use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::noisy_statistics::scores::{frame_numbers, plain};
use crate::sampler::round::{Draw, Query};
use crate::sampler::target::Target;

/// How often, in steps, a momentum is drawn afresh. It is drawn without a look at anything, and so nothing changes but that no two places
/// can throw a chain to and fro between them for ever.
const REFRESHED: f64 = 0.02;
/// How often a starting value is drawn anew when it falls outside the box, before the search's own answer is taken.
const START_TRIES: usize = 100;

/// A remainder that may be beyond this is no answer: noise that hides it hides everything, and such a step is rejected unasked. The bound is that
/// of the way back, too.
const MOST_REMAINDER: f64 = 0.1;

/// What all chains of a job walk in.
pub(crate) struct Field<'a> {
    pub(crate) target: &'a Target,
    pub(crate) scores: &'a dyn ScoreModel,
    pub(crate) coordinates: &'a Coordinates,
    pub(crate) settings: &'a Settings,
    pub(crate) parties: usize,
}

/// A place: theta is kept beside it, so that a step's end has the bits with which it was tested.
#[derive(Debug, Clone)]
struct Place {
    u: Vec<f64>,
    theta: Vec<f64>,
    log_prior: f64,
}

impl Place {
    /// `None` outside the box, or where the prior leaves nothing.
    fn of(field: &Field<'_>, u: Vec<f64>) -> Option<Self> {
        let Target { spec, space, .. } = field.target;
        let coordinates = field.coordinates.plain(&u);
        let theta = space.theta(&coordinates);
        if !spec.in_support(&theta) {
            return None;
        }
        let log_prior = space.log_prior(spec, &coordinates, &theta);
        log_prior.is_finite().then_some(Self { u, theta, log_prior })
    }
}

/// The middle of a step, of which the gradient is asked.
struct Middle {
    u: Vec<f64>,
    theta: Vec<f64>,
    at: At,
    numbers: Vec<f64>,
    prior_slope: Vec<f64>,
}

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

/// What a chain was told at the middle of a step.
pub(crate) struct Kicked {
    /// Where the step began.
    pub(crate) from: Vec<f64>,
    /// The released slope of the log posterior at the middle.
    pub(crate) slope: Vec<f64>,
    /// The momentum before.
    pub(crate) momentum: Vec<f64>,
    /// The middle, in the model's coordinates.
    pub(crate) middle: Vec<f64>,
    /// The slope of the log likelihood alone, with the variances of its noise.
    pub(crate) score: Vec<f64>,
    pub(crate) variances: Vec<f64>,
    /// Every party's answers where the middle was asked about before: those, and these.
    pub(crate) repeated: Option<[Vec<Vec<i64>>; 2]>,
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
        let d = field.coordinates.dimension();
        let spread = factor(&Matrix::identity(d).plus(error, 1.0));
        let inside = |u: Vec<f64>| {
            let Target { spec, space, .. } = field.target;
            let theta = space.theta_inside(spec, &field.coordinates.plain(&u));
            let log_prior = space.log_prior(spec, &space.coordinates(&theta), &theta);
            Place { u, theta, log_prior }
        };
        let mut tries = (0..START_TRIES).map(|_| spread.lower().apply(&normals(&mut rng, d)));
        let at = match start {
            Some(theta) => {
                let coordinates = field.target.space.coordinates(theta);
                let log_prior = field.target.space.log_prior(&field.target.spec, &coordinates, theta);
                Place { u: field.coordinates.place(&coordinates), theta: theta.to_vec(), log_prior }
            }
            None => tries.find_map(|u| Place::of(field, u)).unwrap_or_else(|| inside(vec![0.0; d])),
        };
        let momentum = momenta(&mut rng, d, field.settings.step);
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

    /// Begins a step: the question for the gradient at its middle. `None` where the middle lies too far outside the box to be asked about:
    /// then the momentum is turned round, and the step is over.
    pub(crate) fn begin(&mut self, field: &Field<'_>) -> Option<Query> {
        let Field { target, scores, coordinates, settings, .. } = field;
        let refreshed = self.rng.random::<f64>() < REFRESHED;
        if refreshed {
            self.momentum = momenta(&mut self.rng, self.at.u.len(), settings.step);
        }
        let u = self.drifted(&self.at.u, &self.momentum, settings.step);
        let plain_middle = coordinates.plain(&u);
        let theta = target.space.theta(&plain_middle);
        let at = Some(()).filter(|()| target.spec.in_wider_support(&theta)).and_then(|()| coordinates.at(*scores, &theta));
        let Some(at) = at else {
            self.reject(f64::NEG_INFINITY);
            return None;
        };
        let numbers = frame_numbers(coordinates.coding(), &at.frame);
        let prior_slope = coordinates.prior_slope(target, &plain_middle);
        let query = Query {
            chain: self.id,
            kind: QueryKind::Gradient { parameters: theta.len() as u32 },
            from: theta.clone(),
            to: numbers.clone(),
            noise: settings.noise,
        };
        self.stage = Stage::Middle(Box::new(Middle { u, theta, at, numbers, prior_slope }));
        Some(query)
    }

    /// Takes the gradient's totals, and what each party released of them: the kick, and with it where the step ends.
    pub(crate) fn kick(&mut self, field: &Field<'_>, totals: &[i128], released: Vec<Vec<i64>>) -> Option<Kicked> {
        let Field { coordinates, settings, parties, scores, .. } = field;
        let Stage::Middle(middle) = std::mem::replace(&mut self.stage, Stage::Between) else { return None };
        let Middle { u, theta, at, numbers, prior_slope } = *middle;
        let sums: Vec<f64> = totals.iter().map(|total| *total as f64 / GRADIENT_SCALE).collect();
        let score = at.frame.total(&sums, coordinates.centred);
        let slope: Vec<f64> = score.iter().zip(&prior_slope).map(|(data, prior)| data + prior).collect();
        let sd = settings.sd(*parties);
        let slope = coordinates.slope(&slope);
        let variances = coordinates.noise(at.width, sd);
        let momentum = law::kick(settings.step, &self.momentum, &slope, &variances);
        let kicked = Kicked {
            from: self.at.u.clone(),
            slope,
            momentum: self.momentum.clone(),
            middle: coordinates.plain(&u),
            score: coordinates.slope(&score),
            variances,
            repeated: self.asked.note(&u, released),
        };
        let end = self.drifted(&u, &momentum, settings.step);
        let bounded = |place: &Place| {
            let bound = scores.remainder_bound([&self.at.theta, &theta, &place.theta]);
            bound.is_some_and(|bound| bound <= MOST_REMAINDER)
        };
        let Some(place) = Place::of(field, end).filter(bounded) else {
            // The box is part of the prior.
            self.reject(f64::NEG_INFINITY);
            return Some(kicked);
        };
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

    /// The points and the numbers of the question for the step's remainder, where there is one to ask.
    pub(crate) fn test(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let Stage::End(end) = &self.stage else { return None };
        Some(([&self.at.theta[..], &end.middle, &end.place.theta].concat(), end.numbers.clone()))
    }

    /// Takes note of the variance of the noise, over all parties, that the remainder is asked with.
    pub(crate) fn tested_with(&mut self, variance: f64) {
        if let Stage::End(end) = &mut self.stage {
            end.variance = variance;
        }
    }

    /// Takes the remainder over all parties, in log-likelihood units, and accepts or rejects the step.
    pub(crate) fn decide(&mut self, step: f64, remainder: f64) {
        let Stage::End(end) = std::mem::replace(&mut self.stage, Stage::Between) else { return };
        let log_alpha = law::log_acceptance(step, remainder + end.prior, end.variance, (&self.momentum, &end.momentum));
        // `libm`, so that a replay on another machine decides alike.
        if libm::log(1.0 - self.rng.random::<f64>()) < log_alpha {
            (self.at, self.momentum) = (end.place, end.momentum);
            (self.accepted, self.log_alpha) = (true, log_alpha);
        } else {
            self.reject(log_alpha);
        }
        self.tested = Some(end.variance);
    }

    /// The last step's log acceptance ratio and the variance of its test's noise; `None` where it was rejected unasked.
    pub(crate) fn tested(&self) -> Option<(f64, f64)> {
        self.tested.map(|variance| (self.log_alpha, variance))
    }

    fn reject(&mut self, log_alpha: f64) {
        self.momentum.iter_mut().for_each(|p| *p = -*p);
        (self.accepted, self.log_alpha, self.tested) = (false, log_alpha, None);
    }

    fn drifted(&self, from: &[f64], momentum: &[f64], step: f64) -> Vec<f64> {
        from.iter().zip(momentum).map(|(u, p)| u + 0.5 * step * p).collect()
    }

    /// The state after the last step.
    pub(crate) fn draw(&self, warmup: bool, iteration: u64) -> Draw {
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
