//! The choice between chains on the plain posterior and on a weighted one.
//!
//! Candidates are, in order: no weights, if the job admits that, and leverage weights of narrower and narrower radii. The first one
//! with [`ENOUGH`] planned effective draws is chosen, else the one with most. Every figure follows from released and public numbers.

use super::Settings;
pub(in crate::sampler) use super::outlook::ENOUGH;
use super::outlook::search_share;
use crate::sampler::adequacy::planned_for_shape;
use crate::sampler::gradient_search::GradientSearch;
use crate::sampler::noisy_statistics::gaussian::GaussianPrior;
use crate::sampler::noisy_statistics::{ChainFrame, WeightedStrategy};
use crate::sampler::{Allotment, Coordinates, Found, Matrix, SamplerError, Target, centred_records};
use conclave_common::job::Weights;
use conclave_common::query::PartyMetadata;

/// Squared radii of the ball, in mean squared lengths of a record, in the order in which they are tried.
const RADII: [f64; 4] = [4.0, 2.0, 1.4, 1.0];
/// Ratio of effective draws at which the error of plain chains is 1.1 times that of weighted ones.
pub(in crate::sampler) const HARDLY_MORE: f64 = 1.21;
/// Share of the budget for a further search where it leads to plain chains.
pub(in crate::sampler) const PLAIN_SHARE: f64 = 0.05;

/// Chains on a weighted posterior, as planned.
pub(crate) struct WeightedPlan {
    pub(crate) coordinates: Coordinates,
    pub(crate) settings: Settings,
    pub(crate) radius: f64,
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

/// Returns the plan of the widest radius with [`ENOUGH`] effective draws, else that with most; `None` where no frame fits.
///
/// # Errors
/// No radius has a plan, and one of them had this error.
pub(in crate::sampler) fn widest<P>(
    ess: impl Fn(&P) -> f64,
    mut plan: impl FnMut(f64) -> Result<Option<P>, SamplerError>,
) -> Result<Option<P>, SamplerError> {
    let (mut best, mut fault): (Option<P>, _) = (None, None);
    for radius in RADII {
        match plan(radius) {
            Ok(Some(planned)) if best.as_ref().is_none_or(|best| ess(&planned) > ess(best)) => best = Some(planned),
            Ok(_) => {}
            Err(why) => fault = Some(why),
        }
        if best.as_ref().is_some_and(|best| ess(best) >= ENOUGH) {
            break;
        }
    }
    match (best, fault) {
        (None, Some(why)) => Err(why),
        (best, _) => Ok(best),
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
    let best = widest(
        |plan: &WeightedPlan| plan.settings.planned_ess,
        |radius| {
            let Some(coordinates) = Coordinates::weighted(target, found, radius) else { return Ok(None) };
            let settings = Settings::new(target, scores.as_ref(), &coordinates, budget, parties)?;
            Ok(Some(WeightedPlan { coordinates, settings, radius }))
        },
    );
    match best {
        Ok(best) => {
            Ok(best
                .filter(|best| plain == 0.0 || HARDLY_MORE * plain < planned_for_shape(best.settings.planned_ess, found.sharp)))
        }
        Err(_) if plain > 0.0 => Ok(None),
        Err(why) => Err(why),
    }
}

/// Starts the search of a job's chains with its share of the budget: with weights, where the job admits them, a frame can be learnt, and
/// plain chains may have too few effective draws.
///
/// # Errors
/// Those of [`GradientSearch::new`]; the job insists on weights, and a party protects another unit than rows.
pub(super) fn search(target: &Target, parties: &[PartyMetadata], budget: &mut Allotment) -> Result<GradientSearch, SamplerError> {
    if let Some((share, strategy)) = frame_search(target, parties, budget)? {
        return Ok(GradientSearch::weighted(strategy, centred_records(parties) as f64, budget.split_off(share)));
    }
    GradientSearch::new(target, parties, budget.split_off(target.spec.gradient_search_share()))
}

/// Returns the search for a frame and its share of the budget, if there is one.
fn frame_search(
    target: &Target,
    parties: &[PartyMetadata],
    budget: &Allotment,
) -> Result<Option<(f64, WeightedStrategy)>, SamplerError> {
    let Some(share) = search_share(target, parties)? else { return Ok(None) };
    let part = budget.clone().split_off(share);
    let strategy = WeightedStrategy::of_chains(target, target.scores()?.as_ref(), parties, &part)?;
    Ok(strategy.map(|strategy| (share, strategy)))
}

/// Returns the result of a job's search that would find a posterior with this mean and precision, in unconstrained values, with the
/// search's share of the budget, which is subtracted.
///
/// # Errors
/// Those of [`search`].
pub(super) fn guessed(
    target: &Target,
    parties: &[PartyMetadata],
    budget: &mut Allotment,
    mean: &[f64],
    precision: &[Vec<f64>],
) -> Result<(Found, f64), SamplerError> {
    let Some((share, _)) = frame_search(target, parties, budget)? else {
        let share = target.spec.gradient_search_share();
        return Ok((GradientSearch::guessed(target, parties, budget.split_off(share), mean, precision)?, share));
    };
    Ok((guessed_frame(target, parties, budget.split_off(share), mean, precision)?, share))
}

/// Returns the result of a search for a frame, with this part of the budget, that would find a posterior with this mean and precision.
///
/// # Errors
/// Those of [`GradientSearch::guessed`].
pub(in crate::sampler) fn guessed_frame(
    target: &Target,
    parties: &[PartyMetadata],
    part: Allotment,
    mean: &[f64],
    precision: &[Vec<f64>],
) -> Result<Found, SamplerError> {
    let found = GradientSearch::guessed(target, parties, part, mean, precision)?;
    let prior = GaussianPrior::of(&target.space);
    let information = Matrix::from_fn(mean.len(), |i, j| precision[i][j] - if i == j { prior.precision[i] } else { 0.0 });
    let records = centred_records(parties).max(1) as f64;
    let frame = ChainFrame::guessed(target.scores()?.as_ref(), &found.coding, &information, records);
    Ok(Found { frame: Some(frame), ..found })
}
