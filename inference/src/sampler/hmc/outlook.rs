//! The expected error of an `hmc` job before its first query.
//!
//! Gradients that are released one after the other determine the mean as precisely as one gradient whose noise is that of their
//! average. So the Monte Carlo error follows from the error of a single score under the whole budget.

use super::algorithm::LOCATE_SHARE;
use super::settings::{EFFICIENCY, STEPS};
use super::{dp_hmc, law};
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::expected::OVERHEAD;
use crate::sampler::noisy_statistics::{Allotment, Outlook, of_scores};
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

/// Number of chains by the effective draws of all chains, if the job leaves it open. Each chain pays for its own warm-up, and
/// R-hat is unreliable with few draws per chain.
const CHAINS: [(f64, u32); 2] = [(200.0, 4), (40.0, 2)];

/// Returns the number of chains that suits the parties' budgets, at most `most`, from the expected effective draws of a job with
/// unlimited draws. It uses public numbers only. Effective draws are near the worse case on real data, and near the best one on
/// uniform predictors, so the geometric mean of the two errors is used.
pub(crate) fn chains_worth(Outlook { best, worse }: Outlook, most: u32) -> u32 {
    let ess = (best * worse).recip();
    let chains = CHAINS.into_iter().find(|(least, _)| ess >= *least).map_or(1, |(_, chains)| chains);
    chains.min(most)
}

/// Returns the Monte Carlo error of a posterior mean, in posterior sds, in the best case and in a worse one: one over the root of
/// the effective draws.
///
/// # Errors
/// The model has no gradients; the budget is invalid; a query has no price.
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    let target = Target::new(spec);
    let budget = Allotment::new(spec, parties)?;
    let scores = target.model.scores().ok_or(SamplerError::NoScores)?;
    let once = of_scores(&target, scores.as_ref(), parties, &budget)?;
    let hmc = spec.sampler.hmc;
    let searched = (1.0 - OVERHEAD) / (1.0 - hmc.locate_share.unwrap_or(LOCATE_SHARE));
    let chains = f64::from(spec.sampler.chains);
    if spec.runs_dp_hmc() {
        let (of_budget, of_draw) = dp_hmc::price_of_a_draw(spec, parties.len());
        let asked = chains * spec.sampler.draws as f64 / of_draw;
        let error = |once: f64| (once * once * searched * of_budget).max(asked.recip()).sqrt();
        return Ok(Outlook { best: error(once.best), worse: error(once.worse) });
    }
    let (step, gamma) = (hmc.step.unwrap_or(STEPS[0]), hmc.friction.unwrap_or(1.0));
    // There are no more draws than the job asks for.
    let asked = EFFICIENCY * chains * spec.sampler.draws as f64 / law::variance_of(step, gamma);
    let part = searched / EFFICIENCY;
    let error = |once: f64| (once * once * part).max(asked.recip()).sqrt();
    Ok(Outlook { best: error(once.best), worse: error(once.worse) })
}
