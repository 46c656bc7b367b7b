//! The head of a job's page: what the job does or waits for, how far it is, and once it has ended the verdict on its answer.

use conclave_common::job::JobSpec;
use conclave_pages::page::{Tone, notice};
use conclave_pages::released;
use conclave_pages::run;
use conclave_pages::short_id::{SHORT, first};
use conclave_pages::site;
use conclave_pages::text::{duration, name, percent, plain, plain_name, thousands};
use conclave_pages::verdict::{Verdict, state_words};
use conclave_privacy::accounting::{PrivacyFilter, mu_squared};
use maud::{Markup, html};
use serde_json::Value;

use super::super::shared::{SENTENCE, warnings};
use super::super::watched_job::RunPace;
use crate::clock::now_ms;
use crate::status::{State, Status, phase_name};

/// Renders the most important facts, announced when they change; hence no running counters.
pub(super) fn state(status: &Status, result: Option<&Value>) -> Markup {
    html! {
        @if !status.waiting_for.is_empty() { (waiting(status)) }
        @if let Some(fault) = &status.fault {
            (notice(Tone::Warning, "The job could not continue", &html! { p { (plain(&fault.to_string(), SENTENCE)) } }, false))
        }
        (warnings(&elsewhere(&status.warnings, result)))
        p { b { (sentence(status, result)) } }
        @if let Some(result) = result.filter(|_| status.state.has_ended()) {
            (Verdict::of(result).notice())
            p.note { "Figures: " code title=(status.id) { "conclave summary " (first(&status.id, SHORT)) } ", or " code title=(status.id) { "conclave report " (first(&status.id, SHORT)) " -o report.html" } "." }
        }
    }
}

/// Returns the warnings that neither the verdict nor the result states.
fn elsewhere(all: &[String], result: Option<&Value>) -> Vec<String> {
    let stated = result.filter(|result| released::is_adequate(result)).and_then(|result| result["warnings"].as_array());
    let is_stated = |warning: &String| stated.is_some_and(|stated| stated.iter().any(|one| one.as_str() == Some(warning)));
    all.iter().filter(|warning| !is_stated(warning)).cloned().collect()
}

/// Renders the parties that the job waits for. An owner's decision is part of every job and no fault.
fn waiting(status: &Status) -> Markup {
    let parties = plain(&status.waiting_for.join(", "), SENTENCE);
    let since = since(status.waiting_since_ms);
    let decides = status.waiting_for.iter().all(|party| status.awaiting_consent.contains(party));
    let heading = match decides {
        true => format!("Waiting for the decision of {parties}{since}"),
        false => format!("Paused: waiting for {parties}{since}"),
    };
    let tone = if decides { Tone::Note } else { Tone::Warning };
    notice(
        tone,
        &heading,
        &html! {
            @if !status.waiting_reason.is_empty() { p { (plain(&status.waiting_reason, SENTENCE)) } }
            @if decides { p { "The job starts by itself once every owner has consented." } }
            @else if !status.awaiting_consent.is_empty() {
                p { "Owners have yet to decide: " (plain(&status.awaiting_consent.join(", "), SENTENCE)) "." }
            }
            p.note { "No chain continues without every party, because that would change the posterior. Nothing is lost, and nothing is charged twice." }
        },
        false,
    )
}

/// Formats " since 15 min" in whole minutes, so that the page announces no seconds; empty if the time is not known.
fn since(unix_ms: i64) -> String {
    if unix_ms <= 0 {
        return String::new();
    }
    let minutes = now_ms().saturating_sub(unix_ms).max(0) / 60_000;
    match minutes {
        0 => " since less than a minute".to_owned(),
        1..60 => format!(" since {minutes} min"),
        60..1440 => format!(" since {} h", minutes / 60),
        _ => format!(" since {} d", minutes / 1440),
    }
}

