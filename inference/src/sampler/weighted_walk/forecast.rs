//! Forecast of weighted chains of ratios for a guessed posterior.

use super::choice::choose;
use super::law::{Setup, WalkPlan};
use crate::sampler::hmc::SEARCH;
use crate::sampler::hmc::weighting::{PLAIN_SHARE, guessed_frame};
use crate::sampler::noisy_statistics::WeightedStrategy;
use crate::sampler::{Allotment, Foreseen, GradientSearch, SamplerError, Target, expected_acceptance};
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

/// Forecasts the run of a job whose posterior has this mean and precision, in unconstrained values, as it chooses its weights.
///
/// # Errors
/// The job weights no record; those of [`super::Weighting::new`].
pub(in crate::sampler) fn foresee(
    spec: &JobSpec,
    parties: &[PartyMetadata],
    mean: &[f64],
    precision: &[Vec<f64>],
) -> Result<Foreseen, SamplerError> {
    if !spec.weighs_chains() {
        return Err(SamplerError::NotDriven(spec.algorithm));
    }
    let target = Target::new(spec);
    let mut budget = Allotment::new(spec, parties)?;
    let mut search_share = spec.sampler.locate_share;
    let part = budget.split_off(search_share);
    let learns = WeightedStrategy::of_chains(&target, target.scores()?.as_ref(), parties, &part)?.is_some();
    let found = match learns {
        true => guessed_frame(&target, parties, part, mean, precision)?,
        false => GradientSearch::guessed(&target, parties, part, mean, precision)?,
    };
    let plan = match choose(&target, &found, &budget)? {
        Some(plan) => plan,
        None => {
            if found.frame.is_some() {
                let _ = budget.split_off(PLAIN_SHARE);
                search_share += PLAIN_SHARE * (1.0 - search_share);
            }
            Setup::new(&found).plan(&target, &found, &budget, Vec::new())?
        }
    };
    let WalkPlan { planned, .. } = plan;
    let (warmup, draws) = planned.moves;
    if draws == 0 {
        return Err(SamplerError::TooSmallABudget { kind: conclave_privacy::mechanism::QueryKind::Ratio });
    }
    Ok(Foreseen {
        search: SEARCH,
        search_share,
        warmup,
        draws,
        kept: draws,
        start: None,
        step_share: planned.share,
        ess: vec![planned.ess; mean.len()],
        messages_of_a_step: 1,
        acceptance: expected_acceptance(0.0, spec.ratio_variance().sqrt()),
        polish: None,
    })
}
