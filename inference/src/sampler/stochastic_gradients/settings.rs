//! Step, noise and number of steps of a job's chains, from the remaining budget after the search and from its result.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::laws::{HOT, law};
use super::{Law, Pace, Schedule, Sgfs, added_noise, price, usual_step};
use crate::sampler::hmc::{affordable_steps, mean};
use crate::sampler::noisy_statistics::gaussian::largest_eigenvalue;
use crate::sampler::{Allotment, Coordinates, Matrix, SamplerError, Target, factor, normals};
use conclave_common::job::{Algorithm, JobSpec, STOCHASTIC_WARMUP};
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::GRADIENT_SCALE;

/// Largest and smallest ratio of successive step lengths, if the job states none, and the shortest step.
const SHORTER: f64 = 0.7;
const SHORTEST_AT_ONCE: f64 = 0.3;
const SHORTEST: f64 = 0.002;
/// Largest part of a chain for the warm-up, as a divisor.
const WARMUP_PART: u64 = 5;
/// Number of simulated places that estimate the largest width of a gradient's noise.
const TRIED: usize = 64;

/// The movement of a job's chains.
pub(crate) struct Settings {
    pub(crate) law: Box<dyn Law>,
    pub(crate) pace: Pace,
    /// The lengths of the steps; the pace has that of the last step of the warm-up.
    pub(crate) schedule: Schedule,
    pub(crate) kind: QueryKind,
    /// Noise of each component of a gradient, at each party.
    pub(crate) noise: NoiseScale,
    /// Variance of a gradient's noise that the law needs, per component.
    pub(crate) variance: Vec<f64>,
    /// Part of it that is the parties' noise, where theirs is greatest.
    pub(crate) known: Vec<f64>,
    /// Covariance that sampling adds; `None` without sampling.
    pub(crate) samples: Option<Matrix>,
    /// Sampling probability, by which a sum over a sample is divided.
    pub(crate) probability: f64,
    /// Share of the budget for one chain's step.
    pub(crate) step_share: f64,
    /// Number of steps of each chain, including the warm-up.
    pub(crate) steps: u64,
    /// Number of warm-up steps, which come first.
    pub(crate) warmup: u64,
    /// Expected effective draws of all chains, in a direction of average noise.
    pub(crate) planned_ess: f64,
}

pub(crate) struct SettingsInput<'a> {
    pub(super) target: &'a Target,
    pub(crate) scores: &'a dyn ScoreModel,
    pub(crate) coordinates: &'a Coordinates,
    /// Covariance of the error of the search's location.
    pub(crate) error: &'a Matrix,
    pub(crate) parties: &'a [PartyMetadata],
    /// Remaining budget.
    pub(crate) budget: &'a Allotment,
}

/// A step and the noise of its gradients, with the cost of one release.
struct Priced {
    law: Box<dyn Law>,
    pace: Pace,
    noise: NoiseScale,
    /// `None` if no block can be opened.
    share: Option<f64>,
}

impl Settings {
    /// Chooses the settings for the remaining budget. If the job states no step, it is the longest for which the budget allows
    /// the releases. Errors: sampling adds more noise than a step needs; the noise multiplier or the number of releases demands
    /// more noise than any step needs; the budget is too small for one step.
    pub(crate) fn new(means: &SettingsInput<'_>) -> Result<Self, SamplerError> {
        let SettingsInput { target, coordinates, .. } = means;
        let spec = &target.spec;
        let samples = added_noise::covariance(target, coordinates);
        let unit = means.widest().ok_or(SamplerError::TooSmallABudget { kind: means.kind() })?;
        let given = spec.sampler.stochastic;
        let mut step = given.step.unwrap_or(usual_step(spec.algorithm));
        loop {
            let pace = Pace { step, friction: given.friction.unwrap_or(1.0) };
            let priced = means.priced(pace, &unit, samples.as_ref())?;
            let roomy = priced.is_some();
            let held = priced.as_ref().map_or(0.0, |priced| means.held(priced));
            if let Some(priced) = priced.filter(|_| held >= 1.0) {
                return means.planned(priced, &unit, samples);
            }
            // The price of all releases is about proportional to the step.
            let shorter = step * held.clamp(SHORTEST_AT_ONCE, SHORTER);
            if given.step.is_some() || shorter < SHORTEST {
                return Err(means.refused(step, samples.as_ref().filter(|_| !roomy)));
            }
            step = shorter;
        }
    }