/// States in one sentence what the job does, or why it ended.
fn sentence(status: &Status, result: Option<&Value>) -> String {
    let phase = status.phase.map(phase_name).unwrap_or_default();
    match status.state {
        State::Queued if status.place > 0 => format!("Queued, at place {}.", status.place),
        State::Queued => "Queued.".to_owned(),
        State::Opening => "The parties are asked to open the job.".to_owned(),
        State::Paused => "Paused.".to_owned(),
        State::Running => match phase {
            "locate" => "Searching the mode of the posterior.".to_owned(),
            "warmup" => "Warming up: the chains adapt, and these draws are not kept.".to_owned(),
            _ => "Sampling.".to_owned(),
        },
        State::Finished | State::Cancelled | State::Failed => {
            let words = state_words(status.state.as_str(), status.grade.map(|grade| grade.words()).unwrap_or_default());
            let why = result.map(run::ended).filter(|_| status.state == State::Finished);
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            format!("{}{}{why}.", words[..1].to_uppercase(), &words[1..])
        }
    }
}

/// Renders the progress toward the rule that will end the job: its draws, or the budget of a party. `proposes` is false for a job
/// whose draws are no proposals to the parties.
pub(super) fn progress(status: &Status, pace: &RunPace, spec: Option<&JobSpec>) -> Markup {
    let left =
        pace.forecast.as_ref().map(|forecast| format!(", about {} left", duration(forecast.seconds_left))).unwrap_or_default();
    let proposes = spec.is_none_or(|spec| spec.algorithm.proposes());
    let ends = pace.forecast.as_ref().and_then(|forecast| status.parties.get(forecast.ended_by?));
    let limit =
        spec.and_then(|spec| PrivacyFilter::new(&spec.privacy.budget).ok()).map(|filter| mu_squared(filter.limit_units()));
    let rate = pace.draws_per_second.map(|rate| format!("{rate:.1}"));
    html! {
        @if !status.state.has_ended() {
            @match ends.zip(limit) {
                Some((party, limit)) => {
                    @let share = (party.spent.mu_squared() / limit).clamp(0.0, 1.0);
                    p { (site::progress((1e3 * share) as u64, 1000, &format!("{} of the budget at {}, which will end the run{left}", percent(share), plain_name(&party.name)))) }
                }
                None => p { (site::progress(status.draws, status.draws_asked, &format!("{} of {} draws per chain{left}", thousands(status.draws), thousands(status.draws_asked)))) }
            }
        }
        dl.tiles {
            @if status.draws_asked > 0 { div { dt { "Draws per chain" } dd { (thousands(status.draws)) " of " (thousands(status.draws_asked)) } } }
            div { dt { "Rounds" } dd { (thousands(status.iteration)) } }
            div { dt { "Sampling time" } dd { (duration(status.seconds)) } }
            @if proposes { div { dt { "Proposals accepted" } dd { (percent(status.acceptance_rate)) } } }
            @if let Some(rate) = rate { div { dt { "Draws per chain and second" } dd { (rate) } } }
        }
        @if let Some(party) = ends.filter(|_| limit.is_none()) { p { "At this rate, the budget at " (name(&party.name)) " ends the job before all draws are made." } }
        @if !status.state.has_ended() { p { a.danger href={ "/jobs/" (status.id) "/cancel" } { "Cancel this job…" } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_pages::verdict::Grade;
    use serde_json::json;

    #[test]
    fn an_owner_who_decides_is_no_fault() {
        let both = vec!["a".to_owned(), "b".to_owned()];
        let waits = Status {
            state: State::Opening,
            waiting_for: both[..1].to_vec(),
            awaiting_consent: both[..1].to_vec(),
            waiting_since_ms: now_ms() - 15 * 60_000 - 5_000,
            ..Status::default()
        };
        let page = state(&waits, None).into_string();
        assert!(page.contains("Waiting for the decision of a since 15 min") && !page.contains("beware"), "{page}");
        let page = state(&Status { waiting_for: both, ..waits }, None).into_string();
        assert!(
            page.contains("Paused: waiting for a, b") && page.contains("beware") && page.contains("yet to decide: a"),
            "{page}"
        );
    }

    #[test]
    fn an_ended_job_leads_with_its_verdict_and_why_it_ended() {
        let ended = Status { state: State::Finished, grade: Some(Grade::NoAnswer), id: "4f".to_owned(), ..Status::default() };
        let result = json!({"stopped_by": "released", "adequacy": {"adequate": false, "reasons": ["too noisy"]}});
        let page = state(&ended, Some(&result)).into_string();
        for part in ["Finished: no adequate answer: the whole budget released", "Too noisy.", "conclave summary 4f"] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
