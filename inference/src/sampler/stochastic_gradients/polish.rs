//! Penalty sweeps from the last states of chains without a test.
//!
//! Their kernel leaves the posterior invariant. It removes the bias of a chain's start as far as it mixes, and no further.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::sampler::penalty::Penalty;
use crate::sampler::{
    Allotment, Located, Matrix, Messages, Polished, RatioWalk, Sampler, SamplerError, Target, factor, normals, proposal,
};
use conclave_common::job::{Algorithm, JobSpec, Radius, Warmup};
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::SamplingProbability;
use conclave_privacy::mechanism::QueryKind;

/// Number of sweeps of a guided walk per effective draw of a mean, for uncorrelated coordinates at the default radius and noise:
/// 29 for 4 parameters, 33 for 10, 34 for 100.
const SWEEPS_OF_A_DRAW: f64 = 31.0;
/// Share of its proposals that are accepted there.
pub(super) const ACCEPTED: f64 = 0.37;
/// Number of places at which a sweep is priced: a log ratio's bound may depend on the chain's place.
const TRIED: usize = 64;

/// The planned sweeps and the lengths of their moves.
pub(crate) struct Sweeps {
    /// Number of sweeps of each chain.
    sweeps: u64,
    chains: u32,
    /// One radius per coordinate.
    radii: Vec<f64>,
    /// Cost of all sweeps, as a share of the job's budget.
    pub(super) share: f64,
    /// Effective draws, per sweep of one chain, of the mean that mixes most slowly.
    draws_of_a_sweep: f64,
}

impl Sweeps {
    /// Plans the sweeps that a job asks for around its search's result, and reserves their part of the budget; `None` if the job
    /// asks for none. Errors: a ratio has no price; the sweeps leave no budget for the steps before them.
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

    /// Returns the effective draws, over all chains, of the mean that mixes most slowly.
    pub(super) fn ess(&self) -> f64 {
        self.sweeps as f64 * f64::from(self.chains) * self.draws_of_a_sweep
    }

    /// Returns the job whose chains make the sweeps, from these states.
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
        // With only these few draws, the run must not stop for futility.
        sampler.force = true;
        sampler.batch = SamplingProbability::ONE;
        // The chains' own random numbers were used by their steps.
        sampler.seed = !sampler.seed;
        job.privacy.blocks = None;
        job.algorithm = Algorithm::Penalty;
        job
    }
}

/// Returns the mixing speed of single-coordinate moves along the most correlated direction, relative to a single coordinate. It
/// is the least eigenvalue of the precision in units of each coordinate's sd given the others. Chains with two coordinates of
/// correlation -.5, -.87 and -.95 needed 59, 247 and 641 sweeps per effective draw; 31 over this value is 62, 231 and 620.
fn slowest(located: &Located) -> f64 {
    let sd = located.conditional_sd();
    let precision = factor(&located.covariance).inverse();
    let scaled = Matrix::from_fn(sd.len(), |i, j| precision[(i, j)] * sd[i] * sd[j]);
    scaled.symmetrised().eigen().into_iter().map(|(value, _)| value).fold(1.0, f64::min).max(0.0)
}

/// Returns the highest price of a sweep of one chain near the search's result, as a share of the budget.
fn sweep_price(target: &Target, located: &Located, radii: &[f64], budget: &Allotment) -> Result<f64, SamplerError> {
    let Target { spec, space, model } = target;
    // The fixed seed affects neither privacy nor draws.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let spread = factor(&located.covariance.clone().plus(&located.error, 1.0));
    let d = radii.len();
    let mut highest = vec![0.0_f64; d];
    for tried in 0..TRIED {
        let by = if tried == 0 { vec![0.0; d] } else { spread.lower().apply(&normals(&mut rng, d)) };
        let from: Vec<f64> = located.u.iter().zip(&by).map(|(u, by)| u + by).collect();
        let at = space.theta_inside(spec, &from);
        for (k, most) in highest.iter_mut().enumerate() {
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
    Ok(highest.iter().sum())
}

/// The sweeps of a run.
pub(in crate::sampler) struct Polish {
    planned: Sweeps,
    /// The chains that make them, once those without a test have ended.
    walk: Option<Box<RatioWalk<Penalty>>>,
}

impl Polish {
    pub(in crate::sampler) fn new(planned: Sweeps) -> Self {
        Self { planned, walk: None }
    }

    /// Starts the sweeps from these states, after the messages before them. Errors: a scale is out of range.
    pub(in crate::sampler) fn begin(
        &mut self,
        target: &Target,
        parties: &[PartyMetadata],
        starts: Vec<Vec<f64>>,
        messages: Messages,
    ) -> Result<(), SamplerError> {
        let walk = RatioWalk::continuing(&self.planned.job(target, starts), parties, Penalty, messages)?;
        self.walk = Some(Box::new(walk));
        Ok(())
    }

    /// Returns the chains that make the sweeps, once they have started.
    pub(in crate::sampler) fn walk(&self) -> Option<&RatioWalk<Penalty>> {
        self.walk.as_deref()
    }

    pub(in crate::sampler) fn walk_mut(&mut self) -> Option<&mut RatioWalk<Penalty>> {
        self.walk.as_deref_mut()
    }

    /// Returns the report on the sweeps after this number of steps of each chain.
    pub(in crate::sampler) fn diagnostics(&self, steps: u64) -> Polished {
        let Sweeps { sweeps, share, .. } = self.planned;
        let acceptance_rate = self.walk().and_then(Sampler::acceptance_rate).unwrap_or(0.0);
        Polished { sweeps, steps, budget_share: share, planned_ess: self.planned.ess(), acceptance_rate }
    }
}
