//! Penalty sweeps from where chains without a test ended.
//!
//! Their kernel leaves the posterior as it is. It takes the bias of where a chain starts off as far as it mixes, and no further.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::diagnostics::Polished;
use crate::sampler::error::SamplerError;
use crate::sampler::gradient_search::Located;
use crate::sampler::hmc::normals;
use crate::sampler::interface::Sampler;
use crate::sampler::matrix::Matrix;
use crate::sampler::messages::Messages;
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::penalty::Penalty;
use crate::sampler::proposal;
use crate::sampler::ratio_walk::RatioWalk;
use crate::sampler::target::Target;
use conclave_common::job::{Algorithm, JobSpec, Radius, Warmup};
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::SamplingProbability;
use conclave_privacy::mechanism::QueryKind;

/// Sweeps of a guided walk to an effective draw of a mean where no coordinates go together, at the radius and the noise that are usual: 29 of 4
/// parameters, 33 of 10, 34 of 100.
const SWEEPS_OF_A_DRAW: f64 = 31.0;
/// The share of its proposals that are accepted there.
pub(super) const ACCEPTED: f64 = 0.37;
/// Places at which a sweep is priced: a log ratio's bound may depend on where the chain is.
const TRIED: usize = 64;

/// The sweeps that are planned, and how far their moves go.
pub(crate) struct Sweeps {
    /// Of each chain.
    sweeps: u64,
    chains: u32,
    /// One per coordinate.
    radii: Vec<f64>,
    /// What all of them come to, as a share of the job's budget.
    pub(super) share: f64,
    /// The effective draws that a sweep of one chain makes of the mean that it mixes slowest.
    draws_of_a_sweep: f64,
}

impl Sweeps {
    /// The sweeps that a job asks for about what its search found, and their part of the budget; `None` of a job that asks for none.
    ///
    /// # Errors
    /// A ratio without a price; sweeps that leave no budget for what comes before them.
    pub(crate) fn planned(target: &Target, located: &Located, budget: &mut Allotment) -> Result<Option<Self>, SamplerError> {
        let spec = &target.spec;
        if !spec.is_polished() {
            return Ok(None);
        }
        let radii = target
            .given_radii()
            .unwrap_or_else(|| proposal::radii(spec.sampler.proposal, &located.conditional_sd(), &target.space.boxes));
        let (sweeps, chains) = (spec.sampler.stochastic.polish, spec.sampler.chains);
        let share = sweep_price(target, located, &radii, budget)? * sweeps as f64 * f64::from(chains);
        if share >= budget.left() {
            return Err(SamplerError::TooMuchPolish { sweeps, budgets: share / budget.left().max(f64::MIN_POSITIVE) });
        }
        budget.split_off(share);
        Ok(Some(Self { sweeps, chains, radii, share, draws_of_a_sweep: slowest(located) / SWEEPS_OF_A_DRAW }))
    }

    /// Effective draws of the mean that mixes slowest, of all chains together.
    pub(super) fn ess(&self) -> f64 {
        self.sweeps as f64 * f64::from(self.chains) * self.draws_of_a_sweep
    }

    /// The job whose chains make the sweeps, from these states.
    fn job(&self, target: &Target, starts: Vec<Vec<f64>>) -> JobSpec {
        let mut job = target.spec.clone();
        let mut radii = vec![1.0; job.dimension()];
        target.space.parameters.iter().zip(&self.radii).for_each(|(parameter, radius)| radii[*parameter] = *radius);
        let sampler = &mut job.sampler;
        sampler.draws = target.spec.draws_asked();
        sampler.warmup = Warmup::Sweeps(0);
        sampler.radius = Radius::Fixed(radii);
        sampler.locate_share = 0.0;
        (sampler.start, sampler.starts) = (None, Some(starts));
        // So few draws are no run of which to say that it has no hope.
        sampler.force = true;
        sampler.batch = SamplingProbability::ONE;
        // The chains' own numbers were used up by their steps.
        sampler.seed = !sampler.seed;
        job.privacy.blocks = None;
        job.algorithm = Algorithm::Penalty;
        job
    }
}

