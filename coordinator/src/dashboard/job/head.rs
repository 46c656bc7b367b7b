//! The head of a job's page: what the job does or waits for, how far it is, and once it has ended the verdict on its answer.

use conclave_common::job::JobSpec;
use conclave_common::query::Phase;
use conclave_pages::page::{Tone, notice};
use conclave_pages::released;
use conclave_pages::run;
use conclave_pages::short_id::{SHORT, first};
use conclave_pages::site;
use conclave_pages::text::{duration, percent, plain, plain_name, thousands};
use conclave_pages::verdict::Verdict;
use conclave_pages::waiting::{self, since};
use conclave_privacy::accounting::{PrivacyFilter, mu_squared};
use maud::{Markup, html};
use serde_json::Value;

use super::super::shared::{SENTENCE, sentence_case, warnings};
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
fn samples(status: &Status) -> bool {
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

/// Renders the progress toward the rule that will end the job: its draws, its effective draws, or the budget of a party. One sentence
/// states it; the other figures are those of the run so far.
pub(super) fn progress(status: &Status, pace: &RunPace, spec: Option<&JobSpec>) -> Markup {
    let rate = pace.draws_per_second.map(|rate| format!("{rate:.1}"));
    html! {
        @if status.phase == Some(Phase::Sampling) && !status.state.has_ended() { (toward_the_end(status, pace, spec)) }
        @if status.iteration > 0 { dl.tiles {
            div { dt { "Draws per chain" } dd { (thousands(status.draws)) @if status.state.has_ended() { " of " (thousands(status.draws_asked)) } } }
            div { dt { "Rounds" } dd { (thousands(status.iteration)) } }
            div { dt { "Sampling time" } dd { (duration(status.seconds)) } }
            @if let Some(accepted) = status.acceptance() { div { dt { "Proposals accepted" } dd { (percent(accepted)) } } }
            @if let Some(rate) = rate { div { dt { "Draws per chain and second" } dd { (rate) } } }
        } }
        @if !status.state.has_ended() { p { a.danger href={ "/jobs/" (status.id) "/cancel" } { "Cancel this job…" } } }
    }
}

/// Renders what ends the run, how far it is and how long it takes, in one sentence with a bar.
fn toward_the_end(status: &Status, pace: &RunPace, spec: Option<&JobSpec>) -> Markup {
    // A job that is paused makes no draw, so that its end has no time.
    let forecast = pace.forecast.as_ref().filter(|_| samples(status));
    let left = forecast.map(|forecast| format!(", about {} left", duration(forecast.seconds_left))).unwrap_or_default();
    let ends = forecast.and_then(|forecast| status.parties.get(forecast.ended_by?));
    let limit =
        spec.and_then(|spec| PrivacyFilter::new(&spec.privacy.budget).ok()).map(|filter| mu_squared(filter.limit_units()));
    let counted = pace.target.map_or_else(
        || format!("{} of {} draws per chain", thousands(status.draws), thousands(status.draws_asked)),
        |target| target.words(),
    );
    let (done, all, words) = match ends.zip(limit) {
        Some((party, limit)) => {
            let share = (party.spent.mu_squared() / limit).clamp(0.0, 1.0);
            let words = format!(
                "{counted}; the budget at {} will end the run, {} of it is spent{left}",
                plain_name(&party.name),
                percent(share)
            );
            ((1e3 * share) as u64, 1000, words)
        }
        None => {
            let (done, all) = pace.target.map_or((status.draws, status.draws_asked), |target| target.effective());
            (done, all, format!("{counted}{left}"))
        }
    };
    let does = if samples(status) { "Sampling, " } else { "Draws so far: " };
    html! { p { b { (does) (words) "." } " " (site::bar(done, all, &words)) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_pages::forecast::Forecast;
    use conclave_pages::target::Target;
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

    /// The head counts what ends the run: effective draws where the job states a target, and the budget where it ends the run first.
    #[test]
    fn a_running_job_counts_toward_the_rule_that_ends_it() {
        let status = Status {
            state: State::Running,
            phase: Some(Phase::Sampling),
            iteration: 460,
            draws: 447,
            draws_asked: 10_000,
            parties: vec![crate::status::PartyStatus { name: "a".to_owned(), ..Default::default() }],
            ..Status::default()
        };
        let target = Target { ess: 44.7, rhat: 1.02, ess_wanted: 50.0, rhat_wanted: 1.05 };
        let forecast = |ended_by| Some(Forecast { seconds_left: 4.0, ended_by, mu_squared: vec![0.1] });
        let pace = RunPace { target: Some(target), forecast: forecast(None), ..RunPace::default() };
        let page = progress(&status, &pace, None).into_string();
        assert!(page.contains("<b>Sampling, 44 of 50 effective draws, about 4 s left.</b>"), "{page}");
        assert!(page.contains("value=\"44\" max=\"50\"") && page.contains("<dd>447</dd>"), "{page}");
        // One sentence and one bar: no other figure is a progress.
        assert_eq!(
            (page.matches("<progress").count(), page.matches(" of ").count()),
            (1, 2),
            "the sentence and the bar's label: {page}"
        );
        let plain = progress(&status, &RunPace { target: None, ..pace.clone() }, None).into_string();
        assert!(plain.contains("<b>Sampling, 447 of 10,000 draws per chain, about 4 s left.</b>"), "{plain}");
        let spec = JobSpec::parse(
            "name = \"m\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n[privacy]\n\
             epsilon = 1.0\ndelta = 1e-6\n",
        );
        let page = progress(&status, &RunPace { forecast: forecast(Some(0)), ..pace }, spec.ok().as_ref()).into_string();
        let words = "Sampling, 44 of 50 effective draws; the budget at a will end the run, 0% of it is spent, about 4 s left.";
        assert!(page.contains(words) && page.contains("max=\"1000\""), "{page}");
    }

    /// A paused job makes no draw: its page states no time left, and nothing else than the notice states its state.
    #[test]
    fn a_paused_job_is_not_said_to_run() {
        let status = Status {
            state: State::Paused,
            phase: Some(Phase::Sampling),
            waiting_for: vec!["b".to_owned()],
            iteration: 460,
            draws: 447,
            draws_asked: 10_000,
            ..Status::default()
        };
        let forecast = Some(Forecast { seconds_left: 4.0, ended_by: None, mu_squared: vec![0.1] });
        let page = state(&status, None).into_string()
            + &progress(&status, &RunPace { forecast, ..RunPace::default() }, None).into_string();
        assert_eq!(page.matches("Paused").count(), 1, "{page}");
        assert!(page.contains("<b>Draws so far: 447 of 10,000 draws per chain.</b>"), "{page}");
        assert!(!page.contains("Sampling, ") && !page.contains(" left"), "{page}");
        // A job that releases once accepts no proposals, nor does one that has not begun.
        assert!(page.contains("Proposals accepted"));
        let once = progress(&Status { never_rejects: true, ..status }, &RunPace::default(), None).into_string();
        assert!(once.contains("Rounds") && !once.contains("accepted"), "{once}");
        assert!(!progress(&Status::default(), &RunPace::default(), None).into_string().contains("<dl"));
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
