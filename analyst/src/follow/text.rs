//! Texts about a followed job.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conclave_common::text::{one_line, shown};
use conclave_pages::moment::utc;
use conclave_pages::target::Target;
use conclave_pages::text::{duration, thousands};
use conclave_pages::waiting;
use conclave_proto::v1::JobStatus;

/// Returns the warnings not printed before, each once, on one line.
pub(super) fn new_warnings(printed: &mut Vec<String>, warnings: &[String]) -> Vec<String> {
    let fresh: Vec<String> = warnings.iter().filter(|warning| !printed.contains(warning)).cloned().collect();
    printed.extend_from_slice(&fresh);
    fresh.iter().map(|warning| one_line(warning)).collect()
}

/// Returns the coordinator's word for the job's phase or state.
pub(super) fn heading(status: &JobStatus) -> &str {
    match (status.state.as_str(), status.phase.as_str()) {
        ("running", "") => "running",
        ("running", phase) => phase,
        ("opening" | "paused", _) if waits_for_consent(status) => waiting::FOR_CONSENT,
        (state, _) => state,
    }
}

/// Returns true for a job that waits for owners' decisions, and for nothing else: no fault, but a part of every job.
pub(super) fn waits_for_consent(status: &JobStatus) -> bool {
    waiting::is_for_consent(&status.waiting_for, &status.awaiting_consent)
}

/// Describes the progress of a job that has not ended.
pub(super) fn describe(status: &JobStatus, target: Option<Target>, now: SystemTime) -> String {
    if waits_for_consent(status) {
        let now_ms = now.duration_since(UNIX_EPOCH).ok().and_then(|now| i64::try_from(now.as_millis()).ok()).unwrap_or(0);
        return format!(
            "{}{}; the job starts by itself once every owner has consented",
            waiting::for_decision(&status.waiting_for),
            waiting::since(status.waiting_since_unix_ms, now_ms)
        );
    }
    if !status.waiting_for.is_empty() {
        return format!(
            "waiting for {}{}{}; the chain continues by itself when {} back",
            status.waiting_for.join(", "),
            waiting_since(status.waiting_since_unix_ms, now),
            waiting_reason(&status.waiting_reason),
            if status.waiting_for.len() == 1 { "it is" } else { "they are" }
        );
    }
    match heading(status) {
        "queued" => {
            let place = if status.place > 0 { format!(", place {} in the queue", status.place) } else { String::new() };
            format!("waiting for its turn{place}{}", waiting_reason(&status.waiting_reason))
        }
        "opening" => "the parties are asked to open the job".to_owned(),
        "locate" => format!("round {}, finding the mode", thousands(status.iteration)),
        "warmup" => format!("round {}, adapting{}", thousands(status.iteration), accepted(status)),
        _ => format!(
            "{}{} of at most {} draws per chain{}, {:.0} s",
            target.map(|target| target.words() + "; ").unwrap_or_default(),
            thousands(status.draws),
            thousands(status.draws_asked),
            accepted(status),
            status.seconds
        ),
    }
}

fn accepted(status: &JobStatus) -> String {
    if status.acceptance_rate > 0.0 { format!(", {:.0}% accepted", 100.0 * status.acceptance_rate) } else { String::new() }
}

/// Formats " (its ledger is ...)", the reason given by the awaited parties; empty without one.
fn waiting_reason(reason: &str) -> String {
    let reason: String = reason.chars().map(shown).take(500).collect();
    if reason.is_empty() { reason } else { format!(" ({reason})") }
}

/// Formats " since 2026-11-29 14:03:11 UTC (40 s)"; empty if the time is not known.
fn waiting_since(unix_ms: i64, now: SystemTime) -> String {
    let since = u64::try_from(unix_ms).ok().filter(|ms| *ms > 0).map(Duration::from_millis);
    let Some(since) = since else {
        return String::new();
    };
    let elapsed = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(since);
    format!(" since {} ({})", utc(unix_ms), duration(elapsed.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_names_the_party_and_since_when() {
        let status = JobStatus {
            state: "paused".to_owned(),
            phase: "sampling".to_owned(),
            waiting_for: vec!["hospital-b".to_owned()],
            waiting_since_unix_ms: 1_000_000,
            ..JobStatus::default()
        };
        let now = UNIX_EPOCH + Duration::from_secs(1_040);
        let text = describe(&status, None, now);
        assert!(text.contains("waiting for hospital-b since 1970-01-01 00:16:40 UTC (40 s)"), "{text}");
        assert_eq!(heading(&status), "paused");
        let status = JobStatus { waiting_reason: "its data have changed".to_owned(), ..status };
        assert!(describe(&status, None, now).contains("(40 s) (its data have changed); the chain continues"));
    }

    #[test]
    fn an_owner_who_has_yet_to_decide_is_named() {
        let both = vec!["hospital-a".to_owned(), "hospital-b".to_owned()];
        let status = JobStatus {
            state: "opening".to_owned(),
            waiting_for: both.clone(),
            awaiting_consent: both.clone(),
            ..JobStatus::default()
        };
        let text = describe(&status, None, UNIX_EPOCH);
        assert!(text.starts_with("waiting for the decisions of hospital-a, hospital-b; the job starts by itself"), "{text}");
        let one = JobStatus {
            waiting_for: both[..1].to_vec(),
            awaiting_consent: both[..1].to_vec(),
            waiting_since_unix_ms: 1_000_000,
            ..status.clone()
        };
        let text = describe(&one, None, UNIX_EPOCH + Duration::from_secs(1_900));
        assert!(text.starts_with("waiting for hospital-a's decision since 15 min; the job"), "{text}");
        assert_eq!(heading(&one), "waiting for consent");
        // If another party is away, its absence holds the job up.
        let text = describe(&JobStatus { awaiting_consent: both[..1].to_vec(), ..status }, None, UNIX_EPOCH);
        assert!(text.contains("waiting for hospital-a, hospital-b"), "{text}");
    }

    #[test]
    fn a_warning_is_said_once() {
        let mut printed = Vec::new();
        let two = ["the clip\u{1b} cuts 3%".to_owned(), "another".to_owned()];
        assert_eq!(new_warnings(&mut printed, &two[..1]), ["the clip  cuts 3%"]);
        assert_eq!(new_warnings(&mut printed, &two), ["another"]);
        assert!(new_warnings(&mut printed, &two).is_empty());
    }

    #[test]
    fn each_phase_has_its_words() {
        for (state, phase, part) in [
            ("queued", "", "turn, place 7 in the queue"),
            ("opening", "", "asked to open"),
            ("running", "locate", "mode"),
            ("running", "warmup", "adapting"),
            ("running", "sampling", "3 of at most 10 draws"),
        ] {
            let status = JobStatus {
                state: state.to_owned(),
                phase: phase.to_owned(),
                draws: 3,
                draws_asked: 10,
                place: 7,
                ..JobStatus::default()
            };
            let text = describe(&status, None, UNIX_EPOCH);
            assert!(text.contains(part), "{text}");
        }
        let status = JobStatus {
            state: "running".to_owned(),
            phase: "sampling".to_owned(),
            draws: 447,
            draws_asked: 9000,
            ..JobStatus::default()
        };
        let target = Target { ess: 44.7, rhat: 1.02, ess_wanted: 50.0, rhat_wanted: 1.05 };
        let text = describe(&status, Some(target), UNIX_EPOCH);
        assert_eq!(text, "44 of 50 effective draws; 447 of at most 9,000 draws per chain, 0 s");
    }
}
