//! The page of one job, where its owner decides on it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use conclave_ops::web::{self, Fields, Visitor};
use conclave_pages::document::{self, Block};
use conclave_pages::moment::stored;
use conclave_pages::page::{Tone, notice};
use conclave_pages::short_id::{SHORT, first};
use conclave_pages::site::{self, Served};
use conclave_pages::text::{plain, plain_name};
use maud::{Markup, html};

use super::decision::{self, REASON};
use super::overview;
use super::request;
use super::state::{PageState, Shared, message_page};
use super::warnings::Warnings;
use crate::config::PartyConfig;
use crate::ledger_views::report_kept;
use crate::owner::inquiries::Inquiry;
use crate::owner::permit::{Permit, PermitError};
use crate::owner::{JobView, State as JobState, Summary, find, masked, pending_job};
use conclave_vault::consent::Standing;

/// A job with the information shown to the owner.
struct ShownJob {
    job: JobView,
    summary: Option<Summary>,
    document: Result<Vec<Block>, String>,
    inquiries: Vec<Inquiry>,
}

/// Reads a job by its full id. Checks the data if a decision is due, as `conclave-party approve` does.
fn load(config: &PartyConfig, warnings: &Warnings, id: &str) -> Option<ShownJob> {
    let job = find(&config.ledger, id).ok().filter(|job| job.request.job == id)?;
    let worst = pending_job::worst_case_of(config, &job);
    let report = report_kept(&config.ledger_settings()).ok();
    let summary = worst.as_ref().ok().zip(report).and_then(|(worst, report)| Summary::new(config, &report, &job, worst));
    let document = worst.map(|worst| pending_job::document(config, &job, &worst)).map_err(|e| e.to_string());
    let inquiries = match job.state() {
        JobState::Awaiting => warnings.of(config, &job),
        _ => Vec::new(),
    };
    Some(ShownJob { job, summary, document, inquiries })
}

pub(super) async fn page(State(shared): Shared, Extension(visitor): Extension<Visitor>, Path(id): Path<String>) -> Response {
    let reading = move || load(&shared.config, &shared.warnings, &id);
    let Ok(Some(shown)) = tokio::task::spawn_blocking(reading).await else { return unknown() };
    let body = body(&shown, &visitor.csrf);
    let title = match (&shown.summary, shown.job.state()) {
        (Some(summary), JobState::Awaiting) => plain_name(&summary.title),
        _ => format!("Job {}", plain_name(shown.job.name())),
    };
    web::html(site::render(&Served {
        title: &title,
        tab: &site::tab(&title, overview::DAEMON, usize::from(shown.job.state() == JobState::Awaiting)),
        parents: &[("/", "The party")],
        csrf: (web::CSRF_FIELD, &visitor.csrf),
        has_session: visitor.has_session(),
        events: None,
        body: &body,
    }))
}

fn body(shown: &ShownJob, csrf: &str) -> Markup {
    let job = &shown.job;
    let is_due = job.state() == JobState::Awaiting;
    let cost = shown.summary.as_ref().and_then(|summary| summary.scale.job_percent());
    html! {
        @if !is_due { (decided(job)) }
        @if let Some(summary) = &shown.summary { (request::summary(summary)) }
        @if let Err(why) = &shown.document {
            (notice(Tone::Warning, "This job can't be assessed", &html! { p { (plain(why, REASON)) } }, false))
        }
        @if is_due {
            h2 { "Check before you decide" }
            (request::inquiries(&job.request.analyst, &shown.inquiries))
            @if let Some(summary) = &shown.summary { p.note { (plain(&summary.not_protected, REASON)) } }
            (decision::forms(&job.request.job, (web::CSRF_FIELD, csrf), shown.document.is_ok().then_some(cost.as_deref().unwrap_or("its part"))))
        }
        p { a href={ "/jobs/" (job.request.job) "/statement" } { "Statement on this job, to print and file" } }
        @if let Ok(blocks) = &shown.document {
            details { summary { "All details, in technical words" } (document::html(blocks)) }
        }
        details { summary { "The job file as signed by its analyst" } (document::html(&[Block::Verbatim(job.request.spec_toml.clone())])) }
    }
}

