//! What all pages of the dashboard have in common.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use conclave_ops::web::events::Snapshot;
use conclave_ops::web::{self, Principal, Visitor};
use conclave_pages::site::{self, Served};
use maud::{Markup, html};
use time::OffsetDateTime;
use time::macros::format_description;

use super::watched_job::WatchedJobs;
use crate::live::Stored;
use crate::party_registry::PartyRegistry;
use crate::registry::{JobRegistry, Whose};

/// What the pages are made from.
#[derive(Debug)]
pub(super) struct Dashboard {
    pub(super) job_registry: Arc<JobRegistry>,
    pub(super) party_registry: Arc<PartyRegistry>,
    pub(super) watched: WatchedJobs,
    pub(super) stored: Stored,
}

/// The state that every page is made from.
pub(super) type Shared = State<Arc<Dashboard>>;

/// How often it is looked whether something of a page has changed.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// Longest sentence of a party's or of the analyst's that is shown.
pub(super) const SENTENCE: usize = 600;

/// A part of a page: its element's id, and what it holds now.
pub(super) type Part = (&'static str, Markup);

/// Whose jobs a visitor may see, and cancel.
pub(super) fn whose(visitor: &Visitor) -> Whose {
    match &visitor.principal {
        Principal::Operator => Whose::Everybodys,
        Principal::Member(analyst) => Whose::Of(analyst.clone()),
    }
}

/// Whether a visitor is the coordinator's operator, who sees what is the machine's own.
pub(super) fn is_operator(visitor: &Visitor) -> bool {
    matches!(visitor.principal, Principal::Operator)
}

/// The parts as they are sent.
pub(super) fn now(parts: Vec<Part>, is_final: bool) -> Snapshot {
    Snapshot { parts: parts.into_iter().map(|(id, content)| (id, content.into_string())).collect(), is_final }
}

/// A page that says why there is none.
pub(super) fn missing(words: &str) -> Response {
    let body = html! { p { (words) } p { a href="/" { "All jobs" } } };
    let text = site::render(&Served {
        title: "Nothing here",
        parents: &[],
        csrf: (web::CSRF_FIELD, ""),
        has_session: false,
        events: None,
        body: &body,
    });
    web::missing(text)
}

/// The number after `name=` in an address, or 0.
pub(super) fn number_in(uri: &Uri, name: &str) -> usize {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// A moment as people read it, UTC; empty for none.
pub(super) fn utc(unix_ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second] UTC");
    let time = OffsetDateTime::from_unix_timestamp(unix_ms.div_euclid(1000)).ok().filter(|_| unix_ms > 0);
    time.and_then(|time| time.format(&format).ok()).unwrap_or_default()
}