    /// Returns the law of the step with this number, from 1, and the noise that it needs; `None` if all steps have the law and the
    /// variance of the settings.
    pub(crate) fn decreased(&self, algorithm: Algorithm, number: u64) -> Option<(Box<dyn Law>, Vec<f64>)> {
        self.schedule.gamma()?;
        let law = law(algorithm, Pace { step: self.schedule.step(number), ..self.pace })?;
        let samples = Matrix::zeros(self.known.len());
        let variance = law.variance(&self.known, self.samples.as_ref().unwrap_or(&samples));
        Some((law, variance))
    }

    /// Returns the mean of a property of the law over the steps after the warm-up: over the steps, or over the kept draws.
    pub(crate) fn mean_of(&self, algorithm: Algorithm, by_draw: bool, of: impl Fn(&dyn Law) -> f64) -> f64 {
        if self.schedule.gamma().is_none() {
            return of(self.law.as_ref());
        }
        let at = |step: f64| law(algorithm, Pace { step, ..self.pace }).map_or(f64::NAN, |law| of(law.as_ref()));
        self.schedule.mean(self.steps - self.warmup, by_draw, at)
    }

    /// Returns the mean stationary variance of the momenta after the warm-up, if it depends on the noise.
    pub(crate) fn momentum_variance(&self, algorithm: Algorithm) -> Option<f64> {
        self.law.momentum_variance()?;
        Some(self.mean_of(algorithm, false, |law| law.momentum_variance().unwrap_or(1.0)))
    }

    /// Returns the number of kept draws of each chain.
    pub(crate) fn kept(&self) -> f64 {
        self.schedule.time(self.steps - self.warmup)
    }

    /// Returns the sd of a gradient's noise over all parties, in units of the largest contribution of a record, scaled to a
    /// gradient of all records.
    pub(crate) fn sd(&self, parties: usize) -> f64 {
        (parties as f64).sqrt() * self.noise.units() as f64 / GRADIENT_SCALE / self.probability
    }

    /// Returns the mean variance that sampling adds.
    pub(crate) fn sampling_variance(&self) -> f64 {
        self.samples.as_ref().map_or(0.0, |samples| mean(&samples.diagonal_entries()))
    }

    /// Returns the variance of a gradient's total noise, per component, which equals the number of steps per effective draw of a
    /// mean.
    pub(crate) fn steps_of_a_draw(&self) -> Vec<f64> {
        let hidden = if self.law.counts_samples() { 0.0 } else { self.sampling_variance() };
        self.variance.iter().map(|variance| variance + hidden).collect()
    }

    /// Returns the parties' share of the total noise. It is also the share of the effective draws that the budget could buy at
    /// best.
    pub(crate) fn kappa(&self) -> f64 {
        mean(&self.known) / mean(&self.steps_of_a_draw())
    }
}

