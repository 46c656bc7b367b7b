//! `algorithm = "ops"`: the number of candidates, and the jobs that it supports.

use super::declaration::{ANY_MODEL, Declaration, OwnSettings, ReleasedQuantity, SEARCH_BY_SCORES, UsualLength};
use super::unused::Unused;
use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::raw::RawJob;
use crate::job::sampler_spec::OpsSpec;
use crate::job::spec::JobSpec;
use conclave_privacy::mechanism::QueryKind;

/// Largest number of parameters: with more, the candidates of one message do not cover the posterior densely enough.
const MOST_PARAMETERS: usize = 10;

pub(super) const OPS: Declaration = Declaration {
    name: "ops",
    asks: |kind| matches!(kind, QueryKind::Ratio | QueryKind::Choice { .. }),
    releases: |spec| match spec.sampler.locate_share > 0.0 {
        _ if spec.locates_by_gradients() => vec!["score", "choice"],
        true => vec!["ratio", "choice"],
        false => vec!["choice"],
    },
    proposes: false,
    own_keys: &["candidates", "locate"],
    usual_length: UsualLength { chains: 1, draws: 1 },
    protocol: |_| 5,
    query_description: |spec| {
        let choice = format!(
            "{} the index of one of {} public settings of the model, drawn in proportion to how well each explains the records: one \
             draw of the posterior, and nothing else",
            if spec.sampler.draws == 1 {
                "one answer,".to_owned()
            } else {
                format!("at most {} answers, each", spec.sampler.draws)
            },
            spec.sampler.ops.candidates
        );
        match spec.sampler.locate_share > 0.0 {
            true if spec.locates_by_gradients() => format!("{SEARCH_BY_SCORES}; then {choice}. {ANY_MODEL}"),
            true => format!(
                "how much better one setting of the model explains the records than another, a few dozen numbers; then {choice}"
            ),
            false => choice,
        }
    },
    released_quantity: |spec| if spec.locates_by_gradients() { SCORES } else { ReleasedQuantity::RATIO },
    noise: |_, _| {
        "Noise: none is added, since each draw is random itself: the owner draws one of the public candidates in proportion to its \
         posterior weight (the exponential mechanism), exactly, from its operating system’s generator. The charge follows from the \
         largest change of the log odds of two candidates by one record. The draws follow the posterior of the records, up to the \
         error of a finite set of candidates."
            .to_owned()
    },
    unused,
    settings: |raw| Ok(OwnSettings { ops: OpsSpec { candidates: raw.candidates }, ..OwnSettings::default() }),
    check,
    ..Declaration::OF_RATIOS
};

/// The numbers of a search by gradients.
const SCORES: ReleasedQuantity = ReleasedQuantity {
    words: "the slope or the curvature of the log likelihood at a setting of the model",
    fits_any_model: true,
};

fn unused(_: &RawJob) -> Vec<Unused> {
    let independent = "its draws are independent, each among its own candidates: there is no chain";
    vec![
        ("sampler.proposal", independent),
        ("sampler.warmup", independent),
        ("sampler.until", "`sampler.draws` sets the number of draws"),
        ("sampler.starts", "set `sampler.start`, the initial value of the search for the mode"),
        ("extends", "draws are independent: submit another job"),
        ("privacy.clip_watch_share", "clipped records are not counted"),
    ]
}

/// Checks that a choice among candidates can answer the job.
///
/// # Errors
/// Several owners; several chains; more parameters than candidates can cover; more candidates than a message can contain.
fn check(spec: &JobSpec) -> Result<(), JobError> {
    if spec.parties.len() != 1 {
        return check_choice(spec, "parties");
    }
    if spec.sampler.chains_named && spec.sampler.chains != 1 {
        let message = "algorithm = \"ops\" makes independent draws: leave it out, and set their number with sampler.draws";
        return Err(JobError::new("sampler.chains", message));
    }
    check_choice(spec, "algorithm")
}

/// Checks that a choice among candidates suits the job's owners, parameters and messages; `key` is the one that asks for it.
///
/// # Errors
/// Several owners; more parameters than candidates can cover; more candidates than a message can contain.
pub(super) fn check_choice(spec: &JobSpec, key: &str) -> Result<(), JobError> {
    let owners = spec.parties.len();
    if owners != 1 {
        let asked = if spec.algorithm == Algorithm::Ops { "algorithm" } else { "start" };
        let message = format!(
            "{asked} = \"ops\" draws from the records of one owner, and the job names {owners}: choices cannot be summed over owners; use \
             algorithm = \"hmc\" or \"penalty\""
        );
        return Err(JobError::new(key, message));
    }
    let parameters = spec.dimension();
    if parameters > MOST_PARAMETERS {
        let message = format!(
            "\"ops\" draws one of a finite set of candidates, which cannot cover a posterior of {parameters} parameters: the limit is \
             {MOST_PARAMETERS}; use algorithm = \"hmc\""
        );
        return Err(JobError::new(key, message));
    }
    let (candidates, most) = (spec.sampler.ops.candidates, QueryKind::most_candidates(parameters));
    if candidates > most {
        let message = format!("a message holds {most} candidates of {parameters} parameters each, not {candidates}");
        return Err(JobError::new("sampler.candidates", message));
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/ops.rs"]
mod tests;
