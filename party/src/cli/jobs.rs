//! `conclave-party jobs`.

use conclave_common::epsilon;
use conclave_common::text::one_line;
use conclave_pages::moment::stored;
use conclave_pages::short_id::{first, shortest};
use serde_json::{Value, json};

use super::common::{Common, load, print, print_json};
use crate::config::PartyConfig;
use crate::error::StartError;
use crate::owner::permit::PermitError;
use crate::owner::{JobView, State, jobs as all};

pub(super) fn jobs(common: &Common) -> Result<(), StartError> {
    let config = load(common)?;
    let jobs = all(&config.ledger)?;
    if common.json {
        return print_json(&json!({ "jobs": jobs.iter().map(|job| value(job, &config)).collect::<Vec<_>>() }));
    }
    if jobs.is_empty() {
        return print("no job has been submitted to this party yet");
    }
    let length = shortest(&jobs.iter().map(|job| &*job.request.job).collect::<Vec<_>>());
    let width = jobs.iter().map(|job| job.state_words().len()).max().unwrap_or(0);
    for job in &jobs {
        print(&one_line(&line(job, &config, (length, width))))?;
    }
    let waiting = jobs.iter().filter(|job| job.state() == State::Awaiting).count();
    if waiting > 0 {
        print(&format!(
            "\n{waiting} waiting for your decision: conclave-party approve JOB --config {}",
            common.config.display()
        ))?;
    }
    Ok(())
}

/// Formats a job on one line, with an id and a state of these lengths.
fn line(job: &JobView, config: &PartyConfig, (length, width): (usize, usize)) -> String {
    let request = &job.request;
    let reason = request.decided.as_ref().map(|d| d.reason.as_str()).filter(|r| !r.is_empty());
    let reason = match job.state() {
        State::Rejected | State::Revoked => reason.map(|r| format!(" ({r})")).unwrap_or_default(),
        State::Closed if job.is_masked() => " (masked: it can never be reopened)".to_owned(),
        State::Closed if job.can_be_reopened() => " (the coordinator can reopen it, unless you revoke it)".to_owned(),
        State::Expired => job.ended.as_ref().map(|why| format!(" ({why})")).unwrap_or_default(),
        _ => String::new(),
    };
    let permit = job.permit().map(|permit| format!("; {}", permit.words())).unwrap_or_default();
    format!(
        "{}  {:<width$}  {:?} of {}, submitted {}; {} numbers, epsilon {}{permit}{reason}",
        first(&request.job, length),
        job.state_words(),
        job.name(),
        request.analyst,
        stored(&request.asked),
        job.spent().draws,
        epsilon::spent(job.epsilon_spent(&config.budget)),
    )
}

pub(super) fn value(job: &JobView, config: &PartyConfig) -> Value {
    let request = &job.request;
    json!({
        "job": request.job,
        "name": job.name(),
        "state": job.state(),
        "analyst": request.analyst,
        "asked": request.asked,
        "digest": request.digest_hex(),
        "decision": request.decided.as_ref().map(|d| json!({
            "decision": d.standing.as_str(), "time": d.time, "by": d.decider, "reason": d.reason,
        })),
        "permit": job.permit(),
        "analyst_key": job.terms.signer().map(|key| key.to_string()),
        "disagreements": job.terms.disagreements(),
        "permit_ended": job.ended.as_ref().map(PermitError::code),
        "can_be_reopened": job.can_be_reopened(),
        "opened": job.totals.as_ref().map(|t| &t.opened),
        "closed": job.totals.as_ref().and_then(|t| t.closed.as_ref()),
        "aggregation": job.spec.as_ref().map(|_| if job.is_masked() { "secure" } else { "local" }),
        "releases": job.spec.as_ref().map(|spec| spec.releases()),
        "queries": job.totals.as_ref().map_or(0, |t| t.queries),
        "integers": job.spent().draws,
        "mu_squared_spent": job.spent().mu_squared(),
        "epsilon_spent": job.epsilon_spent(&config.budget),
        "epsilon_budget": job.spec.as_ref().map(|spec| spec.privacy.budget.epsilon),
    })
}
