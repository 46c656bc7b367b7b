//! The owner's own page, on this machine alone and behind [`conclave_ops::web`]'s guard: the budget, what left and when, and jobs that
//! wait for a decision.
//!
//! It reads the ledger as `conclave-party status` does, without its lock and on threads that may block, at most once in [`FRESH`] for
//! all who look; it holds no desk and so can't make the answering thread wait. What the times
//! of answers were made up of, the answering thread leaves in memory without waiting, and nothing but this page looks there. A decision is the one act that it has, and it is the
//! act of `conclave-party approve` and `reject`. What it shows never leaves by itself.

mod job;
mod overview;
mod read;
mod times;
mod warnings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use conclave_ops::web::{self, Fields, Visitor};
use conclave_pages::page;
use conclave_pages::site::{self, Served};
use maud::{Markup, html};

use crate::answer::answer_timing::OwnTimes;
use crate::config::PartyConfig;
pub(crate) use read::audit_of;
use read::{Days, Facts};
use warnings::Warnings;

/// How long what was read is shown before it is read anew.
const FRESH: Duration = Duration::from_secs(2);
/// The file of the token, in the identity folder.
const TOKEN: &str = "page-token";

/// What the pages are made from.
#[derive(Debug)]
struct Desktop {
    config: PartyConfig,
    times: OwnTimes,
    warnings: Warnings,
    read: tokio::sync::Mutex<Read>,
}

#[derive(Debug, Default)]
struct Read {
    days: Days,
    last: Option<(Instant, Arc<Facts>)>,
}

type Shared = State<Arc<Desktop>>;

/// Where the token is.
pub(crate) fn token_of(config: &PartyConfig) -> std::path::PathBuf {
    config.identity.join(TOKEN)
}

/// Every page of the party's; `times` are the running party's.
pub(crate) fn pages(config: PartyConfig, times: OwnTimes) -> Router {
    let desktop = Arc::new(Desktop { config, times, warnings: Warnings::default(), read: tokio::sync::Mutex::default() });
    Router::new()
        .route("/", get(overview::page))
        .route("/events", get(overview::events))
        .route("/audit.svg", get(overview::audit))
        .route("/jobs/{id}", get(job::page))
        .route("/jobs/{id}/approve", post(job::approve))
        .route("/jobs/{id}/reject", post(job::reject))
        .route("/style.css", get(|| async { web::file("text/css; charset=utf-8", page::STYLE) }))
        .route("/live.js", get(|| async { web::file("text/javascript; charset=utf-8", site::SCRIPT) }))
        .route("/favicon.ico", get(|| async { web::file("image/svg+xml", site::ICON) }))
        .fallback(|| async { said("Nothing here", &html! { p { "There is no such page." } }, web::missing) })
        .with_state(desktop)
}

impl Desktop {
    /// What there is to show, read now or a moment ago; one reader at a time.
    async fn facts(&self) -> Arc<Facts> {
        let mut read = self.read.lock().await;
        if let Some((_, facts)) = read.last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Arc::clone(facts);
        }
        let (config, days) = (self.config.clone(), std::mem::take(&mut read.days));
        let done = tokio::task::spawn_blocking(move || read::read(&config, days)).await;
        let (facts, days) = done.unwrap_or_else(|_| (Facts::unreadable("reading failed"), Days::default()));
        let facts = Arc::new(facts);
        read.days = days;
        read.last = Some((Instant::now(), Arc::clone(&facts)));
        facts
    }

    /// Lets the next look read anew, as after a decision.
    async fn stale(&self) {
        self.read.lock().await.last = None;
    }
}

/// A page that says one thing.
fn said(title: &str, what: &Markup, answer: fn(String) -> Response) -> Response {
    let body = html! { (what) p { a href="/" { "To the party's page" } } };
    answer(site::served(&Served { title, above: &[], word: (web::CSRF_FIELD, ""), session: false, events: None, body: &body }))
}

#[cfg(test)]
mod tests;