/// How slowly moves of single coordinates mix the direction along which coordinates go together most, over how they mix one alone: the least
/// eigenvalue of the precision in units of each coordinate's sd given the others. Chains of two that go together by -.5, -.87 and -.95 took 59, 247 and
/// 641 sweeps to an effective draw, where 31 over it is 62, 231 and 620.
fn slowest(located: &Located) -> f64 {
    let sd = located.conditional_sd();
    let precision = factor(&located.covariance).inverse();
    let scaled = Matrix::from_fn(sd.len(), |i, j| precision[(i, j)] * sd[i] * sd[j]);
    scaled.symmetrised().eigen().into_iter().map(|(value, _)| value).fold(1.0, f64::min).max(0.0)
}

/// The most that a sweep of one chain costs where the posterior is about as found, as a share of the budget.
fn sweep_price(target: &Target, located: &Located, radii: &[f64], budget: &Allotment) -> Result<f64, SamplerError> {
    let Target { spec, space, model } = target;
    // Of no consequence to anybody's privacy or draws: the same ones always.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let spread = factor(&located.covariance.clone().plus(&located.error, 1.0));
    let d = radii.len();
    let mut dearest = vec![0.0_f64; d];
    for tried in 0..TRIED {
        let by = if tried == 0 { vec![0.0; d] } else { spread.lower().apply(&normals(&mut rng, d)) };
        let from: Vec<f64> = located.u.iter().zip(&by).map(|(u, by)| u + by).collect();
        let at = space.theta_inside(spec, &from);
        for (k, most) in dearest.iter_mut().enumerate() {
            let longest = radii[k] * (1.0 + spec.sampler.jitter);
            for step in [-longest, longest] {
                let mut to = from.clone();
                to[k] += step;
                let to = space.theta_inside(spec, &to);
                let price = budget.price(spec, model.as_ref(), (QueryKind::Ratio, spec.privacy.noise), (&at, &to))?;
                *most = most.max(price);
            }
        }
    }
    Ok(dearest.iter().sum())
}

/// The sweeps of a run.
pub(super) struct Polish {
    planned: Sweeps,
    /// The chains that make them, once those without a test are over.
    walk: Option<Box<RatioWalk<Penalty>>>,
}

impl Polish {
    pub(super) fn new(planned: Sweeps) -> Self {
        Self { planned, walk: None }
    }

    /// Begins the sweeps from these states, after the messages that were asked before them.
    ///
    /// # Errors
    /// A scale out of range.
    pub(super) fn begin(
        &mut self,
        target: &Target,
        parties: &[PartyMetadata],
        starts: Vec<Vec<f64>>,
        messages: Messages,
    ) -> Result<(), SamplerError> {
        let walk = RatioWalk::going_on(&self.planned.job(target, starts), parties, Penalty, messages)?;
        self.walk = Some(Box::new(walk));
        Ok(())
    }

    /// The chains that make the sweeps, once they have begun.
    pub(super) fn walk(&self) -> Option<&RatioWalk<Penalty>> {
        self.walk.as_deref()
    }

    /// The same, to be walked.
    pub(super) fn walk_mut(&mut self) -> Option<&mut RatioWalk<Penalty>> {
        self.walk.as_deref_mut()
    }

    /// What a result says of them, after so many steps of each chain.
    pub(super) fn told(&self, steps: u64) -> Polished {
        let Sweeps { sweeps, share, .. } = self.planned;
        let acceptance_rate = self.walk().and_then(Sampler::acceptance_rate).unwrap_or(0.0);
        Polished { sweeps, steps, budget_share: share, planned_ess: self.planned.ess(), acceptance_rate }
    }
}
