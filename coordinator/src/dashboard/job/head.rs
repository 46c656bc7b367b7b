//! The head of a job's page: what the job does or waits for, how far it is, and once it has ended the verdict on its answer.

use conclave_common::query::Phase;
use conclave_pages::page::{Tone, notice};
use conclave_pages::released;
use conclave_pages::run;
use conclave_pages::short_id::{SHORT, first};
use conclave_pages::text::plain;
use conclave_pages::verdict::Verdict;
use conclave_pages::waiting::{self, since};
use maud::{Markup, html};
use serde_json::Value;

use super::super::shared::{SENTENCE, sentence_case, warnings};
use crate::clock::now_ms;
use crate::status::{State, Status, phase_name};

/// Renders the most important facts, announced when they change; hence no running counters.
pub(super) fn state(status: &Status, result: Option<&Value>) -> Markup {
    html! {
        @if !status.waiting_for.is_empty() { (waiting(status)) }
        @if let Some(fault) = &status.fault {
            (notice(Tone::Warning, if status.iteration == 0 { "The job could not begin" } else { "The job could not continue" }, &html! { p { (plain(&fault.to_string(), SENTENCE)) } }, false))
        }
        (warnings(&elsewhere(&status.warnings, result)))
        // The notice above says what a job waits for.
        @if status.waiting_for.is_empty() { p class=[samples(status).then_some("heard")] { b { (sentence(status, result)) } } }
        @if let Some(words) = next_step(status) { p { (words) } }
        @if status.state == State::Failed && result.is_none() {
            p { "What to do: correct what the reason names, or ask the owner whom it names, then submit the job again. The remedy and what was spent, to file or to print: " code title=(status.id) { "conclave report " (first(&status.id, SHORT)) " -o report.html" } "." }
        }
        @if let Some(result) = result.filter(|_| status.state.has_ended()) {
            (Verdict::of(result).notice())
            p.note { "For a terminal: " code title=(status.id) { "conclave summary " (first(&status.id, SHORT)) } ". To file or to print: " code title=(status.id) { "conclave report " (first(&status.id, SHORT)) " -o report.html" } "." }
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
    let since = since(status.waiting_since_ms, now_ms());
    let decides = status.waits_for_consent();
    let heading = match decides {
        true => format!("{}{since}", sentence_case(&waiting::for_decision(&status.waiting_for))),
        false => format!("Paused: waiting for {}{since}", plain(&status.waiting_for.join(", "), SENTENCE)),
    };
    let tone = if decides { Tone::Note } else { Tone::Warning };
    notice(
        tone,
        &heading,
        &html! {
            @if !decides && !status.waiting_reason.is_empty() { p { (plain(&status.waiting_reason, SENTENCE)) } }
            @if decides { p { "What to do: remind the owner, who decides at the party’s own page or with " code { "conclave-party approve " (first(&status.id, SHORT)) } ". The job starts by itself once every owner has consented." } }
            @else {
                p { "What to do: have the party started again by those who run it. The job then continues by itself; nothing is lost, and nothing is charged twice. To stop waiting, cancel the job: its draws so far are kept." }
                @if !status.awaiting_consent.is_empty() {
                    p { "It is also " (waiting::for_decision(&status.awaiting_consent)) "." }
                }
            }
            p.note { "No chain continues without every party, because that would change the posterior." }
        },
        false,
    )
}

/// Returns true while the chains make the draws that are kept.
pub(super) fn samples(status: &Status) -> bool {
    status.state == State::Running && status.phase == Some(Phase::Sampling)
}

/// States what a reader can do while the job waits or runs; `None` once it has ended.
fn next_step(status: &Status) -> Option<&'static str> {
    match status.state {
        State::Queued => Some("Nothing to do: the job starts by itself at its turn."),
        State::Running => Some("Nothing to do: this page follows the run, and states here whether the answer can be published."),
        State::Opening if status.waiting_for.is_empty() => {
            Some("Nothing to do: the job starts by itself once every party has opened it.")
        }
        State::Opening | State::Paused => None,
        State::Finished | State::Cancelled | State::Failed => None,
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
            let why = result.map(run::ended).filter(|_| status.state == State::Finished);
            let words = sentence_case(&status.state_words());
            // The words of a run without an answer have a colon of their own.
            let joined = if words.contains(':') { "; " } else { ": " };
            why.map_or_else(|| format!("{words}."), |why| format!("{words}{joined}{why}."))
        }
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
        assert!(page.contains("Waiting for a's decision since 15 min") && !page.contains("beware"), "{page}");
        let page = state(&Status { waiting_for: both, ..waits }, None).into_string();
        assert!(
            page.contains("Paused: waiting for a, b")
                && page.contains("beware")
                && page.contains("also waiting for a's decision"),
            "{page}"
        );
    }

    #[test]
    fn a_reader_learns_what_to_do() {
        let running = Status { state: State::Running, phase: Some(Phase::Sampling), ..Status::default() };
        assert!(state(&running, None).into_string().contains("Nothing to do: this page follows the run"));
        let paused = Status { state: State::Paused, waiting_for: vec!["b".to_owned()], ..Status::default() };
        assert!(state(&paused, None).into_string().contains("What to do: have the party started again"));
        let failed = Status { state: State::Failed, id: "4f".to_owned(), ..Status::default() };
        assert!(state(&failed, None).into_string().contains("What to do: correct what the reason names"));
    }

    #[test]
    fn an_ended_job_leads_with_its_verdict_and_why_it_ended() {
        let ended = Status { state: State::Finished, grade: Some(Grade::NoAnswer), id: "4f".to_owned(), ..Status::default() };
        let result = json!({"stopped_by": "released", "adequacy": {"adequate": false, "reasons": ["too noisy"]}});
        let page = state(&ended, Some(&result)).into_string();
        for part in ["Finished: no adequate answer; the whole budget released", "Too noisy.", "conclave summary 4f"] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
