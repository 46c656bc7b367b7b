//! The expected error of a job before its first query, and the search that follows from it.

use super::settings::{EFFICIENCY, STEPS};
use super::{dp_hmc, law};
use crate::sampler::noisy_statistics::expected::OVERHEAD;
use crate::sampler::noisy_statistics::{WeightedStrategy, of_scores, weighted_outlook};
use crate::sampler::{Allotment, Outlook, SamplerError, Target};
use conclave_common::job::{JobSpec, Weights};
use conclave_common::query::PartyMetadata;

/// Planned effective draws that are enough.
pub(in crate::sampler) const ENOUGH: f64 = 40.0;
/// Default share of the budget for the search of weighted chains. A smaller one ends too far from the posterior.
const SEARCH_SHARE: f64 = 0.15;

/// Returns the share of the budget for a search with weights, if the job's chains may be weighted; `None` where plain chains have enough
/// effective draws even in the worse case, so that nothing need be learnt.
///
/// # Errors
/// Those of [`outlook`].
pub(super) fn search_share(target: &Target, parties: &[PartyMetadata]) -> Result<Option<f64>, SamplerError> {
    if !target.spec.weighs_chains() {
        return Ok(None);
    }
    let sharp = target.spec.weights == Weights::Auto && plain_outlook(&target.spec, parties)?.worse <= ENOUGH.sqrt().recip();
    Ok((!sharp).then(|| target.spec.sampler.hmc.locate_share.unwrap_or(SEARCH_SHARE)))
}

/// Returns the Monte Carlo error of a posterior mean, in posterior sds, in the best case and in a worse one: one over the root of
/// the effective draws. Errors: the model has no gradients; the budget is invalid; a query has no price.
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    let hmc = spec.sampler.hmc;
    let (chains, draws) = (f64::from(spec.sampler.chains), spec.sampler.draws as f64);
    if spec.runs_dp_hmc() {
        let (of_budget, of_draw) = dp_hmc::price_of_a_draw(spec);
        return by_gradients(spec, parties, (1.0, of_budget), chains * draws / of_draw);
    }
    let (step, gamma) = (hmc.step.unwrap_or(STEPS[0]), hmc.friction.unwrap_or(1.0));
    let most = EFFICIENCY * chains * draws / law::variance_of(step, gamma);
    let plain = by_gradients(spec, parties, (EFFICIENCY, 1.0), most)?;
    let target = Target::new(spec);
    let Some(share) = search_share(&target, parties)? else { return Ok(plain) };
    let Some(once) = of_frames(&target, parties, share)? else { return Ok(plain) };
    let weighted = errors(once, (1.0 - OVERHEAD) / (1.0 - share) / EFFICIENCY, most);
    Ok(match spec.weights {
        Weights::Auto => Outlook { best: weighted.best.min(plain.best), worse: weighted.worse.min(plain.worse) },
        _ => weighted,
    })
}

/// Returns the error of one gradient of records with leverage weights under the whole budget; `None` where no frame can be learnt. In the
/// best case all probabilities are even. Errors: the job insists on weights, and a party protects another unit than rows.
fn of_frames(target: &Target, parties: &[PartyMetadata], share: f64) -> Result<Option<Outlook>, SamplerError> {
    /// Ratio of the worse case to the best one: of rare outcomes and heavy tails of the predictors.
    const WORSE: f64 = 2.5;
    let whole = Allotment::new(&target.spec, parties)?;
    let part = whole.clone().split_off(share);
    if WeightedStrategy::of_chains(target, target.scores()?.as_ref(), parties, &part)?.is_none() {
        return Ok(None);
    }
    let once = weighted_outlook(target, parties, &whole)?;
    Ok(once.map(|once| Outlook { best: once.best, worse: WORSE * once.best }))
}

/// Returns the errors of at most `most` effective draws, from those of one gradient under the whole budget and their ratio of variances.
fn errors(once: Outlook, part: f64, most: f64) -> Outlook {
    // There are no more draws than the job asks for.
    let error = |once: f64| (once * once * part).max(most.recip()).sqrt();
    Outlook { best: error(once.best), worse: error(once.worse) }
}

/// Returns the outlook of a job whose chains weight no record. Errors: those of [`outlook`].
fn plain_outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    outlook(&JobSpec { weights: Weights::Never, ..spec.clone() }, parties)
}

/// Returns the error of at most `most` effective draws that have a part `kappa` of the greatest possible efficiency, or a `price` in
/// units of a single score.
///
/// Gradients that are released one after the other determine the mean as precisely as one gradient whose noise is that of their
/// average. So the Monte Carlo error follows from the error of a single score under the whole budget. Errors: those of
/// [`outlook`].
pub(in crate::sampler) fn by_gradients(
    spec: &JobSpec,
    parties: &[PartyMetadata],
    (kappa, price): (f64, f64),
    most: f64,
) -> Result<Outlook, SamplerError> {
    let target = Target::new(spec);
    let once = of_scores(&target, target.scores()?.as_ref(), parties, &Allotment::new(spec, parties)?)?;
    let of_chains = 1.0 - spec.gradient_search_share() - spec.start_share().unwrap_or(0.0);
    let part = (1.0 - OVERHEAD) / of_chains / kappa;
    Ok(errors(once, part * price, most))
}
