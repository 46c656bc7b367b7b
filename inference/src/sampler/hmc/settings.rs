//! Step, noise and number of steps of a job's chains, from the remaining budget after the search and from its result.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::dp_hmc::law as dp_law;
use super::law;
use super::{drifted, momenta};
use crate::sampler::{Allotment, Coordinates, SamplerError, Target, expected_acceptance, normals};
use conclave_common::job::{HmcTest, JobSpec};
use conclave_common::model::ScoreModel;
use conclave_privacy::mechanism::{GRADIENT_UNITS, NoiseScale, QueryKind, Sensitivity, sensitivity};
use conclave_privacy::pass::GRADIENT_SCALE;

/// Step lengths that are tried if the job states none, in posterior sds.
pub(crate) const STEPS: [f64; 6] = [0.5, 0.35, 0.25, 0.18, 0.12, 0.08];
/// Ratio of successive further step lengths, and the shortest one, for a job that asks for more noise.
const SHORTER: f64 = 0.7;
const SHORTEST: f64 = 0.005;
/// Largest share of a step's price for its test.
const TEST: f64 = 0.01;
/// Least and greatest sd of the test's noise, over all parties.
const TEST_SD: (f64, f64) = (0.02, 0.15);
/// Effective draws per step and chain, in units of one over the variance of a gradient's noise in posterior sds, if about 2% of
/// the steps are rejected.
pub(crate) const EFFICIENCY: f64 = 0.9;
/// Planned effective draws below which the friction is doubled, because short chains need a shorter memory.
const FEW: f64 = 100.0;
/// Time of a warm-up, in units of the momenta's relaxation time.
const WARMUP: f64 = 5.0;
/// Largest part of a chain for the warm-up, as a divisor.
const WARMUP_PART: u64 = 5;
/// Number of simulated steps that estimate the typical remainder.
const TRIED: usize = 64;
/// Share of a budget that is reserved for the rounding of charges.
const RESERVE: f64 = 1e-6;

/// The movement of a job's chains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Settings {
    /// h.
    pub(crate) step: f64,
    /// Planned friction gamma; 0 without friction.
    pub(crate) friction: f64,
    pub(crate) test: HmcTest,
    /// Noise of each component of a gradient, at each party.
    pub(crate) noise: NoiseScale,
    /// Share of the budget for one test.
    pub(crate) test_share: f64,
    /// Sd of the test's noise over all parties, for a typical remainder.
    pub(crate) test_sd: f64,
    /// Share of the budget for one chain's step, including its test.
    pub(crate) step_share: f64,
    /// Maximum number of steps of each chain, including the warm-up.
    pub(crate) steps: u64,
    /// Number of steps that the budget is expected to allow.
    pub(crate) affordable: u64,
    /// Number of warm-up steps, which come first.
    pub(crate) warmup: u64,
    /// Expected effective draws of all chains.
    pub(crate) planned_ess: f64,
}

impl Settings {
    /// Chooses the settings for the remaining budget. Errors: a charge is out of range; the budget is too small for one step.
    pub(super) fn new(
        target: &Target,
        scores: &dyn ScoreModel,
        coordinates: &Coordinates,
        budget: &Allotment,
        parties: usize,
    ) -> Result<Self, SamplerError> {
        let spec = &target.spec;
        let theta = coordinates.centre(target);
        let kind = QueryKind::Gradient { parameters: theta.len() as u32 };
        let at = coordinates.at(scores, &theta).ok_or(SamplerError::TooSmallABudget { kind })?;
        let unit = mean(&coordinates.noise(at.width, 1.0));
        let given = spec.sampler.hmc;
        let settle = |gamma: f64| {
            let tested = |step: f64| -> Result<Option<Self>, SamplerError> {
                let noise = noise_of((law::variance_of(step, gamma) / unit).sqrt(), parties)?;
                let share = budget.share_of(kind, Sensitivity::from_units(GRADIENT_UNITS)?, noise)?;
                let priced = Priced { step, noise, share, parameters: theta.len() as u32 };
                // A shorter step needs more noise in its gradients.
                if !budget.admits(share) {
                    return Ok(None);
                }
                if given.test == HmcTest::None {
                    return Ok(Some(Self::planned(target, budget, &priced, (0.0, 0.0), gamma)));
                }
                let typical = typical_remainder(target, scores, coordinates, (step, gamma));
                let Some(test) = priced.test(typical, budget, parties)? else { return Ok(None) };
                Ok(Some(Self::planned(target, budget, &priced, test, gamma)))
            };
            match given.step {
                Some(step) => tested(step),
                None => candidate_steps(&target.spec).find_map(|step| tested(step).transpose()).transpose(),
            }
        };
        let gamma = given.friction.unwrap_or(1.0);
        let multiplier = target.spec.privacy.noise_multiplier;
        let none = || match multiplier > 0.0 {
            true => SamplerError::TooMuchNoise { multiplier, step: given.step.unwrap_or(SHORTEST) },
            false => SamplerError::TooSmallABudget { kind },
        };
        let settings = settle(gamma)?.ok_or_else(none)?;
        let settings = match given.friction {
            None if settings.planned_ess < FEW => settle(2.0)?.unwrap_or(settings),
            _ => settings,
        };
        if settings.steps <= settings.warmup { Err(SamplerError::TooSmallABudget { kind }) } else { Ok(settings) }
    }

