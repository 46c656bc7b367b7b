//! One chain: its state, its own random stream, and its pending query.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::added_noise::TopUp;
use super::{Settings, State};
use crate::sampler::hmc::{At, Kicked, Slopes};
use crate::sampler::{Coordinates, Matrix, frame_numbers, hmc, normals};
use conclave_common::query::{Draw, Query};

/// The environment that all chains of a job share.
pub(super) type Field<'a> = hmc::Field<'a, Settings>;

/// A place that can be queried: inside the box, with a positive prior density and a public bound on a record's gradient.
struct Place {
    theta: Vec<f64>,
    at: At,
}

impl Place {
    fn of(field: &Field<'_>, theta: Vec<f64>) -> Option<Self> {
        field.coordinates.at(field.scores, &theta).map(|at| Self { theta, at })
    }
}

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
        let mut rng = ChaCha20Rng::seed_from_u64(field.target.spec.sampler.seed);
        rng.set_stream(u64::from(id));
        let d = field.coordinates.dimension();
        let place = |u: Vec<f64>, theta: Vec<f64>| Place::of(field, theta).map(|place| (u, place));
        let (u, place) = match start {
            Some(theta) => place(field.coordinates.place(&field.target.space.coordinates(theta)), theta.to_vec()),
            None => field
                .near(&mut rng, error, |u| field.inside(&u).and_then(|(theta, _)| place(u, theta)))
                .or_else(|| place(vec![0.0; d], field.coordinates.centre(field.target))),
        }?;
        let momentum = normals(&mut rng, d);
        let state = State { u, momentum, thermostat: field.settings.pace.friction };
        let draw = place.theta.clone();
        Some(Self { id, rng, state, place, draw, moved: false, turned: 0, exceeded: 0, made: 0 })
    }

    /// Returns the query for the gradient at the chain's place.
    pub(crate) fn ask(&self, coordinates: &Coordinates, &Settings { kind, noise, .. }: &Settings) -> Query {
        let to = frame_numbers(coordinates.coding(), &self.place.at.frame);
        Query { chain: self.id, kind, from: self.place.theta.clone(), to, noise }
    }

    /// Processes the gradient's totals: takes the chain's step, and returns its observations.
    pub(crate) fn step(&mut self, field: &Field<'_>, totals: &[i128]) -> Kicked {
        let settings = field.settings;
        let plain = field.coordinates.plain(&self.state.u);
        let prior = field.coordinates.prior_slope(field.target, &plain);
        let noise = (settings.probability, settings.sd(field.parties));
        let Slopes { slope, score, variances: known } = field.slopes(&self.place.at, &prior, totals, noise);
        let decreased = settings.decreased(field.target.spec.algorithm, self.made + 1);
        let (law, variance) = match &decreased {
            Some((law, variance)) => (law.as_ref(), variance.as_slice()),
            None => (settings.law.as_ref(), settings.variance.as_slice()),
        };
        let public = TopUp::new(law, variance, &known, settings.samples.as_ref());
        let noise = public.noise(&normals(&mut self.rng, slope.len()));
        let noisy: Vec<f64> = slope.iter().zip(&noise).map(|(g, e)| g + e).collect();
        let kicked = Kicked {
            from: self.state.u.clone(),
            slope,
            momentum: self.state.momentum.clone(),
            middle: plain,
            score,
            variances: match &settings.samples {
                Some(samples) => known.iter().zip(samples.diagonal_entries()).map(|(known, more)| known + more).collect(),
                None => known,
            },
            repeated: None,
            at_rest: true,
        };
        self.made += 1;
        // Long steps of a warm-up have more noise than their law needs.
        self.exceeded += u64::from(public.exceeded && (decreased.is_none() || self.made > settings.warmup));
        self.moved(field, law.step(&self.state, &noisy, variance));
        kicked
    }

    /// Ends a step at this state. A chain that would leave the box reverses instead.
    fn moved(&mut self, field: &Field<'_>, to: State) {
        let place = field.inside(&to.u).and_then(|(theta, _)| Place::of(field, theta));
        self.moved = place.is_some();
        if let Some(place) = place {
            let draw = field.settings.law.draw(&self.state, &to);
            self.draw = field.inside(&draw).map_or_else(|| place.theta.clone(), |(theta, _)| theta);
            (self.state, self.place) = (to, place);
        } else {
            self.turned += 1;
            self.state.momentum.iter_mut().for_each(|p| *p = -*p);
            self.state.thermostat = to.thermostat;
            self.draw = self.place.theta.clone();
        }
    }

    pub(crate) fn thermostat(&self) -> f64 {
        self.state.thermostat
    }

    pub(crate) fn draw(&self, warmup: bool, iteration: u64) -> Draw {
        let (chain, theta) = (self.id, self.draw.clone());
        Draw { chain, warmup, theta, accepted: self.moved, log_alpha: 0.0, iteration }
    }
}
