//! One chain: its state, its own random stream, and its pending query.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::law::State;
use super::settings::Settings;
use super::top_up::TopUp;
use crate::sampler::hmc::{At, Coordinates, Kicked, normals};
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::noisy_statistics::scores::frame_numbers;
use crate::sampler::target::Target;
use conclave_common::model::ScoreModel;
use conclave_common::query::{Draw, Query};
use conclave_privacy::pass::GRADIENT_SCALE;

/// Number of starting values that may fall outside the box before the search's own answer is used.
const START_TRIES: usize = 100;

/// The environment that all chains of a job share.
pub(crate) struct Field<'a> {
    pub(super) target: &'a Target,
    pub(crate) scores: &'a dyn ScoreModel,
    pub(crate) coordinates: &'a Coordinates,
    pub(crate) settings: &'a Settings,
    pub(crate) parties: usize,
}

/// A place that can be queried: inside the box, with a positive prior density and a public bound on a record's gradient.
struct Place {
    theta: Vec<f64>,
    at: At,
}

impl Place {
    fn of(field: &Field<'_>, u: &[f64]) -> Option<Self> {
        let Field { target, scores, coordinates, .. } = field;
        let theta = theta_of(target, coordinates, u)?;
        coordinates.at(*scores, &theta).map(|at| Self { theta, at })
    }
}

/// Returns theta of a place; `None` outside the box, or where the prior density is 0.
fn theta_of(target: &Target, coordinates: &Coordinates, u: &[f64]) -> Option<Vec<f64>> {
    let plain = coordinates.plain(u);
    let theta = target.space.theta(&plain);
    let inside = target.spec.in_support(&theta) && target.space.log_prior(&target.spec, &plain, &theta).is_finite();
    inside.then_some(theta)
}

/// A chain.
pub(crate) struct Walker {
    id: u32,
    rng: ChaCha20Rng,
    state: State,
    place: Place,
    /// Theta of the latest draw.
    draw: Vec<f64>,
    /// True if the last step moved the chain.
    moved: bool,
    /// Numbers of steps that left the box, of steps whose gradient had more noise than the law needs, and of all steps.
    pub(crate) turned: u64,
    pub(crate) exceeded: u64,
    pub(crate) made: u64,
}

impl Walker {
    /// Starts a chain near the search's mean, whose error has this covariance in `u`, or at the job's `start`; `None` if there is
    /// no bound on a record's gradient.
    pub(crate) fn new(field: &Field<'_>, id: u32, error: &Matrix, start: Option<&[f64]>) -> Option<Self> {
        let Target { spec, space, .. } = field.target;
        let mut rng = ChaCha20Rng::seed_from_u64(spec.sampler.seed);
        rng.set_stream(u64::from(id));
        let d = field.coordinates.dimension();
        let spread = factor(&Matrix::identity(d).plus(error, 1.0));
        let mut tries = (0..START_TRIES).map(|_| spread.lower().apply(&normals(&mut rng, d)));
        let (u, place) = match start {
            Some(theta) => {
                let at = field.coordinates.at(field.scores, theta)?;
                (field.coordinates.place(&space.coordinates(theta)), Place { theta: theta.to_vec(), at })
            }
            None => {
                let found = tries.find_map(|u| Place::of(field, &u).map(|place| (u, place)));
                found.or_else(|| {
                    let theta = space.theta_inside(spec, &field.coordinates.plain(&vec![0.0; d]));
                    let at = field.coordinates.at(field.scores, &theta)?;
                    Some((vec![0.0; d], Place { theta, at }))
                })?
            }
        };
        let momentum = normals(&mut rng, d);
        let state = State { u, momentum, thermostat: field.settings.pace.friction };
        let draw = place.theta.clone();
        Some(Self { id, rng, state, place, draw, moved: false, turned: 0, exceeded: 0, made: 0 })
    }

    /// Returns the query for the gradient at the chain's place.
    pub(crate) fn ask(&self, field: &Field<'_>) -> Query {
        let Place { theta, at } = &self.place;
        let Settings { kind, noise, .. } = *field.settings;
        let to = frame_numbers(field.coordinates.coding(), &at.frame);
        Query { chain: self.id, kind, from: theta.clone(), to, noise }
    }

    /// Processes the gradient's totals: takes the chain's step, and returns its observations.
    pub(crate) fn step(&mut self, field: &Field<'_>, totals: &[i128]) -> Kicked {
        let Field { target, coordinates, settings, parties, .. } = field;
        let at = &self.place.at;
        let sums: Vec<f64> = totals.iter().map(|total| *total as f64 / GRADIENT_SCALE / settings.probability).collect();
        let score = at.frame.total(&sums, coordinates.centred);
        let plain = coordinates.plain(&self.state.u);
        let prior = coordinates.prior_slope(target, &plain);
        let slope: Vec<f64> = score.iter().zip(&prior).map(|(data, prior)| data + prior).collect();
        let slope = coordinates.slope(&slope);
        let known = coordinates.noise(at.width, settings.sd(*parties));
        let public = TopUp::new(settings.law.as_ref(), &settings.variance, &known, settings.samples.as_ref());
        let noise = public.noise(&normals(&mut self.rng, slope.len()));
        let noisy: Vec<f64> = slope.iter().zip(&noise).map(|(g, e)| g + e).collect();
        let kicked = Kicked {
            from: self.state.u.clone(),
            slope,
            momentum: self.state.momentum.clone(),
            middle: plain,
            score: coordinates.slope(&score),
            variances: match &settings.samples {
                Some(samples) => known.iter().zip(samples.diagonal_entries()).map(|(known, more)| known + more).collect(),
                None => known,
            },
            repeated: None,
            at_rest: true,
        };
        self.made += 1;
        self.exceeded += u64::from(public.exceeded);
        self.moved(field, settings.law.step(&self.state, &noisy, &settings.variance));
        kicked
    }

    /// Ends a step at this state. A chain that would leave the box reverses instead.
    fn moved(&mut self, field: &Field<'_>, to: State) {
        let place = Place::of(field, &to.u);
        self.moved = place.is_some();
        if let Some(place) = place {
            let draw = field.settings.law.draw(&self.state, &to);
            self.draw = theta_of(field.target, field.coordinates, &draw).unwrap_or_else(|| place.theta.clone());
            (self.state, self.place) = (to, place);
        } else {
            self.turned += 1;
            self.state.momentum.iter_mut().for_each(|p| *p = -*p);
            self.state.thermostat = to.thermostat;
            self.draw = self.place.theta.clone();
        }
    }

    /// Returns the thermostat.
    pub(crate) fn thermostat(&self) -> f64 {
        self.state.thermostat
    }

    /// Returns the draw of the last step.
    pub(crate) fn draw(&self, warmup: bool, iteration: u64) -> Draw {
        let (chain, theta) = (self.id, self.draw.clone());
        Draw { chain, warmup, theta, accepted: self.moved, log_alpha: 0.0, iteration }
    }
}