impl SettingsInput<'_> {
    fn spec(&self) -> &JobSpec {
        &self.target.spec
    }

    fn kind(&self) -> QueryKind {
        price::kind(self.spec(), self.spec().dimension())
    }

    /// Returns the largest variances of a gradient's noise over typical places of the chains, if each component of its sums has
    /// noise of variance 1.
    fn widest(&self) -> Option<Vec<f64>> {
        let Self { target, scores, coordinates, error, .. } = self;
        // The fixed seed affects neither privacy nor draws.
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        let d = coordinates.dimension();
        let spread = factor(&Matrix::identity(d).plus(error, 1.0));
        let places = std::iter::once(vec![0.0; d]).chain((0..TRIED).map(|_| spread.lower().apply(&normals(&mut rng, d))));
        let width = |u: Vec<f64>| {
            let theta = target.space.theta_inside(&target.spec, &coordinates.plain(&u));
            coordinates.at(*scores, &theta).map(|at| at.width)
        };
        let widest = places.filter_map(width).fold(0.0, f64::max);
        (widest > 0.0).then(|| coordinates.noise(widest, 1.0))
    }

    /// Returns the largest noise of the parties that a step of this pace can use, and its price; `None` if sampling adds more
    /// noise than the step needs.
    fn priced(&self, pace: Pace, unit: &[f64], samples: Option<&Matrix>) -> Result<Option<Priced>, SamplerError> {
        let spec = self.spec();
        let Some(law) = law(spec.algorithm, pace) else { return Err(SamplerError::NotDriven(spec.algorithm)) };
        let most = samples.map_or(0.0, |samples| largest_eigenvalue(samples).max(0.0));
        let batch = spec.sampler.batch.get();
        let variance = match spec.algorithm {
            Algorithm::Sgfs => (Sgfs::mean_variance(pace.step) - most) / mean(unit),
            Algorithm::Sgnht => {
                let (cool, hot) = (2.0 * pace.step * pace.friction, pace.step * pace.step * most);
                if cool + hot < HOT { 2.0 * pace.friction / pace.step / largest(unit) } else { 0.0 }
            }
            _ => {
                let all = largest(&law.variance(unit, &Matrix::zeros(unit.len())));
                (all - most) / largest(unit)
            }
        };
        if variance <= 0.0 {
            return Ok(None);
        }
        let noise = noise_of(variance.sqrt() * batch, self.parties.len())?;
        let share = price::share(spec, self.parties, self.budget, self.kind(), noise)?;
        Ok(Some(Priced { law, pace, noise, share }))
    }

    /// Returns the number of steps of each chain that the budget allows.
    fn affordable(&self, share: f64) -> u64 {
        affordable_steps(self.budget, self.spec().sampler.chains, share)
    }

    /// Returns the ratio of affordable steps to needed ones, or 0 if a release costs more than the job's noise multiplier allows;
    /// at least 1 if the chains can run.
    fn held(&self, priced: &Priced) -> f64 {
        let Some(share) = priced.share else { return 0.0 };
        let affordable = self.affordable(share) as f64;
        match self.kind().is_sampled() {
            // Blocks are planned as a whole, and the budget either allows all of them or not.
            true => affordable / planned_steps(self.spec()).max(1) as f64,
            false if self.budget.admits(share) => affordable,
            false => 0.0,
        }
    }

    fn planned(&self, priced: Priced, unit: &[f64], samples: Option<Matrix>) -> Result<Settings, SamplerError> {
        let spec = self.spec();
        let sampler = &spec.sampler;
        let Priced { law, pace, noise, share } = priced;
        let step_share = share.unwrap_or(f64::INFINITY);
        let affordable = self.affordable(step_share);
        let warmup = match sampler.stochastic.warmup {
            Some(named) => named,
            None if samples.is_some() => STOCHASTIC_WARMUP,
            None if sampler.starts.is_some() && sampler.stochastic.decay.is_none() => 0,
            None => (law.warmup().ceil() as u64).min(affordable / WARMUP_PART),
        };
        let schedule = Schedule::of(spec.algorithm, pace, sampler.stochastic.decay, warmup);
        let steps = affordable.min(warmup.saturating_add(sampler.draws));
        if steps <= warmup {
            return Err(SamplerError::TooSmallABudget { kind: self.kind() });
        }
        let probability = sampler.batch.get();
        let sd = (self.parties.len() as f64).sqrt() * noise.units() as f64 / GRADIENT_SCALE / probability;
        let known: Vec<f64> = unit.iter().map(|one| one * sd * sd).collect();
        let variance = law.variance(&known, samples.as_ref().unwrap_or(&Matrix::zeros(unit.len())));
        let kind = self.kind();
        let mut settings = Settings {
            law,
            pace,
            schedule,
            kind,
            noise,
            variance,
            known,
            samples,
            probability,
            step_share,
            steps,
            warmup,
            planned_ess: 0.0,
        };
        settings.planned_ess = settings.kept() * f64::from(sampler.chains) / mean(&settings.steps_of_a_draw());
        Ok(settings)
    }

    /// Returns the reason why this step and all shorter ones are unsuitable; `samples` is given if their noise is the reason.
    fn refused(&self, step: f64, samples: Option<&Matrix>) -> SamplerError {
        let spec = self.spec();
        let batch = spec.sampler.batch.get();
        let multiplier = spec.privacy.noise_multiplier;
        match samples {
            Some(samples) => SamplerError::SamplesTooSmall { batch, step, variance: mean(&samples.diagonal_entries()) },
            None if self.kind().is_sampled() => SamplerError::TooManyReleases { releases: spec.planned_releases(), batch, step },
            None if multiplier > 0.0 => SamplerError::TooMuchNoise { multiplier, step },
            None => SamplerError::TooSmallABudget { kind: self.kind() },
        }
    }
}

/// Returns the number of steps of each chain in a job with subsampled releases.
fn planned_steps(spec: &JobSpec) -> u64 {
    spec.planned_releases() / u64::from(spec.sampler.chains).max(1)
}

/// Returns the largest noise scale at each party whose noise, over all parties, has at most this sd in units of the largest
/// contribution of a record.
fn noise_of(sd: f64, parties: usize) -> Result<NoiseScale, SamplerError> {
    let units = sd * GRADIENT_SCALE / (parties as f64).sqrt();
    let multiples = ((units / NoiseScale::MULTIPLE as f64) as u64).max(NoiseScale::MIN_UNITS / NoiseScale::MULTIPLE);
    Ok(NoiseScale::from_units(multiples.saturating_mul(NoiseScale::MULTIPLE).min(NoiseScale::MAX_UNITS))?)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
