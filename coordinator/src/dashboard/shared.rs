//! Items that all dashboard pages share.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use conclave_ops::web::events::Snapshot;
use conclave_ops::web::{self, Principal, Visitor};
use conclave_pages::page::{Tone, notice};
use conclave_pages::site::{self, Served};
use conclave_pages::text::plain;
use maud::{Markup, html};

use super::watched_job::WatchedJobs;
use crate::live::StoredChains;
use crate::party_registry::PartyRegistry;
use crate::registry::{JobFilter, JobRegistry};

/// State behind the pages.
#[derive(Debug)]
pub(super) struct Dashboard {
    pub(super) job_registry: Arc<JobRegistry>,
    pub(super) party_registry: Arc<PartyRegistry>,
    pub(super) watched: WatchedJobs,
    pub(super) stored: StoredChains,
}

pub(super) type Shared = State<Arc<Dashboard>>;

/// Interval at which a page is checked for changes.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Name of this daemon in the titles of tabs.
pub(super) const DAEMON: &str = "coordinator";

/// Maximum length of a displayed sentence written by a party or an analyst.
pub(super) const SENTENCE: usize = 600;

/// A section of a page: its element's id and its current content.
pub(super) type Part = (&'static str, Markup);

/// Returns the filter for the jobs that a visitor may see and cancel.
pub(super) fn visible_jobs(visitor: &Visitor) -> JobFilter {
    match &visitor.principal {
        Principal::Operator => JobFilter::All,
        Principal::Member(analyst) => JobFilter::OfAnalyst(analyst.clone()),
    }
}

/// Returns true for the coordinator's operator, who also sees details of this machine.
pub(super) fn is_operator(visitor: &Visitor) -> bool {
    matches!(visitor.principal, Principal::Operator)
}

/// Starts a sentence with a capital letter.
pub(super) fn sentence_case(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Renders all warnings in one notice, each once.
pub(super) fn warnings(all: &[String]) -> Markup {
    let mut once: Vec<&String> = Vec::new();
    all.iter().for_each(|warning| {
        if !once.contains(&warning) {
            once.push(warning)
        }
    });
    match once.as_slice() {
        [] => Markup::default(),
        [one] => notice(Tone::Warning, "Warning", &html! { p { (plain(one, SENTENCE)) } }, false),
        several => {
            let list = html! { ul { @for warning in several { li { (plain(warning, SENTENCE)) } } } };
            notice(Tone::Warning, &format!("{} warnings", several.len()), &list, false)
        }
    }
}

/// Converts sections to the form in which they are sent.
pub(super) fn now(parts: Vec<Part>, is_final: bool) -> Snapshot {
    Snapshot { parts: parts.into_iter().map(|(id, content)| (id, content.into_string())).collect(), is_final }
}

/// A not-found page that gives the reason.
pub(super) fn missing(words: &str) -> Response {
    let body = html! { p { (words) } p { a href="/" { "All jobs" } } };
    web::missing(site::render(&Served::message("Nothing here", &body)))
}

/// Returns the number after `name=` in an address, or 0.
pub(super) fn number_in(uri: &Uri, name: &str) -> usize {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
}
