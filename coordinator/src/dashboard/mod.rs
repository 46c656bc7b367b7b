//! The coordinator's dashboard: jobs, and one job as it runs, as pages behind [`conclave_ops::web`]'s guard. Read-only but for cancel.
//! Whoever has the token sees every job; an analyst who shows a certificate sees and cancels what the gRPC service shows and cancels.
//!
//! Watching is paid for by who watches: plots and diagnostics are drawn on a thread that may block, each page of a job's parameters at
//! most once a second for all its watchers together, and then not again for a hundred times as long as it took.

mod chains;
mod job;
mod list;
mod watched;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use conclave_ops::web::events::{self, Now};
use conclave_ops::web::{self, Visitor, Who};
use conclave_pages::page;
use conclave_pages::site::{self, Served};
use conclave_pages::text::plain_name;
use maud::{Markup, html};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::book::{Book, Whose};
use crate::hub::Hub;
use crate::live::stored::Stored;
use watched::Watched;

/// What the pages are made from.
#[derive(Debug)]
pub(crate) struct Dashboard {
    book: Arc<Book>,
    hub: Arc<Hub>,
    watched: Watched,
    stored: Stored,
}

type Shared = State<Arc<Dashboard>>;

/// How often it is looked whether something of a page has changed.
const LOOK: Duration = Duration::from_secs(1);

/// A part of a page: its element's id, and what it holds now.
type Part = (&'static str, Markup);

/// Every page of the dashboard.
pub(crate) fn pages(book: Arc<Book>, hub: Arc<Hub>) -> Router {
    let dashboard = Arc::new(Dashboard { book, hub, watched: Watched::default(), stored: Stored::default() });
    Router::new()
        .route("/", get(list::page))
        .route("/events", get(list::events))
        .route("/jobs/{id}", get(job::page))
        .route("/jobs/{id}/events", get(job::events))
        .route("/jobs/{id}/cancel", get(job::ask_to_cancel).post(job::cancel))
        .route("/style.css", get(|| async { web::file("text/css; charset=utf-8", page::STYLE) }))
        .route("/live.js", get(|| async { web::file("text/javascript; charset=utf-8", site::SCRIPT) }))
        .route("/favicon.ico", get(|| async { web::file("image/svg+xml", site::ICON) }))
        .fallback(|| async { missing("There is no such page.") })
        .with_state(dashboard)
}

/// Whose jobs a visitor may see, and cancel.
fn whose(visitor: &Visitor) -> Whose {
    match &visitor.who {
        Who::Operator => Whose::Everybodys,
        Who::Member(analyst) => Whose::Of(analyst.clone()),
    }
}

fn is_operator(visitor: &Visitor) -> bool {
    matches!(visitor.who, Who::Operator)
}

/// The parts as they are sent.
fn now(parts: Vec<Part>, over: bool) -> Now {
    Now { parts: parts.into_iter().map(|(id, content)| (id, content.into_string())).collect(), over }
}

/// A page that says why there is none.
fn missing(words: &str) -> Response {
    let body = html! { p { (words) } p { a href="/" { "All jobs" } } };
    let text = site::served(&Served {
        title: "Nothing here",
        above: &[],
        word: (web::CSRF_FIELD, ""),
        session: false,
        events: None,
        body: &body,
    });
    web::missing(text)
}

/// The number after `name=` in an address, or 0.
fn number_in(uri: &Uri, name: &str) -> usize {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// A moment as people read it, UTC; empty for none.
fn utc(unix_ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second] UTC");
    let time = OffsetDateTime::from_unix_timestamp(unix_ms.div_euclid(1000)).ok().filter(|_| unix_ms > 0);
    time.and_then(|time| time.format(&format).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
