//! One connection to a page: its one request, who asks, and the answer.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use super::answer::{dress, plain, refusal, see_other, with_cookie};
use super::form::Fields;
use super::guard::{Caller, Guard, Refusal};
use super::over::Over;
use super::visitor::Peer;

/// Connections at a time of those who have shown the token; a watched page holds one.
pub(super) const CONNECTIONS: usize = 64;
/// The least that hyper takes for a request's head.
pub(super) const HEAD_BYTES: usize = 8 << 10;
/// A form's fields.
pub(super) const FORM_BYTES: usize = 16 << 10;
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const FORM_TIMEOUT: Duration = Duration::from_secs(5);
/// What a page may take to be made.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Request and answer together.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(45);
/// The same for a stream of events; a browser then asks again by itself.
const STREAM_TIMEOUT: Duration = Duration::from_secs(1800);

/// What a stranger's connection holds, to be dropped once it is known who asks.
pub type Slot = Box<dyn Any + Send>;

/// The pages, as they are answered over the connections that are handed in.
#[derive(Clone)]
pub struct PageConnections(Arc<Behind>);

/// Whether the daemon does its work, for `/healthz`.
pub type Healthy = Arc<dyn Fn() -> bool + Send + Sync>;

/// What lies behind a port.
struct Behind {
    guard: Guard,
    over: Over,
    pages: Router,
    healthy: Healthy,
    known: Arc<Semaphore>,
}

/// One connection.
struct PageConnection {
    peer: Peer,
    /// Whether the answer is a stream of events.
    streams: AtomicBool,
    slot: Mutex<Option<Slot>>,
}

impl fmt::Debug for PageConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageConnections").finish_non_exhaustive()
    }
}

impl PageConnections {
    pub(super) fn new(guard: Guard, over: Over, pages: Router, healthy: Healthy) -> Self {
        Self(Arc::new(Behind { guard, over, pages, healthy, known: Arc::new(Semaphore::new(CONNECTIONS)) }))
    }

    /// Answers the one request of a connection. `slot` is dropped as soon as that shows a token, and with the connection else.
    pub async fn hold(&self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer, slot: Option<Slot>) {
        let behind = &*self.0;
        let connected = PageConnection { peer, streams: AtomicBool::new(false), slot: Mutex::new(slot) };
        let service = service_fn(|request: Request<Incoming>| {
            let connected = &connected;
            async move {
                let strict = behind.guard.is_strict(request.headers(), &connected.peer);
                let response = answer(request, connected, behind).await;
                if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
                    connected.streams.store(true, Ordering::Relaxed);
                }
                Ok::<_, Infallible>(dress(response, strict))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        // Whoever asks badly or reads slowly is cut off, and nobody else notices.
        if tokio::time::timeout(CONNECTION_TIMEOUT, &mut connection).await.is_err() && connected.streams.load(Ordering::Relaxed) {
            let _ = tokio::time::timeout(STREAM_TIMEOUT, connection).await;
        }
    }
}

impl PageConnection {
    /// Whoever has the token no longer stands among strangers, who make room for each other.
    fn settle(&self, caller: &Caller, behind: &Behind) -> Result<(), Box<Response<Body>>> {
        if matches!(caller, Caller::Member { .. }) {
            return Ok(()); // whoever took the connection in counts those
        }
        let Ok(slot) = Arc::clone(&behind.known).try_acquire_owned() else {
            return Err(Box::new(plain(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open: close some\n")));
        };
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(slot));
        Ok(())
    }
}

async fn answer(request: Request<Incoming>, connected: &PageConnection, behind: &Behind) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if path == "/healthz" && parts.method == Method::GET {
        // To whoever asks, so without a reason.
        return match (behind.healthy)() {
            true => plain(StatusCode::OK, "ok\n"),
            false => plain(StatusCode::SERVICE_UNAVAILABLE, "not serving\n"),
        };
    }
    if path == "/login" && parts.method == Method::POST {
        return login(&parts, body, &connected.peer, behind).await;
    }
    match behind.guard.caller(&parts.headers, &connected.peer, Instant::now()) {
        Err(why) => refusal(why, false),
        Ok(caller) => match connected.settle(&caller, behind) {
            Ok(()) => known(parts, body, caller, &connected.peer, behind).await.unwrap_or_else(|refused| *refused),
            Err(full) => *full,
        },
    }
}

async fn login(parts: &Parts, body: Incoming, peer: &Peer, behind: &Behind) -> Response<Body> {
    let fields = form(parts, body).await.unwrap_or_default();
    match behind.guard.login(parts, &fields, peer, Instant::now()) {
        Ok(id) => with_cookie(see_other("/"), behind.over, &behind.guard.cookie(), Some(&id)),
        Err(why @ Refusal::TooOften) => refusal(why, true),
        // A stranger is told nothing else, whatever is wrong.
        Err(_) => refusal(Refusal::Unknown, true),
    }
}

type Answered = Result<Response<Body>, Box<Response<Body>>>;

async fn known(mut parts: Parts, body: Incoming, caller: Caller, peer: &Peer, behind: &Behind) -> Answered {
    let refused = |why| Box::new(refusal(why, false));
    let changes = parts.method == Method::POST;
    if !changes && parts.method != Method::GET && parts.method != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are answered here\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        return Err(Box::new(response));
    }
    behind.guard.admits(&parts, peer, &caller, changes).map_err(refused)?;
    if changes {
        let fields = form(&parts, body).await.map_err(Box::new)?;
        behind.guard.admits_form(&caller, &fields).map_err(refused)?;
        if parts.uri.path() == "/logout" {
            behind.guard.logout(&caller);
            return Ok(with_cookie(see_other("/"), behind.over, &behind.guard.cookie(), None));
        }
        parts.extensions.insert(fields);
    }
    parts.extensions.insert(caller.visitor());
    let made = tokio::time::timeout(PAGE_TIMEOUT, behind.pages.clone().oneshot(Request::from_parts(parts, Body::empty()))).await;
    match made {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(never)) => match never {},
        Err(_) => Ok(plain(StatusCode::SERVICE_UNAVAILABLE, "the page took too long\n")),
    }
}

/// Reads a form's fields; what is too long, too slow or no form is answered here.
async fn form(parts: &Parts, body: Incoming) -> Result<Fields, Response<Body>> {
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")) {
        return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "only forms are taken here\n"));
    }
    let read = tokio::time::timeout(FORM_TIMEOUT, Limited::new(body, FORM_BYTES).collect()).await;
    match read {
        Ok(Ok(body)) => Ok(Fields(form_urlencoded::parse(&body.to_bytes()).into_owned().collect())),
        _ => Err(plain(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long, or took too long to come\n")),
    }
}
