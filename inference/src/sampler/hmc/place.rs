//! A chain's place, and the midpoint of a step, at which the gradient is released.

use rand_chacha::ChaCha20Rng;

use super::coordinates::{At, Coordinates};
use super::momenta::normals;
use super::settings::Settings;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::noisy_statistics::scores::frame_numbers;
use crate::sampler::target::Target;
use conclave_common::model::ScoreModel;
use conclave_common::query::Query;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::GRADIENT_SCALE;

/// Number of starting values that may fall outside the box before the search's own answer is used.
const START_TRIES: usize = 100;

/// The environment that all chains of a job share.
pub(crate) struct Field<'a> {
    pub(crate) target: &'a Target,
    pub(crate) scores: &'a dyn ScoreModel,
    pub(crate) coordinates: &'a Coordinates,
    pub(crate) settings: &'a Settings,
    pub(crate) parties: usize,
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
        let Target { spec, space, .. } = field.target;
        let coordinates = field.coordinates.plain(&u);
        let theta = space.theta(&coordinates);
        if !spec.in_support(&theta) {
            return None;
        }
        let log_prior = space.log_prior(spec, &coordinates, &theta);
        log_prior.is_finite().then_some(Self { u, theta, log_prior })
    }

    /// Returns a starting place: near the search's mean, whose error has this covariance in `u`, or at the job's `start`.
    pub(super) fn first(field: &Field<'_>, rng: &mut ChaCha20Rng, error: &Matrix, start: Option<&[f64]>) -> Self {
        let d = field.coordinates.dimension();
        let spread = factor(&Matrix::identity(d).plus(error, 1.0));
        let Target { spec, space, .. } = field.target;
        let inside = |u: Vec<f64>| {
            let theta = space.theta_inside(spec, &field.coordinates.plain(&u));
            let log_prior = space.log_prior(spec, &space.coordinates(&theta), &theta);
            Self { u, theta, log_prior }
        };
        let mut tries = (0..START_TRIES).map(|_| spread.lower().apply(&normals(rng, d)));
        match start {
            Some(theta) => {
                let coordinates = space.coordinates(theta);
                let log_prior = space.log_prior(spec, &coordinates, theta);
                Self { u: field.coordinates.place(&coordinates), theta: theta.to_vec(), log_prior }
            }
            None => tries.find_map(|u| Self::of(field, u)).unwrap_or_else(|| inside(vec![0.0; d])),
        }
    }
}

/// Moves half a step on from a place.
pub(super) fn drifted(from: &[f64], momentum: &[f64], step: f64) -> Vec<f64> {
    from.iter().zip(momentum).map(|(u, p)| u + 0.5 * step * p).collect()
}

/// The midpoint of a step, at which the gradient is released.
pub(super) struct Middle {
    pub(super) u: Vec<f64>,
    pub(super) theta: Vec<f64>,
    pub(super) at: At,
    pub(super) numbers: Vec<f64>,
    pub(super) prior_slope: Vec<f64>,
}

/// A released gradient, in the coordinates of a chain.
pub(super) struct Slopes {
    /// Slope of the log posterior.
    pub(super) slope: Vec<f64>,
    /// Slope of the log likelihood alone.
    pub(super) score: Vec<f64>,
    /// Variances of its noise.
    pub(super) variances: Vec<f64>,
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
            to: self.numbers.clone(),
            noise: field.settings.noise,
        }
    }

    /// Computes the slopes from the totals.
    pub(super) fn slopes(&self, field: &Field<'_>, totals: &[i128]) -> Slopes {
        let Field { coordinates, settings, parties, .. } = field;
        let sums: Vec<f64> = totals.iter().map(|total| *total as f64 / GRADIENT_SCALE).collect();
        let score = self.at.frame.total(&sums, coordinates.centred);
        let slope: Vec<f64> = score.iter().zip(&self.prior_slope).map(|(data, prior)| data + prior).collect();
        let variances = coordinates.noise(self.at.width, settings.sd(*parties));
        Slopes { slope: coordinates.slope(&slope), score: coordinates.slope(&score), variances }
    }
}