/// States the decision on a job, its terms, and whether its end is permanent.
fn decided(job: &JobView) -> Markup {
    html! {
        p { "State: " b { (job.state_words()) } "."
            @if let Some(reason) = job.early_end() { " The coordinator ended it: " (plain(reason.trim_end_matches('.'), REASON)) "." }
            @if let Some(decided) = &job.request.decided {
                " It was " (decided.standing.as_str()) " by the " (decided.decider) " on " (stored(&decided.time))
                @if decided.reason.is_empty() { "." } @else { ": " (plain(decided.reason.trim_end_matches('.'), REASON)) "." }
            }
        }
        @if let Some(permit) = job.permit() { p { "Terms: " (plain(&permit.words(), REASON)) "." } }
        @if let Some(why) = &job.ended { p { (plain(&why.to_string(), REASON)) ". The job is neither opened nor answered." } @if matches!(why, PermitError::Expired(_)) { (expired()) } }
        @if job.can_be_reopened() {
            p { "There is nothing for you to do. The coordinator can open it again, and it may then spend the rest of its own budget. To rule that out: " code { "conclave-party revoke " (first(&job.request.job, SHORT)) } "." }
        }
        @for difference in job.terms.disagreements() { (notice(Tone::Warning, "Your decisions and your ledger differ", &html! { p { (plain(&difference, REASON)) "." } }, false)) }
        @if job.is_masked() && matches!(job.state(), JobState::Closed | JobState::Rejected | JobState::Revoked) {
            p { "Its end is permanent: " (masked::NEVER_REOPENED) "." }
        }
    }
}

/// States what an owner can do about a job whose permit has ended.
fn expired() -> Markup {
    html! {
        p { "What to do: nothing, if the study is over; what was released stays charged. If it continues, ask the analyst to submit the job again or to extend it: that is a new job, which you approve with a later last day. Your consent to this one stands until you revoke it." }
        p.note { "If this machine’s clock ran ahead: set it right, stop the party, run " code { "conclave-party confirm-clock" } ", and start the party again. Until then it keeps the latest time that it has seen." }
    }
}

pub(super) async fn approve(State(shared): Shared, Path(id): Path<String>, Extension(fields): Extension<Fields>) -> Response {
    match decision::permit(&fields) {
        Ok(permit) => decide(&shared, id, Standing::Approved, String::new(), permit).await,
        Err(why) => message_page("Not approved", &html! { p { (plain(&why.to_string(), REASON)) "." } }, web::refused),
    }
}

pub(super) async fn reject(State(shared): Shared, Path(id): Path<String>, Extension(fields): Extension<Fields>) -> Response {
    let reason: String = fields.get("reason").unwrap_or_default().trim().chars().take(REASON).collect();
    if reason.is_empty() {
        return message_page(
            "No reason",
            &html! { p { "A rejection needs a reason, which is shown to the analyst." } },
            web::refused,
        );
    }
    decide(&shared, id, Standing::Rejected, reason, Permit::default()).await
}

async fn decide(shared: &Arc<PageState>, id: String, decision: Standing, reason: String, permit: Permit) -> Response {
    let config = shared.config.clone();
    let done = tokio::task::spawn_blocking(move || {
        let Some(job) = find(&config.ledger, &id).ok().filter(|job| job.request.job == id) else { return Ok(None) };
        if decision == Standing::Approved {
            // A job that can't be assessed can't be approved.
            pending_job::worst_case_of(&config, &job).map_err(|e| e.to_string())?;
        }
        pending_job::decide(&config, &id, decision, &reason, Some(&permit)).map_err(|e| e.to_string())?;
        tracing::info!(job = %id, "{} at the party's page", decision.as_str());
        Ok(Some(id))
    });
    let done: Result<Option<String>, String> =
        done.await.unwrap_or_else(|_| Err("the decision could not be recorded".to_owned()));
    shared.invalidate().await;
    match done {
        Ok(Some(id)) => web::see_other(&format!("/jobs/{id}")),
        Ok(None) => unknown(),
        Err(why) => message_page("Not recorded", &html! { p { (plain(&why, REASON)) } }, web::refused),
    }
}

fn unknown() -> Response {
    message_page("Not found", &html! { p { "There is no such job." } }, web::missing)
}