    /// Returns the sd of a gradient's noise over all parties, in units of the largest contribution of a record.
    pub(crate) fn sd(&self, parties: usize) -> f64 {
        (parties as f64).sqrt() * self.noise.units() as f64 / GRADIENT_SCALE
    }

    /// Returns the number of messages of a step, including its test.
    pub(crate) fn messages_of_a_step(&self) -> u64 {
        u64::from(self.test.kicks()) + u64::from(self.test != HmcTest::None)
    }

    /// Returns the expected share of accepted steps.
    pub(crate) fn acceptance(&self) -> f64 {
        match self.test {
            HmcTest::Ratio { .. } => dp_law::accepted(dp_law::HEAT, self.test_sd * self.test_sd),
            _ => expected_acceptance(0.0, self.test_sd),
        }
    }

    /// Returns the number of steps per effective draw of a mean, where a gradient's noise has this variance in posterior sds.
    pub(crate) fn steps_of_a_draw(&self, variance: f64) -> f64 {
        match self.test {
            HmcTest::Ratio { kicks } => dp_law::trajectories_of_a_draw(self.acceptance(), self.step * f64::from(kicks)),
            _ => law::steps_of_a_draw(self.step, variance, 1.0 - self.acceptance()),
        }
    }

    /// Sets the numbers of steps for chains without friction: limited by the budget and by the job. The warm-up has
    /// at most `warmup` steps, and at most one in `part`. Returns `None` if no step remains after it.
    pub(super) fn with_step_counts(mut self, spec: &JobSpec, budget: &Allotment, (warmup, part): (u64, u64)) -> Option<Self> {
        let sampler = &spec.sampler;
        self.affordable = affordable_steps(budget, sampler.chains, self.step_share);
        let usual = if sampler.starts.is_some() { 0 } else { warmup.min(self.affordable / part) };
        self.warmup = sampler.hmc.warmup.unwrap_or(usual);
        self.steps = self.warmup.saturating_add(sampler.draws);
        self.affordable = self.affordable.min(self.steps);
        let kept = self.affordable.checked_sub(self.warmup).filter(|kept| *kept > 0)?;
        self.planned_ess = kept as f64 * f64::from(sampler.chains) / self.steps_of_a_draw(0.0);
        Some(self)
    }

    fn planned(target: &Target, budget: &Allotment, priced: &Priced, (test_share, test_sd): (f64, f64), friction: f64) -> Self {
        let sampler = &target.spec.sampler;
        let step_share = priced.share + test_share;
        let affordable = affordable_steps(budget, sampler.chains, step_share);
        let warmup = sampler.hmc.warmup.unwrap_or_else(|| {
            let time = if sampler.starts.is_some() { 0.0 } else { WARMUP };
            ((time / priced.step).ceil() as u64).min(affordable / WARMUP_PART)
        });
        let steps = affordable.min(warmup.saturating_add(sampler.draws));
        let kept = steps.saturating_sub(warmup) as f64 * f64::from(sampler.chains);
        let rejected = 1.0 - expected_acceptance(0.0, test_sd);
        let planned_ess = kept / law::steps_of_a_draw(priced.step, law::variance_of(priced.step, friction), rejected);
        let Priced { step, noise, .. } = *priced;
        let (test, affordable) = (sampler.hmc.test, steps);
        Self { step, friction, test, noise, test_share, test_sd, step_share, steps, affordable, warmup, planned_ess }
    }
}

