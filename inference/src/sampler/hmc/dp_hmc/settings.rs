//! Step, noise and number of trajectories of a job without friction.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::law::{self, HEAT, LENGTH};
use crate::sampler::error::SamplerError;
use crate::sampler::hmc::coordinates::Coordinates;
use crate::sampler::hmc::momenta::normals;
use crate::sampler::hmc::settings::{Settings, noise_of};
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::model::ScoreModel;
use conclave_privacy::mechanism::{GRADIENT_UNITS, QueryKind, Sensitivity};

/// The longest step where a job names none, in posterior sds.
const MOST_STEP: f64 = 0.5;
/// How much shorter each further one is that is tried where a job asks for more noise in a gradient, and the shortest.
const SHORTER: f64 = 0.7;
const SHORTEST: f64 = 0.005;
/// Trajectories of a warm-up, where chains start from a search.
const WARMUP: u64 = 5;
/// The part of a chain that a warm-up takes at most.
const WARMUP_PART: u64 = 5;
/// Trajectories that are tried to see what a ratio costs.
const TRIED: usize = 64;

/// The length of a step, where gradients may have the noise that it wants.
fn first_step(spec: &JobSpec) -> f64 {
    let kicks = f64::from(spec.sampler.hmc.test.kicks());
    spec.sampler.hmc.step.unwrap_or_else(|| MOST_STEP.min(LENGTH / kicks))
}

/// The settings for what is left of a budget: heat as planned, and noise of the test as the job has it.
///
/// # Errors
/// A charge out of range; a budget that does not hold one trajectory; more noise asked of a gradient than any step wants.
pub(crate) fn planned(
    target: &Target,
    scores: &dyn ScoreModel,
    coordinates: &Coordinates,
    budget: &Allotment,
    parties: usize,
) -> Result<Settings, SamplerError> {
    let spec = &target.spec;
    let theta = target.space.theta_inside(spec, &coordinates.plain(&vec![0.0; coordinates.dimension()]));
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
            test_sd: ratio_variance(spec, parties).sqrt(),
            step_share: kicks * share + test_share,
            // As many as are asked for: what a ratio costs is not known before it is asked, and the budget ends the run.
            steps: spec.sampler.draws,
            warmup: 0,
            affordable: 0,
            planned_ess: 0.0,
        };
        return settings.lasting(spec, budget, (WARMUP, WARMUP_PART)).ok_or(SamplerError::TooSmallABudget { kind });
    }
    match spec.privacy.noise_multiplier {
        multiplier if multiplier > 0.0 => Err(SamplerError::TooMuchNoise { multiplier, step: last }),
        _ => Err(SamplerError::TooSmallABudget { kind }),
    }
}

/// The variance of a ratio's noise over all parties.
fn ratio_variance(spec: &JobSpec, parties: usize) -> f64 {
    parties as f64 * spec.privacy.noise.variance()
}

/// The mean share of the budget of a ratio, between two ends of a trajectory of this length about a normal posterior.
fn typical_price(target: &Target, coordinates: &Coordinates, budget: &Allotment, length: f64) -> Result<f64, SamplerError> {
    let Target { spec, space, model } = target;
    // Of no consequence to anybody's privacy or draws: the same ones always.
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

/// What an effective draw of DP-HMC costs, in units of what a single score costs whose noise is as large as the posterior is wide: with the
/// heat and the test's noise as they are planned, at a posterior that is about normal. Beside it the trajectories that an effective draw takes.
///
/// A trajectory of length `T` has gradients for `T² d / x` of it, `x` the heat, and a ratio for `2 d (1 - cos T) / y`, `y` the
/// variance of its noise, where a record contributes as much in every direction.
pub(crate) fn price_of_a_draw(spec: &JobSpec, parties: usize) -> (f64, f64) {
    let length = first_step(spec) * f64::from(spec.sampler.hmc.test.kicks());
    let (d, variance) = (spec.dimension() as f64, ratio_variance(spec, parties));
    let price = d * (length * length / HEAT + 2.0 * law::turned(length) / variance);
    let trajectories = law::trajectories_of_a_draw(law::accepted(HEAT, variance), length);
    (price * trajectories, trajectories)
}
