//! Pages that keep up to date: their parts, sent as they change.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;

/// A line in between tells both ends that the other is there.
const ALIVE: Duration = Duration::from_secs(15);

/// A page at a moment.
#[derive(Debug, Clone)]
pub struct Now {
    /// Its parts: each one's element, and what it holds, as HTML.
    pub parts: Vec<(&'static str, String)>,
    /// Whether nothing of it will change any more.
    pub over: bool,
}

struct Feed<F> {
    look: F,
    /// Digest of what was sent of each part last.
    sent: HashMap<&'static str, u64>,
    ready: VecDeque<Event>,
    began: bool,
    over: bool,
}

/// The answer that sends what `look` finds `every` so often, where it differs from what was sent before. It lives no longer than its
/// connection.
pub fn stream<F, N>(every: Duration, look: F) -> Response
where
    F: FnMut() -> N + Send + 'static,
    N: Future<Output = Now> + Send + 'static,
{
    let feed = Feed { look, sent: HashMap::new(), ready: VecDeque::new(), began: false, over: false };
    let events = stream::unfold(feed, move |mut feed| async move {
        loop {
            if let Some(event) = feed.ready.pop_front() {
                return Some((Ok::<_, Infallible>(event), feed));
            }
            if feed.over {
                return None;
            }
            if feed.began {
                tokio::time::sleep(every).await;
            }
            feed.began = true;
            let now = (feed.look)().await;
            feed.take(now);
        }
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response()
}

impl<F> Feed<F> {
    fn take(&mut self, now: Now) {
        for (id, content) in now.parts {
            let mut digest = DefaultHasher::new();
            content.hash(&mut digest);
            if self.sent.insert(id, digest.finish()) != Some(digest.finish()) {
                // As JSON, which holds neither line breaks nor carriage returns.
                self.ready.push_back(Event::default().data(json!({ "id": id, "html": content }).to_string()));
            }
        }
        if now.over {
            self.over = true;
            self.ready.push_back(Event::default().event("end").data("-"));
        }
    }
}
