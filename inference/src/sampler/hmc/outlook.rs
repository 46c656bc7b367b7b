//! What can be expected of a job by `hmc` before anything is asked.
//!
//! Gradients that are released one after the other tell of the mean what one gradient tells that has the noise of all of them together: so the
//! Monte Carlo error follows from that of a single score under the whole budget.

use super::algorithm::LOCATE_SHARE;
use super::settings::{EFFICIENCY, STEPS};
use super::{dp_hmc, law};
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::expected::OVERHEAD;
use crate::sampler::noisy_statistics::{Allotment, Outlook, of_scores};
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

/// Chains by the effective draws that all of them come to, where the job leaves their number open: each has its warm-up to pay for, and of a few
/// draws of each R-hat says little.
const CHAINS: [(f64, u32); 2] = [(200.0, 4), (40.0, 2)];

/// The number of chains that the parties' budgets are worth, at most so many, by what unlimited draws of a job could come to: by public numbers
/// alone, before anything is asked. On real data effective draws are nearer to the worse case than to the best one, and on even predictors at the
/// best: the middle of the two errors is taken, by their logarithms.
pub(crate) fn chains_worth(Outlook { best, worse }: Outlook, most: u32) -> u32 {
    let ess = (best * worse).recip();
    let chains = CHAINS.into_iter().find(|(least, _)| ess >= *least).map_or(1, |(_, chains)| chains);
    chains.min(most)
}

/// The Monte Carlo error of a posterior mean, in posterior sds, in the best case and in a worse one: one over the root of the effective draws.
///
/// # Errors
/// A model without gradients; a budget that is none; a query without a price.
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
    // Of no more draws than are asked for.
    let asked = EFFICIENCY * chains * spec.sampler.draws as f64 / law::variance_of(step, gamma);
    let part = searched / EFFICIENCY;
    let error = |once: f64| (once * once * part).max(asked.recip()).sqrt();
    Ok(Outlook { best: error(once.best), worse: error(once.worse) })
}