/// Returns the number of steps of each chain that a budget allows, if one chain's step takes this share.
pub(in crate::sampler) fn affordable_steps(budget: &Allotment, chains: u32, step_share: f64) -> u64 {
    (budget.left() * (1.0 - RESERVE) / (f64::from(chains) * step_share)) as u64
}

/// Yields the step lengths to try if the job states none: the usual ones, then shorter ones if the job asks for more noise than
/// these need.
fn candidate_steps(spec: &JobSpec) -> impl Iterator<Item = f64> {
    let shorter = std::iter::successors(STEPS.last().copied(), |step| Some(step * SHORTER)).skip(1);
    let shorter = shorter.take_while(|step| *step > SHORTEST).chain([SHORTEST]);
    let asks = spec.privacy.noise_multiplier > 0.0;
    STEPS.into_iter().chain(shorter.filter(move |_| asks))
}

/// A step length with the noise of its gradients, and their price as a share of the budget.
struct Priced {
    step: f64,
    noise: NoiseScale,
    share: f64,
    parameters: u32,
}

impl Priced {
    /// Returns the share of the budget for a test whose remainder is at most `typical`, and the sd of its noise; `None` if even
    /// the noisiest test costs more than a test may.
    fn test(&self, typical: f64, budget: &Allotment, parties: usize) -> Result<Option<(f64, f64)>, SamplerError> {
        let kind = QueryKind::Remainder { parameters: self.parameters };
        let noise = NoiseScale::from_sd(TEST_SD.1 / (parties as f64).sqrt())?;
        let noisiest = budget.share_of(kind, sensitivity(typical, None)?, noise)?;
        // Every draw has a minimal charge.
        let least = budget.share_of(kind, Sensitivity::from_units(1)?, noise)?;
        let most = (TEST * self.share).max(least);
        if noisiest > most {
            return Ok(None);
        }
        // Lower noise, as long as it is cheap.
        let quieter = (TEST_SD.1 / TEST_SD.0).powi(2);
        let share = most.min(noisiest * quieter);
        Ok(Some((share, TEST_SD.1 * (noisiest / share).sqrt())))
    }
}

/// Returns the noise scale at each party whose noise, over all parties, has this sd in units of the largest contribution of a
/// record.
pub(super) fn noise_of(sd: f64, parties: usize) -> Result<NoiseScale, SamplerError> {
    let units = sd * GRADIENT_SCALE / (parties as f64).sqrt();
    let multiples = (units / NoiseScale::MULTIPLE as f64).ceil();
    let least = NoiseScale::MIN_UNITS / NoiseScale::MULTIPLE;
    Ok(NoiseScale::from_units((multiples as u64).max(least).saturating_mul(NoiseScale::MULTIPLE))?)
}

/// Returns the public bound on a remainder, as rms over simulated steps like those of the chains.
fn typical_remainder(target: &Target, scores: &dyn ScoreModel, coordinates: &Coordinates, (step, gamma): (f64, f64)) -> f64 {
    // The fixed seed affects neither privacy nor draws.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let d = coordinates.dimension();
    let kept = libm::exp(-gamma * step);
    let theta = |u: &[f64]| target.space.theta(&coordinates.plain(u));
    let leverage = coordinates.leverage();
    let squares = (0..TRIED).filter_map(|_| {
        let from = normals(&mut rng, d);
        let (before, fresh) = (momenta(&mut rng, d, step), momenta(&mut rng, d, step));
        let mixed = before.iter().zip(&fresh).map(|(p, q)| kept * p + (1.0 - kept * kept).sqrt() * q);
        let middle = drifted(&from, &before, step);
        let to = drifted(&middle, &mixed.collect::<Vec<f64>>(), step);
        let bound = scores.remainder_bound([&theta(&from), &theta(&middle), &theta(&to)], leverage.as_ref())?;
        Some(bound * bound)
    });
    mean(&squares.collect::<Vec<f64>>()).sqrt()
}

pub(in crate::sampler) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
