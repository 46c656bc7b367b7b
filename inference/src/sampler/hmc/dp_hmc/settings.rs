//! Step, noise and number of trajectories of a job without friction.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::law::{self, HEAT, LENGTH};
use crate::sampler::hmc::Settings;
use crate::sampler::hmc::settings::noise_of;
use crate::sampler::{Allotment, Coordinates, SamplerError, Target, normals};
use conclave_common::job::JobSpec;
use conclave_common::model::ScoreModel;
use conclave_privacy::mechanism::{GRADIENT_UNITS, QueryKind, Sensitivity};

/// Longest step if a job states none, in posterior sds.
const MOST_STEP: f64 = 0.5;
/// Ratio of successive shorter step lengths, and the shortest one, for a job that asks for more noise in a gradient.
const SHORTER: f64 = 0.7;
const SHORTEST: f64 = 0.005;
/// Number of warm-up trajectories if chains start from a search.
const WARMUP: u64 = 5;
/// Largest part of a chain for the warm-up, as a divisor.
const WARMUP_PART: u64 = 5;
/// Number of simulated trajectories that estimate the price of a ratio.
const TRIED: usize = 64;

/// Returns the first step length to try, which needs the least noise.
fn first_step(spec: &JobSpec) -> f64 {
    let kicks = f64::from(spec.sampler.hmc.test.kicks());
    spec.sampler.hmc.step.unwrap_or_else(|| MOST_STEP.min(LENGTH / kicks))
}

/// Chooses the settings for the remaining budget: heat as planned, and the job's noise of the test. Errors: a charge is out of
/// range; the budget is too small for one trajectory; the job asks for more noise in a gradient than any step can use.
pub(crate) fn planned(
    target: &Target,
    scores: &dyn ScoreModel,
    coordinates: &Coordinates,
    budget: &Allotment,
    parties: usize,
) -> Result<Settings, SamplerError> {
    let spec = &target.spec;
    let theta = coordinates.centre(target);
    let kind = QueryKind::Gradient { parameters: theta.len() as u32 };
    let at = coordinates.at(scores, &theta).ok_or(SamplerError::TooSmallABudget { kind })?;
    let unit: f64 = coordinates.noise(at.width, 1.0).iter().sum();
    let test = spec.sampler.hmc.test;
    let kicks = f64::from(test.kicks());
    let shorter = |step: &f64| Some(step * SHORTER).filter(|step| spec.sampler.hmc.step.is_none() && *step > SHORTEST);
    let mut last = first_step(spec);
    for step in std::iter::successors(Some(last), shorter) {
        last = step;
        let noise = noise_of((HEAT / (kicks * step * step * unit)).sqrt(), parties)?;
        let share = budget.share_of(kind, Sensitivity::from_units(GRADIENT_UNITS)?, noise)?;
        if !budget.admits(share) {
            continue;
        }
        let length = kicks * step;
        let test_share = typical_price(target, coordinates, budget, length)?;
        let settings = Settings {
            step,
            friction: 0.0,
            test,
            noise,
            test_share,
            test_sd: spec.ratio_variance().sqrt(),
            step_share: kicks * share + test_share,
            // The job's number: the price of a ratio is not known before its query, and the budget ends the run.
            steps: spec.sampler.draws,
            warmup: 0,
            affordable: 0,
            planned_ess: 0.0,
        };
        return settings.with_step_counts(spec, budget, (WARMUP, WARMUP_PART)).ok_or(SamplerError::TooSmallABudget { kind });
    }
    match spec.privacy.noise_multiplier {
        multiplier if multiplier > 0.0 => Err(SamplerError::TooMuchNoise { multiplier, step: last }),
        _ => Err(SamplerError::TooSmallABudget { kind }),
    }
}

/// Returns the mean price of a ratio between the two ends of a trajectory of this length in a normal posterior, as a share of the
/// budget.
fn typical_price(target: &Target, coordinates: &Coordinates, budget: &Allotment, length: f64) -> Result<f64, SamplerError> {
    let Target { spec, space, model } = target;
    // The fixed seed affects neither privacy nor draws.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let (d, turn) = (coordinates.dimension(), length.min(std::f64::consts::PI));
    let theta = |u: &[f64]| space.theta_inside(spec, &coordinates.plain(u));
    let mut sum = 0.0;
    for _ in 0..TRIED {
        let (from, momentum) = (normals(&mut rng, d), normals(&mut rng, d));
        let to: Vec<f64> = from.iter().zip(&momentum).map(|(u, p)| u * libm::cos(turn) + p * libm::sin(turn)).collect();
        sum += budget.price(spec, model.as_ref(), (QueryKind::Ratio, spec.privacy.noise), (&theta(&from), &theta(&to)))?;
    }
    Ok(sum / TRIED as f64)
}

/// Returns the price of an effective draw of DP-HMC and its number of trajectories. The price is in units of a single score whose
/// noise is as large as the posterior is wide, with the planned heat and noise of the test, for an approximately normal
/// posterior.
///
/// A trajectory of length `T` costs `T² d / x` for its gradients, where `x` is the heat, and `2 d (1 - cos T) / y` for its ratio,
/// where `y` is the variance of its noise, if a record's contribution is equally large in every direction.
pub(crate) fn price_of_a_draw(spec: &JobSpec) -> (f64, f64) {
    let length = first_step(spec) * f64::from(spec.sampler.hmc.test.kicks());
    let (d, variance) = (spec.dimension() as f64, spec.ratio_variance());
    let price = d * (length * length / HEAT + 2.0 * law::turned(length) / variance);
    let trajectories = law::trajectories_of_a_draw(law::accepted(HEAT, variance), length);
    (price * trajectories, trajectories)
}
