//! The page of one job, on which its owner decides.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use conclave_ops::web::{self, Fields, Visitor};
use conclave_pages::page::{Tone, notice};
use conclave_pages::site::{self, Served};
use conclave_pages::text::{plain, plain_name};
use maud::{Markup, html};

use super::state::{PageState, Shared, said};
use super::warnings::Warnings;
use crate::config::PartyConfig;
use crate::owner::{JobView, State as JobState, find, masked, pending_job};
use conclave_vault::consent::Standing;

/// Longest line that is shown of a job.
const LINE: usize = 4000;
/// Longest reason that is entered.
const REASON: usize = 1000;

/// A job and what the owner is told of it.
struct Asked {
    job: JobView,
    words: Result<String, String>,
    warnings: Vec<String>,
}

/// Reads a job by its whole id. Looks at the data where a decision on it is due, as `conclave-party approve` does.
fn look(config: &PartyConfig, warnings: &Warnings, id: &str) -> Option<Asked> {
    let job = find(&config.ledger, id).ok().filter(|job| job.request.job == id)?;
    let worst = pending_job::worst_case_of(config, &job);
    let words = worst.map(|worst| pending_job::shown(config, &job, &worst)).map_err(|e| e.to_string());
    let warnings = match job.state() {
        JobState::Awaiting => warnings.of(config, &job),
        _ => Vec::new(),
    };
    Some(Asked { job, words, warnings })
}

pub(super) async fn page(State(shared): Shared, Extension(visitor): Extension<Visitor>, Path(id): Path<String>) -> Response {
    let looking = move || look(&shared.config, &shared.warnings, &id);
    let Ok(Some(asked)) = tokio::task::spawn_blocking(looking).await else { return unknown() };
    let body = body(&asked, &visitor.csrf);
    web::html(site::render(&Served {
        title: &format!("Job {}", plain_name(asked.job.name())),
        parents: &[("/", "The party")],
        csrf: (web::CSRF_FIELD, &visitor.csrf),
        has_session: visitor.has_session(),
        events: None,
        body: &body,
    }))
}

fn body(asked: &Asked, csrf: &str) -> Markup {
    let (job, word) = (&asked.job, (web::CSRF_FIELD, csrf));
    let at = |act: &str| format!("/jobs/{}/{act}", job.request.job);
    // Line by line: a name must not turn what stands after it.
    let lines = |text: &str| text.lines().map(|line| plain(line, LINE)).collect::<Vec<_>>().join("\n");
    html! {
        p { "State: " b { (job.state().as_str()) }
            @if let Some(decided) = &job.request.decided {
                ", by the " (decided.decider) " on " (decided.time)
                @if !decided.reason.is_empty() { ": " (plain(&decided.reason, REASON)) }
            }
        }
        @if job.is_masked() && matches!(job.state(), JobState::Closed | JobState::Rejected | JobState::Revoked) {
            p { "It is over for good: " (masked::NEVER_AGAIN) "." }
        }
        @match &asked.words {
            Ok(words) => pre { (lines(words)) },
            Err(why) => { (notice(Tone::Warning, "This job can't be judged", &html! { p { (plain(why, REASON)) } }, false)) }
        }
        @for warning in &asked.warnings { (notice(Tone::Warning, "Beware", &html! { p { (plain(warning, REASON)) } }, false)) }
        @if job.state() == JobState::Awaiting {
            h2 { "Your decision" }
            p { "It is entered for good, and the running party acts on it within a second. What a job spends is never given back." }
            div.decide {
                @if asked.words.is_ok() { (site::form(&at("approve"), word, &html! { button { "Approve this job" } })) }
                (site::form(&at("reject"), word, &html! {
                    p { label for="reason" { "Why not; the analyst is told" } br; input type="text" id="reason" name="reason" required maxlength=(REASON); }
                    button.danger { "Reject it" }
                }))
            }
        }
        details { summary { "The job file, as its analyst signed it" } pre { (lines(&job.request.spec_toml)) } }
    }
}

pub(super) async fn approve(State(shared): Shared, Path(id): Path<String>) -> Response {
    decide(&shared, id, Standing::Approved, String::new()).await
}

pub(super) async fn reject(State(shared): Shared, Path(id): Path<String>, Extension(fields): Extension<Fields>) -> Response {
    let reason: String = fields.get("reason").unwrap_or_default().trim().chars().take(REASON).collect();
    if reason.is_empty() {
        return said("No reason", &html! { p { "A rejection needs a reason: the analyst is told." } }, web::refused);
    }
    decide(&shared, id, Standing::Rejected, reason).await
}

async fn decide(shared: &Arc<PageState>, id: String, decision: Standing, reason: String) -> Response {
    let config = shared.config.clone();
    let done = tokio::task::spawn_blocking(move || {
        let Some(job) = find(&config.ledger, &id).ok().filter(|job| job.request.job == id) else { return Ok(None) };
        if decision == Standing::Approved {
            // What can't be judged can't be approved.
            pending_job::worst_case_of(&config, &job).map_err(|e| e.to_string())?;
        }
        pending_job::decide(&config, &id, decision, &reason).map_err(|e| e.to_string())?;
        tracing::info!(job = %id, "{} at the party's page", decision.as_str());
        Ok(Some(id))
    });
    let done: Result<Option<String>, String> = done.await.unwrap_or_else(|_| Err("it could not be entered".to_owned()));
    shared.stale().await;
    match done {
        Ok(Some(id)) => web::see_other(&format!("/jobs/{id}")),
        Ok(None) => unknown(),
        Err(why) => said("Not entered", &html! { p { (plain(&why, REASON)) } }, web::refused),
    }
}

fn unknown() -> Response {
    said("Nothing here", &html! { p { "There is no such job." } }, web::missing)
}
