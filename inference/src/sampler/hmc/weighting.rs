//! The choice between chains on the plain posterior and on a weighted one.
//!
//! Candidates are, in order: no weights, if the job admits that, and leverage weights of narrower and narrower radii. The first one
//! with [`ENOUGH`] planned effective draws is chosen, else the one with most. Every figure follows from released and public numbers.

use super::Settings;
use super::forecast::plain_outlook;
use crate::sampler::adequacy::planned_for_shape;
use crate::sampler::{Allotment, Coordinates, Found, SamplerError, Target};
use conclave_common::job::Weights;
use conclave_common::query::PartyMetadata;

/// Squared radii of the ball, in mean squared lengths of a record, in the order in which they are tried.
const RADII: [f64; 4] = [4.0, 2.0, 1.4, 1.0];
/// Planned effective draws that are enough.
const ENOUGH: f64 = 40.0;
/// Ratio of effective draws at which the error of plain chains is 1.1 times that of weighted ones.
const HARDLY_MORE: f64 = 1.21;
/// Default share of the budget for the search of weighted chains. A smaller one ends too far from the posterior.
const SEARCH_SHARE: f64 = 0.15;
/// Share of the budget for a further search where it leads to plain chains.
pub(crate) const PLAIN_SHARE: f64 = 0.05;

/// Chains on a weighted posterior, as planned.
pub(crate) struct WeightedPlan {
    pub(crate) coordinates: Coordinates,
    pub(crate) settings: Settings,
    pub(crate) radius: f64,
}

/// Returns the share of the budget for a search with weights, if the job's chains may be weighted; `None` where plain chains have enough
/// effective draws even in the worse case, so that nothing need be learnt.
///
/// # Errors
/// Those of [`super::outlook`].
pub(in crate::sampler) fn search_share(target: &Target, parties: &[PartyMetadata]) -> Result<Option<f64>, SamplerError> {
    if !target.spec.weighs_chains() {
        return Ok(None);
    }
    let sharp = target.spec.weights == Weights::Auto && plain_outlook(&target.spec, parties)?.worse <= ENOUGH.sqrt().recip();
    Ok((!sharp).then(|| target.spec.sampler.hmc.locate_share.unwrap_or(SEARCH_SHARE)))
}

/// Returns the planned effective draws of plain chains at a search's result, with a share of the budget less; 0 where the budget is too
/// small for a step.
///
/// # Errors
/// A charge is out of range.
pub(super) fn plain_draws(target: &Target, found: &Found, budget: &Allotment, parties: usize) -> Result<f64, SamplerError> {
    let mut left = budget.clone();
    let _ = left.split_off(PLAIN_SHARE);
    let found = Found { frame: None, ..found.clone() };
    let (scores, sharp) = (target.scores()?, found.sharp);
    let coordinates = Coordinates::new(target, scores.as_ref(), found);
    match Settings::new(target, scores.as_ref(), &coordinates, &left, parties) {
        Ok(settings) => Ok(planned_for_shape(settings.planned_ess, sharp)),
        Err(SamplerError::TooSmallABudget { .. } | SamplerError::TooMuchNoise { .. }) => Ok(0.0),
        Err(other) => Err(other),
    }
}

/// Returns the plan of weighted chains at a search's result; `None` for one without a frame, where no frame fits, and where plain chains
/// are as good and the job admits them.
///
/// # Errors
/// A charge is out of range; the budget is too small for a step of any candidate.
pub(super) fn weighted_plan(
    target: &Target,
    found: &Found,
    budget: &Allotment,
    parties: usize,
) -> Result<Option<WeightedPlan>, SamplerError> {
    if found.frame.is_none() {
        return Ok(None);
    }
    let plain = match target.spec.weights {
        Weights::Auto => plain_draws(target, found, budget, parties)?,
        _ => 0.0,
    };
    if plain >= ENOUGH {
        return Ok(None);
    }
    let scores = target.scores()?;
    let (mut best, mut fault): (Option<WeightedPlan>, _) = (None, None);
    for radius in RADII {
        let Some(coordinates) = Coordinates::weighted(target, found, radius) else { continue };
        match Settings::new(target, scores.as_ref(), &coordinates, budget, parties) {
            Ok(settings) if best.as_ref().is_none_or(|best| settings.planned_ess > best.settings.planned_ess) => {
                best = Some(WeightedPlan { coordinates, settings, radius });
            }
            Ok(_) => {}
            Err(why) => fault = Some(why),
        }
        if best.as_ref().is_some_and(|best| best.settings.planned_ess >= ENOUGH) {
            break;
        }
    }
    let planned = best.as_ref().map_or(0.0, |best| planned_for_shape(best.settings.planned_ess, found.sharp));
    match (best, fault) {
        (Some(_), _) if HARDLY_MORE * plain >= planned && plain > 0.0 => Ok(None),
        (None, Some(why)) if plain == 0.0 => Err(why),
        (best, _) => Ok(best),
    }
}
