//! The places of chains, and the slopes that are released there.

use rand_chacha::ChaCha20Rng;

use super::Settings;
use super::coordinates::At;
use crate::sampler::space::START_TRIES;
use crate::sampler::{Coordinates, Matrix, Means, Target, factor, frame_numbers, normals};
use conclave_common::model::ScoreModel;
use conclave_common::query::Query;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::GRADIENT_SCALE;

/// The environment that all chains of a job share.
pub(crate) struct Field<'a, S = Settings> {
    pub(crate) target: &'a Target,
    pub(crate) scores: &'a dyn ScoreModel,
    pub(crate) coordinates: &'a Coordinates,
    pub(crate) settings: &'a S,
    pub(crate) parties: usize,
}

impl<'a, S> Field<'a, S> {
    pub(crate) fn new(means: &'a Means, scores: &'a dyn ScoreModel, coordinates: &'a Coordinates, settings: &'a S) -> Self {
        Self { target: &means.target, scores, coordinates, settings, parties: means.parties.len() }
    }

    /// Returns theta of `u` and its log prior density; `None` outside the box, or where the prior density is 0.
    pub(crate) fn inside(&self, u: &[f64]) -> Option<(Vec<f64>, f64)> {
        let Target { spec, space, .. } = self.target;
        let plain = self.coordinates.plain(u);
        let theta = space.theta(&plain);
        if !spec.in_support(&theta) {
            return None;
        }
        let log_prior = space.log_prior(spec, &plain, &theta);
        log_prior.is_finite().then_some((theta, log_prior))
    }

    /// Returns a place near the search's mean, whose error has this covariance in `u`; `None` if no draw of one is a place.
    pub(crate) fn near<T>(&self, rng: &mut ChaCha20Rng, error: &Matrix, place: impl Fn(Vec<f64>) -> Option<T>) -> Option<T> {
        let d = self.coordinates.dimension();
        let spread = factor(&Matrix::identity(d).plus(error, 1.0));
        (0..START_TRIES).find_map(|_| place(spread.lower().apply(&normals(rng, d))))
    }

    /// Computes the slopes at a place from the totals of its gradient query, over the units that are sampled with this probability.
    /// `prior` is the prior's slope, `sd` that of the noise over all parties.
    pub(crate) fn slopes(&self, at: &At, prior: &[f64], totals: &[i128], (probability, sd): (f64, f64)) -> Slopes {
        let sums: Vec<f64> = totals.iter().map(|total| *total as f64 / GRADIENT_SCALE / probability).collect();
        let score = at.frame.total(&sums, self.coordinates.centred);
        let slope: Vec<f64> = score.iter().zip(prior).map(|(data, prior)| data + prior).collect();
        let variances = self.coordinates.noise(at.width, sd);
        Slopes { slope: self.coordinates.slope(&slope), score: self.coordinates.slope(&score), variances }
    }
}

/// A released gradient, in the coordinates of a chain.
pub(crate) struct Slopes {
    /// Slope of the log posterior.
    pub(crate) slope: Vec<f64>,
    /// Slope of the log likelihood alone.
    pub(crate) score: Vec<f64>,
    /// Variances of its noise.
    pub(crate) variances: Vec<f64>,
}

/// A place. It stores theta as well, so that a step's end has the bits of its test.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) u: Vec<f64>,
    pub(super) theta: Vec<f64>,
    pub(super) log_prior: f64,
}

impl Place {
    /// Returns the place of `u`; `None` outside the box, or where the prior density is 0.
    pub(super) fn of(field: &Field<'_>, u: Vec<f64>) -> Option<Self> {
        field.inside(&u).map(|(theta, log_prior)| Self { u, theta, log_prior })
    }

    /// Returns a starting place: near the search's mean, whose error has this covariance in `u`, or at the job's `start`.
    pub(super) fn first(field: &Field<'_>, rng: &mut ChaCha20Rng, error: &Matrix, start: Option<&[f64]>) -> Self {
        let Target { spec, space, .. } = field.target;
        let at = |u: Vec<f64>, theta: Vec<f64>| {
            let log_prior = space.log_prior(spec, &space.coordinates(&theta), &theta);
            Self { u, theta, log_prior }
        };
        match start {
            Some(theta) => at(field.coordinates.place(&space.coordinates(theta)), theta.to_vec()),
            None => field
                .near(rng, error, |u| Self::of(field, u))
                .unwrap_or_else(|| at(vec![0.0; field.coordinates.dimension()], field.coordinates.centre(field.target))),
        }
    }
}

/// The midpoint of a step, at which the gradient is released.
pub(super) struct Middle {
    pub(super) u: Vec<f64>,
    pub(super) theta: Vec<f64>,
    pub(super) at: At,
    pub(super) numbers: Vec<f64>,
    pub(super) prior_slope: Vec<f64>,
}

impl Middle {
    /// Returns the midpoint at `u`; `None` if it is too far outside the box for a query.
    pub(super) fn of(field: &Field<'_>, u: Vec<f64>) -> Option<Self> {
        let Field { target, scores, coordinates, .. } = field;
        let plain = coordinates.plain(&u);
        let theta = target.space.theta(&plain);
        let at = Some(()).filter(|()| target.spec.in_wider_support(&theta)).and_then(|()| coordinates.at(*scores, &theta))?;
        let numbers = frame_numbers(coordinates.coding(), &at.frame);
        let prior_slope = coordinates.prior_slope(target, &plain);
        Some(Self { u, theta, at, numbers, prior_slope })
    }

    /// Returns the query for the gradient.
    pub(super) fn gradient_query(&self, field: &Field<'_>, chain: u32) -> Query {
        Query {
            chain,
            kind: QueryKind::Gradient { parameters: self.theta.len() as u32 },
            from: self.theta.clone(),
            to: self.numbers.iter().copied().chain(field.coordinates.trace()).collect(),
            noise: field.settings.noise,
        }
    }

    pub(super) fn slopes(&self, field: &Field<'_>, totals: &[i128]) -> Slopes {
        field.slopes(&self.at, &self.prior_slope, totals, (1.0, field.settings.sd(field.parties)))
    }
}
