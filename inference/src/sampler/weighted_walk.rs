//! Chains of ratios that may weight records: a search for a frame, the choice between the plain posterior and a weighted one, and the
//! moves of the chains.
//!
//! The weights follow theta' in every query of a chain. They are fixed before the first of them, so that all ratios are of one
//! likelihood. Moves go along vectors in which the posterior that the search found is standard normal. A ratio informs of one direction
//! alone, but its bound in the frame is the length of a whole step: where the declared bounds do not limit it further, chains of gradients
//! have `2 d` times the effective draws from the same frame in `d` dimensions.

mod forecast;
mod law;

use super::hmc::weighting::{ENOUGH, HARDLY_MORE, PLAIN_SHARE, RADII};
use super::noisy_statistics::{ChainFrame, WeightedStrategy};
use super::{
    Allotment, Forecast, Found, GradientSearch, Inference, LEAST_PLANNED, Located, Matrix, SamplerError, Target, Weighted,
    centred_records, frame_numbers,
};
use conclave_common::job::Weights;
use conclave_common::query::{Draw, PartyMetadata};
pub(super) use forecast::foresee;
use law::{Planned, Setup};

/// The moves of the chains of a job that may weight records.
pub(super) struct WalkPlan {
    /// The place around which chains start.
    pub(super) located: Located,
    /// Vectors in which the posterior is standard normal.
    pub(super) directions: Vec<Vec<f64>>,
    /// The weights, which follow theta' in a query; none for plain chains.
    pub(super) numbers: Vec<f64>,
    planned: Planned,
    weighted: Option<Weighted>,
}

/// The part of a walk that a job has if it may weight records.
pub(super) struct Weighting {
    budget: Allotment,
    parties: Vec<PartyMetadata>,
    plan: Option<WalkPlan>,
    /// Set if the budget allows too few draws: the forecast, and the search that can be answered from.
    few: Option<(Forecast, Box<GradientSearch>)>,
    /// The report on draws from the search's releases, if the run ended with it.
    learnt: Option<Inference>,
}

/// What follows a search.
pub(super) enum Next {
    Search(Box<GradientSearch>),
    Chains,
}

impl Weighting {
    /// Starts the search for a frame, with its share of the budget. Where no frame can be learnt, the search is for the plain posterior.
    ///
    /// # Errors
    /// Those of [`GradientSearch::new`]; the job insists on weights, and a party protects another unit than rows.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata]) -> Result<(Self, Box<GradientSearch>), SamplerError> {
        let mut budget = Allotment::new(&target.spec, parties)?;
        let part = budget.split_off(target.spec.sampler.locate_share);
        let search = match WeightedStrategy::of_chains(target, target.scores()?.as_ref(), parties, &part)? {
            Some(strategy) => GradientSearch::weighted(strategy, centred_records(parties) as f64, part),
            None => GradientSearch::new(target, parties, part)?,
        };
        Ok((Self { budget, parties: parties.to_vec(), plan: None, few: None, learnt: None }, search.into()))
    }

    /// Continues after a search: by another one for the plain posterior if its chains are as good, else by the chains.
    ///
    /// # Errors
    /// A query has no price.
    pub(super) fn searched(&mut self, target: &Target, search: Box<GradientSearch>, found: Found) -> Result<Next, SamplerError> {
        let plan = match choose(target, &found, &self.budget)? {
            Some(plan) => plan,
            None if found.frame.is_some() => {
                let part = self.budget.split_off(PLAIN_SHARE);
                return Ok(Next::Search(GradientSearch::plain_after(target, &self.parties, part, &found)?.into()));
            }
            None => Setup::new(&found).plan(target, &found, &self.budget, Vec::new())?,
        };
        let spec = &target.spec;
        if plan.planned.is_short && plan.planned.ess < LEAST_PLANNED && !spec.sampler.force {
            let epsilon = Forecast::epsilon_for(1.0, plan.planned.times_for(LEAST_PLANNED), &spec.privacy.budget);
            self.few = Some((Forecast::Few { ess: plan.planned.ess, epsilon }, search));
        }
        self.plan = Some(plan);
        Ok(Next::Chains)
    }

    pub(super) fn plan(&self) -> Option<&WalkPlan> {
        self.plan.as_ref()
    }

    /// Returns the forecast of too few draws, until chains have gone on in spite of it.
    pub(super) fn few(&self) -> Option<&Forecast> {
        self.few.as_ref().map(|(few, _)| few)
    }

    /// Records that the chains have moved.
    pub(super) fn moved(&mut self) {
        self.few = None;
    }

    /// Draws from what the search released, if the run ends with it.
    ///
    /// # Errors
    /// Those of [`GradientSearch::learnt`].
    pub(super) fn conclude(&mut self, target: &Target, message: u64) -> Result<Vec<Draw>, SamplerError> {
        let Some((_, search)) = self.few.as_ref().filter(|_| self.learnt.is_none()) else { return Ok(Vec::new()) };
        let (draws, inference) = search.learnt(target, message)?;
        self.learnt = Some(inference);
        Ok(draws)
    }

    /// Returns the report on draws from the search, if there are any, and that on weights.
    pub(super) fn report(&self) -> (Option<Inference>, Option<Weighted>) {
        let of_chains = || self.plan.as_ref().and_then(|plan| plan.weighted.clone());
        (self.learnt.clone(), self.learnt.as_ref().map_or_else(of_chains, |learnt| learnt.weighted.clone()))
    }

    /// Returns the words on the chains' weights, if they have any.
    pub(super) fn words(&self) -> Option<String> {
        self.plan.as_ref()?.weighted.as_ref().map(Weighted::words)
    }
}

/// Returns the plan of weighted chains at a search's result: the widest radius with enough effective draws, else that with most.
/// `None` for a result without a frame, where no frame fits, and where plain chains are as good and the job admits them.
fn choose(target: &Target, found: &Found, budget: &Allotment) -> Result<Option<WalkPlan>, SamplerError> {
    let Some(frame) = &found.frame else { return Ok(None) };
    let setup = Setup::new(found);
    let plain = {
        let mut left = budget.clone();
        let _ = left.split_off(PLAIN_SHARE);
        setup.plan(target, found, &left, Vec::new())?.planned.ess
    };
    let admitted = if target.spec.weights == Weights::Auto { plain } else { 0.0 };
    if admitted >= ENOUGH {
        return Ok(None);
    }
    let mut best: Option<WalkPlan> = None;
    for radius in RADII {
        let Some(shape) = frame.shape(&found.coding, radius) else { continue };
        let numbers = frame_numbers(&found.coding, &shape).into_iter().chain([ChainFrame::TRACE]).collect();
        let mut plan = setup.plan(target, found, budget, numbers)?;
        plan.weighted = Some(frame.weighted(radius, plain.max(1.0).sqrt().recip()));
        if best.as_ref().is_none_or(|best| plan.planned.ess > best.planned.ess) {
            best = Some(plan);
        }
        if best.as_ref().is_some_and(|best| best.planned.ess >= ENOUGH) {
            break;
        }
    }
    Ok(best.filter(|best| admitted == 0.0 || HARDLY_MORE * admitted < best.planned.ess))
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
