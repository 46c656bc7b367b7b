//! Live pages, whose parts are sent as they change.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use conclave_common::text::lines;
use futures_util::stream;
use serde_json::json;

/// Interval of keep-alive lines, which show each end that the other still exists.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The state of a page at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The page's parts: the id of each element, and its content as HTML.
    pub parts: Vec<(&'static str, String)>,
    /// True if the page will not change any more.
    pub is_final: bool,
}

struct Feed<F> {
    snapshot: F,
    /// Digest of each part as last sent.
    sent: HashMap<&'static str, u64>,
    ready: VecDeque<Event>,
    started: bool,
    finished: bool,
}

/// Returns an answer that takes a `snapshot` at each `interval` and sends the changed parts, until its connection ends.
pub fn stream<F, N>(interval: Duration, snapshot: F) -> Response
where
    F: FnMut() -> N + Send + 'static,
    N: Future<Output = Snapshot> + Send + 'static,
{
    let feed = Feed { snapshot, sent: HashMap::new(), ready: VecDeque::new(), started: false, finished: false };
    let events = stream::unfold(feed, move |mut feed| async move {
        loop {
            if let Some(event) = feed.ready.pop_front() {
                return Some((Ok::<_, Infallible>(event), feed));
            }
            if feed.finished {
                return None;
            }
            if feed.started {
                tokio::time::sleep(interval).await;
            }
            feed.started = true;
            let snapshot = (feed.snapshot)().await;
            feed.add(snapshot);
        }
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

impl<F> Feed<F> {
    fn add(&mut self, snapshot: Snapshot) {
        for (id, content) in snapshot.parts {
            // As in a whole page, no character acts on the display.
            let content = lines(&content);
            let mut digest = DefaultHasher::new();
            content.hash(&mut digest);
            if self.sent.insert(id, digest.finish()) != Some(digest.finish()) {
                // JSON contains neither line breaks nor carriage returns.
                self.ready.push_back(Event::default().data(json!({ "id": id, "html": content }).to_string()));
            }
        }
        if snapshot.is_final {
            self.finished = true;
            self.ready.push_back(Event::default().event("end").data("-"));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn no_character_of_a_part_acts_on_the_display() {
        let snapshot = || Snapshot { parts: vec![("p", "<b>dose\u{202e}\u{1b}</b>\n".to_owned())], is_final: true };
        let response = stream(Duration::ZERO, move || std::future::ready(snapshot()));
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert!(text.contains("<b>dose\u{fffd} </b>\\n"), "{text}");
    }
}
