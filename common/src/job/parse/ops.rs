//! `algorithm = "ops"`: how many candidates there are, and which jobs it is for.

use super::unused::Unused;
use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::raw::{RawJob, RawSampler};
use crate::job::sampler_spec::OpsSpec;
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;

/// The most parameters: beyond, no number of candidates that a message holds has one near enough to every draw of the posterior.
const MOST_PARAMETERS: usize = 10;
/// Draws where a job names none: each is a choice of its own, at its own price.
pub(super) const DEFAULT_DRAWS: i64 = 1;

/// The settings as written; those of another algorithm are refused elsewhere.
pub(super) fn settings(raw: &RawSampler, algorithm: Algorithm) -> Result<OpsSpec, JobError> {
    let Some(candidates) = raw.candidates.filter(|_| algorithm == Algorithm::Ops) else { return Ok(OpsSpec::default()) };
    let most = QueryKind::most_candidates(0);
    match u32::try_from(candidates).ok().filter(|count| (2..=most).contains(count)) {
        Some(candidates) => Ok(OpsSpec { candidates }),
        None => Err(JobError::new("sampler.candidates", format!("must be between 2 and {most}, not {candidates}"))),
    }
}

/// What `ops` has no use for.
pub(super) fn unused(raw: &RawJob) -> Vec<Unused> {
    let independent = "each draw is a choice of its own, among candidates of its own: nothing walks";
    vec![
        ("sampler.proposal", raw.sampler.proposal.is_some(), independent),
        ("sampler.warmup", raw.sampler.warmup.is_some(), independent),
        ("sampler.until", raw.sampler.until.is_some(), "`sampler.draws` says how many choices are made"),
        ("sampler.starts", raw.sampler.starts.is_some(), "give `sampler.start`, where the search for the mode begins"),
        ("extends", raw.extends.is_some(), "draws are independent: submit another job"),
        ("privacy.clip_watch_share", raw.privacy.clip_watch_share.is_some(), "what a clip cuts is not counted"),
    ]
}

/// Checks that the job is one that a choice answers.
///
/// # Errors
/// Several owners; several chains; more parameters than candidates can cover; more candidates than a message holds.
pub(super) fn check(spec: &JobSpec) -> Result<(), JobError> {
    if spec.algorithm != Algorithm::Ops {
        return Ok(());
    }
    let owners = spec.parties.len();
    if owners != 1 {
        let message = format!(
            "algorithm = \"ops\" draws from the records of one owner, and the job names {owners}: a choice can't be added up over owners, so use \
             algorithm = \"hmc\" or \"penalty\""
        );
        return Err(JobError::new("parties", message));
    }
    if spec.sampler.chains_named && spec.sampler.chains != 1 {
        let message = "algorithm = \"ops\" makes independent draws: leave it out, and say under sampler.draws how many";
        return Err(JobError::new("sampler.chains", message));
    }
    let parameters = spec.dimension();
    if parameters > MOST_PARAMETERS {
        let message = format!(
            "\"ops\" draws one of a number of candidates, which do not cover a posterior of {parameters} parameters: it takes up to \
             {MOST_PARAMETERS}; use algorithm = \"hmc\""
        );
        return Err(JobError::new("algorithm", message));
    }
    let (candidates, most) = (spec.sampler.ops.candidates, QueryKind::most_candidates(parameters));
    if candidates > most {
        let message = format!("of {parameters} parameters each, a message holds {most} candidates, not {candidates}");
        return Err(JobError::new("sampler.candidates", message));
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/ops.rs"]
mod tests;
