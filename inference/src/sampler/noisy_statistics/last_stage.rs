//! The last stage of a search: its information's share of the budget, what its quadratic is expected to leave out, and its fit once that
//! information is known.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::adequacy::cubic;
use super::gaussian::{Fit, factor, largest_eigenvalue};
use super::information::Information;
use super::stage::ScoreStage;
use crate::sampler::matrix::Matrix;

/// Least and greatest curvature share of the last stage.
const CURVATURE: (f64, f64) = (0.05, 0.3);
/// Target value of rho for the last stage's curvature, see `adequacy`.
const RHO_WANTED: f64 = 0.15;
/// Number of simulated steps that estimate the remainder on the last step.
const TRIED: usize = 64;

/// The score of a last stage, before its information is known.
pub(crate) struct LastScore {
    /// The public point of the score.
    pub(crate) at: Vec<f64>,
    /// The released score.
    pub(crate) score: Vec<f64>,
    /// The sum of the scores at that point and at the answer: half of it is left half way.
    pub(crate) left: Vec<f64>,
    /// Covariance of the score's noise.
    pub(crate) noise: Matrix,
    /// Number of records behind the score, or a guess, times the power of their likelihood.
    pub(crate) records: f64,
}

impl LastScore {
    /// Returns the stage of this score and an information half way to the answer, and its fit.
    pub(crate) fn with_information(self, information: &Information, fit: impl Fn(&ScoreStage) -> Fit) -> (ScoreStage, Fit) {
        let Self { at, score, left, noise, records } = self;
        let observed = information.observed_half_way(&left, records);
        let mut stage = ScoreStage { at, score, score_noise: noise, information: observed };
        // The noise depends on the step slightly: one repetition is enough.
        let first = fit(&stage);
        stage.score_noise = information.noise_of_score(&stage.score_noise, &first.step, records);
        let fitted = fit(&stage);
        (stage, fitted)
    }
}

/// Returns the curvature's share of a last stage with this share of the budget: the share at which rho is [`RHO_WANTED`].
pub(super) fn last_curvature(weight: &Matrix, share: f64, sds: (f64, Option<f64>)) -> f64 {
    let rho = rho(weight, share, sds);
    let wanted = rho / RHO_WANTED * (rho / RHO_WANTED);
    if wanted.is_nan() { CURVATURE.1 } else { wanted.clamp(CURVATURE.0, CURVATURE.1) }
}

/// Returns rho of the information of a last stage with this share of the budget, of which the information has its largest part.
pub(crate) fn least_rho(weight: &Matrix, share: f64, sds: (f64, Option<f64>)) -> f64 {
    rho(weight, CURVATURE.1 * share, sds)
}

/// Returns rho of an information with this share of the budget.
fn rho(weight: &Matrix, share: f64, (sd, own_sd): (f64, Option<f64>)) -> f64 {
    let of_coefficients = (weight.order() as f64).sqrt() * sd * largest_eigenvalue(weight);
    let last = weight.order().saturating_sub(1);
    let of_own = own_sd.map_or(0.0, |sd| std::f64::consts::SQRT_2 * sd * weight[(last, last)]);
    // Not `f64::max`, which discards a NaN.
    let greater = if of_own > of_coefficients { of_own } else { of_coefficients };
    2.0 * greater / share.sqrt()
}

/// Returns the expected remainder of the quadratic on the last step, in posterior sds. It is the median over steps from a
/// location with this noise to an answer from a score with that noise.
pub(super) fn expected_cubic(place: &Matrix, weight: &Matrix, noise: &Matrix, reach: &dyn Fn(&[f64]) -> f64) -> f64 {
    let made = weight.times(noise).times(weight).symmetrised();
    let covariance = made.clone().plus(weight, 1.0);
    let steps = factor(&made.plus(place, 1.0).symmetrised());
    // The fixed seed affects neither privacy nor draws.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let mut tried: Vec<f64> = (0..TRIED)
        .map(|_| {
            let normals: Vec<f64> = (0..weight.order()).map(|_| StandardNormal.sample(&mut rng)).collect();
            cubic(&steps.lower().apply(&normals), &covariance, reach)
        })
        .collect();
    tried.sort_by(f64::total_cmp);
    tried[TRIED / 2]
}
