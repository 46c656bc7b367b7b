//! The law of the candidates, and the public part of a candidate's weight.

use rand_chacha::ChaCha20Rng;

use crate::sampler::augmentation::normal;
use crate::sampler::matrix::Cholesky;
use crate::sampler::search::SearchResult;
use crate::sampler::{Located, Matrix, SamplerError, Target, factor};
use conclave_common::parameter::LEAST_MAGNITUDE;
use conclave_common::query::Candidates;
use conclave_privacy::mechanism::STEP;

/// Ratio of the candidates' width to the posterior's: with a narrower law few candidates have large weights.
const SPREAD: f64 = 1.5;
/// Maximum number of draws of a candidate that fall outside the parameter box.
const TRIES: usize = 10_000;

/// A normal law of coordinates, truncated to the parameter box.
pub(super) struct CandidateLaw {
    centre: Vec<f64>,
    factor: Cholesky,
}

pub(super) struct Candidate {
    pub(super) theta: Vec<f64>,
    /// Log prior over the law's density, up to a constant.
    log_weight: f64,
    /// Log density of the prior.
    log_prior: f64,
}

impl CandidateLaw {
    /// Returns a law around a mode, [`SPREAD`] times as wide as the posterior there, and wider by the mode's own error.
    pub(super) fn around(centre: Vec<f64>, covariance: Matrix, error: &Matrix) -> Self {
        let whole = covariance.scaled(SPREAD * SPREAD).plus(error, 1.0);
        Self { centre, factor: factor(&whole) }
    }

    /// Returns a law around a search's result.
    pub(super) fn of_search(result: SearchResult) -> Self {
        let squares = |sd: &[f64]| Matrix::diagonal(&sd.iter().map(|sd| sd * sd).collect::<Vec<f64>>());
        match result {
            SearchResult::Axes(found) => Self::around(found.u, squares(&found.sd), &squares(&found.error_sd)),
            SearchResult::Whole(Located { u, covariance, error }) => Self::around(u, covariance, &error),
        }
    }

    /// Returns a law as wide as the prior, around its centre or the job's start.
    pub(super) fn of_prior(target: &Target) -> Self {
        let sd = |(precision, scale): (&f64, &f64)| if *precision > 0.0 { precision.sqrt().recip() } else { *scale };
        let variances: Vec<f64> =
            target.space.precision.iter().zip(&target.space.scale).map(sd).map(|sd| (SPREAD * sd).powi(2)).collect();
        Self { centre: beginning(target), factor: factor(&Matrix::diagonal(&variances)) }
    }

    /// Returns theta at the centre, which candidates' weights are relative to.
    pub(super) fn origin(&self, target: &Target) -> Vec<f64> {
        sound(target.space.theta_inside(&target.spec, &self.centre))
    }

    /// Draws a candidate. Errors: the law has almost no mass inside the parameter box.
    pub(super) fn draw(&self, target: &Target, rng: &mut ChaCha20Rng) -> Result<Candidate, SamplerError> {
        for _ in 0..TRIES {
            let z: Vec<f64> = self.centre.iter().map(|_| normal(rng)).collect();
            let u: Vec<f64> = self.centre.iter().zip(self.factor.lower().apply(&z)).map(|(c, step)| c + step).collect();
            let theta = sound(target.space.theta(&u));
            let within = u.iter().zip(&target.space.boxes).all(|(u, box_)| box_.contains(*u));
            if within && target.spec.in_support(&theta) {
                let log_law = -0.5 * z.iter().map(|z| z * z).sum::<f64>();
                let log_weight = target.space.log_prior(&target.spec, &u, &theta) - log_law;
                return Ok(Candidate { log_weight, log_prior: target.spec.log_prior(&theta), theta });
            }
        }
        Err(SamplerError::NoPlace)
    }
}

/// Returns the starting point of a job without a search.
pub(super) fn beginning(target: &Target) -> Vec<f64> {
    target.spec.sampler.start.as_ref().map_or_else(|| target.space.location.clone(), |start| target.space.coordinates(start))
}

/// Replaces tiny values by 0, as messages require.
fn sound(mut theta: Vec<f64>) -> Vec<f64> {
    theta.iter_mut().filter(|x| x.abs() < LEAST_MAGNITUDE).for_each(|x| *x = 0.0);
    theta
}

/// Returns the numbers of a choice's query: places, and log weights in whole lattice units, without those of the records' ratios.
/// `taken_off` returns the value that the party subtracts from the sum of its log ratios at a place, and `power` is that of likelihood
/// and prior in the draw.
pub(super) fn numbers(candidates: &[Candidate], power: f64, taken_off: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let log_weight = |candidate: &Candidate| match power < 1.0 {
        true => candidate.log_weight - (1.0 - power) * candidate.log_prior,
        false => candidate.log_weight,
    };
    let greatest = candidates.iter().map(log_weight).fold(f64::NEG_INFINITY, f64::max);
    let most = Candidates::MOST_PUBLIC;
    let whole = |candidate: &Candidate| {
        let units = ((log_weight(candidate) - greatest + power * taken_off(&candidate.theta)) / STEP).round();
        // Where a prior is 0, the weight is e to the minus two million: it is never drawn. NaN is treated alike.
        if units.is_nan() { -most } else { units.clamp(-most, most) }
    };
    let public: Vec<f64> = candidates.iter().map(whole).collect();
    let places: Vec<Vec<f64>> = candidates.iter().map(|candidate| candidate.theta.clone()).collect();
    Candidates::numbers(&places, &public)
}
