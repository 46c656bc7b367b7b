//! Shared state of the pages: facts from the party's files, read now or a moment ago.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::Response;
use conclave_pages::site::{self, Served};
use maud::{Markup, html};

use super::read::{self, Days, Facts};
use super::warnings::Warnings;
use crate::config::PartyConfig;
use conclave_vault::answer::answer_timing::OwnTimes;

/// Time for which read facts are shown before they are read again.
pub(super) const FRESH: Duration = Duration::from_secs(2);

/// Inputs of the pages.
#[derive(Debug)]
pub(super) struct PageState {
    pub(super) config: PartyConfig,
    pub(super) times: OwnTimes,
    pub(super) warnings: Warnings,
    pub(super) read: tokio::sync::Mutex<Read>,
}

#[derive(Debug, Default)]
pub(super) struct Read {
    days: Days,
    last: Option<(Instant, Arc<Facts>)>,
}

pub(super) type Shared = State<Arc<PageState>>;

impl PageState {
    /// Returns the facts to show, read now or a moment ago; one reader at a time.
    pub(super) async fn facts(&self) -> Arc<Facts> {
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

    /// Forces the next visit to read again, for instance after a decision.
    pub(super) async fn invalidate(&self) {
        self.read.lock().await.last = None;
    }
}

/// Renders a page with one message.
pub(super) fn message_page(title: &str, what: &Markup, answer: fn(String) -> Response) -> Response {
    let body = html! { (what) p { a href="/" { "To the party's page" } } };
    answer(site::render(&Served::message(title, &body)))
}
