//! The law of guided moves under the remaining budget: their price at a search's result, and their effective draws.

use crate::sampler::adequacy::planned_for_shape;
use crate::sampler::{Allotment, Found, Located, Matrix, SamplerError, Target, Weighted};
use conclave_common::job::{ProposalKind, Warmup};
use conclave_privacy::mechanism::QueryKind;

/// Effective draws per move and direction, in units of the squared length of a move in posterior sds over the variance of the noise.
const KAPPA: f64 = 0.45;

/// The moves of the chains of a job that may weight records.
pub(in crate::sampler) struct WalkPlan {
    /// The place around which chains start.
    pub(in crate::sampler) located: Located,
    /// Vectors in which the posterior is standard normal.
    pub(in crate::sampler) directions: Vec<Vec<f64>>,
    /// The weights, which follow theta' in a query; none for plain chains.
    pub(in crate::sampler) numbers: Vec<f64>,
    pub(super) planned: Planned,
    pub(super) weighted: Option<Weighted>,
}

/// Chains' moves and their number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Planned {
    /// Effective draws of all chains.
    pub(super) ess: f64,
    /// Moves of each chain before its kept ones, and the kept ones.
    pub(super) moves: (u64, u64),
    /// Price of one move of every chain, as a share of the budget.
    pub(super) share: f64,
    /// Share of the budget for all moves.
    left: f64,
    /// Effective draws of each kept move of every chain.
    of_a_move: f64,
    /// True if the budget and not the job limits the number of moves.
    pub(super) is_short: bool,
}

impl Planned {
    /// Returns the factor on the budget that gives this number of effective draws.
    pub(super) fn times_for(&self, ess: f64) -> f64 {
        (self.moves.0 as f64 + ess / self.of_a_move) * self.share / self.left.max(f64::MIN_POSITIVE)
    }
}

/// A search's result as chains of ratios start from it.
pub(super) struct Setup {
    centre: Vec<f64>,
    directions: Vec<Vec<f64>>,
}

impl Setup {
    pub(super) fn new(found: &Found) -> Self {
        let Located { u, covariance, .. } = Located::of(found);
        Self { centre: u, directions: directions(&covariance) }
    }

    /// Returns the plan of chains with these weights, under this budget.
    ///
    /// # Errors
    /// A move has no price.
    pub(super) fn plan(
        &self,
        target: &Target,
        found: &Found,
        budget: &Allotment,
        numbers: Vec<f64>,
    ) -> Result<WalkPlan, SamplerError> {
        let planned = self.planned(target, found.sharp, budget, &numbers)?;
        let directions = self.directions.clone();
        Ok(WalkPlan { located: Located::of(found), directions, numbers, planned, weighted: None })
    }

    fn planned(&self, target: &Target, sharp: bool, budget: &Allotment, numbers: &[f64]) -> Result<Planned, SamplerError> {
        let (sampler, order) = (&target.spec.sampler, self.centre.len() as u64);
        let chains = f64::from(sampler.chains);
        let share = chains * self.price(target, budget, numbers)?;
        let affordable = (budget.left() / share) as u64;
        let before = order.saturating_mul(match sampler.warmup {
            Warmup::Sweeps(sweeps) => sweeps,
            Warmup::UntilRhat { max, .. } => max,
        });
        let kept = affordable.saturating_sub(before).min(sampler.draws);
        let length = ProposalKind::ONE_COORDINATE * ProposalKind::ONE_COORDINATE;
        let of_a_move = planned_for_shape(chains * KAPPA * length / (target.spec.ratio_variance() * order as f64), sharp);
        Ok(Planned {
            ess: kept as f64 * of_a_move,
            moves: (before, kept),
            share,
            left: budget.left(),
            of_a_move,
            is_short: kept < sampler.draws,
        })
    }

    /// Returns the mean price of a move around the centre, over the directions.
    fn price(&self, target: &Target, budget: &Allotment, numbers: &[f64]) -> Result<f64, SamplerError> {
        let (spec, model) = (&target.spec, target.model.as_ref());
        let place = |direction: &[f64], by: f64| {
            let u: Vec<f64> = self.centre.iter().zip(direction).map(|(u, v)| u + by * v).collect();
            target.space.theta_inside(spec, &u)
        };
        let mut sum = 0.0;
        for direction in &self.directions {
            let half = 0.5 * ProposalKind::ONE_COORDINATE;
            let (from, mut to) = (place(direction, -half), place(direction, half));
            to.extend(numbers);
            sum += budget.price(spec, model, (QueryKind::Ratio, spec.privacy.noise), (&from, &to))?;
        }
        Ok(sum / self.directions.len().max(1) as f64)
    }
}

/// Returns vectors in which a normal law with this covariance is standard, as close to the coordinates' axes as possible: the symmetric
/// root of the correlations, scaled.
fn directions(covariance: &Matrix) -> Vec<Vec<f64>> {
    let sd: Vec<f64> = covariance.diagonal_entries().into_iter().map(f64::sqrt).collect();
    let order = sd.len();
    let correlation = Matrix::from_fn(order, |i, j| covariance[(i, j)] / (sd[i] * sd[j]));
    let root = correlation.map_eigenvalues(|value| value.max(0.0).sqrt());
    (0..order).map(|k| (0..order).map(|i| sd[i] * root[(i, k)]).collect()).collect()
}
