//! A job's state as JSON.

use conclave_pages::verdict::Grade;
use conclave_proto::v1::{JobStatus, PartyStatus};
use serde_json::json;
use time::OffsetDateTime;
use time::macros::format_description;

/// Converts a job's state to JSON; the keys are those of `JobStatus` on the wire.
pub(crate) fn as_json(job: &JobStatus) -> serde_json::Value {
    json!({
        "job": job.job,
        "name": job.name,
        "analyst": job.analyst,
        "state": job.state,
        "verdict": Grade::parse(&job.verdict).map(Grade::words),
        "phase": job.phase,
        "iterations": job.iteration,
        "chains": job.chains,
        "draws": job.draws,
        "draws_asked": job.draws_asked,
        "acceptance_rate": job.acceptance_rate,
        "seconds": job.seconds,
        "place": (job.place > 0).then_some(job.place),
        "waiting_for": job.waiting_for,
        "waiting_since": (job.waiting_since_unix_ms > 0).then(|| moment(job.waiting_since_unix_ms)),
        "awaiting_consent": job.awaiting_consent,
        "waiting_reason": job.waiting_reason,
        "error_code": job.error_code,
        "error": job.error,
        "submitted": moment(job.submitted_unix_ms),
    })
}

/// Converts a job's state to JSON with its parties' spending and its warnings.
pub(crate) fn with_parties(job: &JobStatus) -> serde_json::Value {
    let mut object = as_json(job);
    let party = |party: &PartyStatus| {
        json!({
            "name": party.name,
            "attached": party.attached,
            "epsilon_spent": party.epsilon_spent,
            "epsilon_budget": party.epsilon_budget,
        })
    };
    object["parties"] = job.parties.iter().map(party).collect();
    object["warnings"] = json!(job.warnings);
    object
}

/// Formats a time in UTC, to the second, as the JSON objects have it.
fn moment(unix_ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    OffsetDateTime::from_unix_timestamp(unix_ms / 1000).ok().and_then(|time| time.format(format).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_utc() {
        assert_eq!(moment(0), "1970-01-01 00:00:00");
        assert_eq!(moment(1_700_000_000_123), "2023-11-14 22:13:20");
        assert_eq!(moment(i64::MAX), "");
    }
}
