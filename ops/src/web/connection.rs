//! A connection to a page: its single request, the caller, and the answer.

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

use super::answer::{add_headers, plain, refusal, see_other, with_cookie};
use super::form::Fields;
use super::guard::{Caller, Guard, Refusal};
use super::once;
use super::transport::Transport;
use super::visitor::Peer;

/// Maximum number of simultaneous connections with a valid token; a watched page holds one.
pub(super) const CONNECTIONS: usize = 64;
/// Maximum size of a request's head: hyper's minimum.
pub(super) const HEAD_BYTES: usize = 8 << 10;
pub(super) const FORM_BYTES: usize = 16 << 10;
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const FORM_TIMEOUT: Duration = Duration::from_secs(5);
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a request and its answer together.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(45);
/// Additional timeout of a stream of events, after which a browser reconnects by itself.
const STREAM_TIMEOUT: Duration = Duration::from_secs(1800);

/// A permit that an unauthenticated connection holds, dropped once its caller is known.
pub type Slot = Box<dyn Any + Send>;

/// The server of the pages for accepted connections.
#[derive(Clone)]
pub struct PageConnections(Arc<Server>);

/// The health check for `/healthz`; true if the daemon works.
pub type HealthCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// The state shared by all connections of a port.
struct Server {
    guard: Guard,
    transport: Transport,
    pages: Router,
    health: HealthCheck,
    /// Permits of connections with a valid token.
    authenticated: Arc<Semaphore>,
}

struct PageConnection {
    peer: Peer,
    /// True if the answer is a stream of events.
    streams: AtomicBool,
    slot: Mutex<Option<Slot>>,
}

impl fmt::Debug for PageConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageConnections").finish_non_exhaustive()
    }
}

impl PageConnections {
    pub(super) fn new(guard: Guard, transport: Transport, pages: Router, health: HealthCheck) -> Self {
        let authenticated = Arc::new(Semaphore::new(CONNECTIONS));
        Self(Arc::new(Server { guard, transport, pages, health, authenticated }))
    }

    /// Answers the single request of a connection. `slot` is dropped as soon as the request presents a valid token, else with
    /// the connection.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer, slot: Option<Slot>) {
        let server = &*self.0;
        let connected = PageConnection { peer, streams: AtomicBool::new(false), slot: Mutex::new(slot) };
        let service = service_fn(|request: Request<Incoming>| {
            let connected = &connected;
            async move {
                let strict = server.guard.is_strict(request.headers(), &connected.peer);
                let response = answer(request, connected, server).await;
                if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
                    connected.streams.store(true, Ordering::Relaxed);
                }
                Ok::<_, Infallible>(add_headers(response, strict))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        // An invalid request or a slow reader is cut off without effect on other connections.
        if tokio::time::timeout(CONNECTION_TIMEOUT, &mut connection).await.is_err() && connected.streams.load(Ordering::Relaxed) {
            let _ = tokio::time::timeout(STREAM_TIMEOUT, connection).await;
        }
    }
}

impl PageConnection {
    /// Moves an authenticated caller out of the limit of unauthenticated connections, which displace each other.
    fn authenticate(&self, caller: &Caller, server: &Server) -> Result<(), Box<Response<Body>>> {
        if matches!(caller, Caller::Member { .. }) {
            return Ok(()); // the acceptor of the connection counts members
        }
        let Ok(slot) = Arc::clone(&server.authenticated).try_acquire_owned() else {
            return Err(Box::new(plain(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open: close some\n")));
        };
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(slot));
        Ok(())
    }
}

async fn answer(request: Request<Incoming>, connected: &PageConnection, server: &Server) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if path == "/healthz" && parts.method == Method::GET {
        // Anyone may request this, so it gives no reason.
        return match (server.health)() {
            true => plain(StatusCode::OK, "ok\n"),
            false => plain(StatusCode::SERVICE_UNAVAILABLE, "not serving\n"),
        };
    }
    if path == "/login" && parts.method == Method::POST {
        return login(&parts, body, &connected.peer, server).await;
    }
    if path == once::PATH
        && parts.method == Method::GET
        && let Some(link) = once::presented(parts.uri.query())
    {
        return opened(server.guard.open_once(&parts, link, &connected.peer, Instant::now()), server);
    }
    match server.guard.caller(&parts.headers, &connected.peer, Instant::now()) {
        Err(why) => refusal(why, false),
        Ok(caller) => match connected.authenticate(&caller, server) {
            Ok(()) => answer_caller(parts, body, caller, &connected.peer, server).await.unwrap_or_else(|refused| *refused),
            Err(full) => *full,
        },
    }
}

async fn login(parts: &Parts, body: Incoming, peer: &Peer, server: &Server) -> Response<Body> {
    let fields = form(parts, body).await.unwrap_or_default();
    opened(server.guard.login(parts, &fields, peer, Instant::now()), server)
}

/// Answers an attempt to open a session: the start page, or the login page.
fn opened(session: Result<String, Refusal>, server: &Server) -> Response<Body> {
    match session {
        Ok(id) => with_cookie(see_other("/"), server.transport, &server.guard.cookie(), Some(&id)),
        Err(why @ Refusal::TooOften) => refusal(why, true),
        // An unauthenticated caller gets the same answer for every other error.
        Err(_) => refusal(Refusal::Unknown, true),
    }
}

type Answered = Result<Response<Body>, Box<Response<Body>>>;

async fn answer_caller(mut parts: Parts, body: Incoming, caller: Caller, peer: &Peer, server: &Server) -> Answered {
    let refused = |why| Box::new(refusal(why, false));
    let changes = parts.method == Method::POST;
    if !changes && parts.method != Method::GET && parts.method != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are allowed\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        return Err(Box::new(response));
    }
    server.guard.check_request(&parts, peer, &caller, changes).map_err(refused)?;
    if changes {
        let fields = form(&parts, body).await.map_err(Box::new)?;
        server.guard.check_form(&caller, &fields).map_err(refused)?;
        if parts.uri.path() == "/logout" {
            server.guard.logout(&caller);
            return Ok(with_cookie(see_other("/"), server.transport, &server.guard.cookie(), None));
        }
        parts.extensions.insert(fields);
    }
    parts.extensions.insert(caller.visitor());
    let made = tokio::time::timeout(PAGE_TIMEOUT, server.pages.clone().oneshot(Request::from_parts(parts, Body::empty()))).await;
    match made {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(never)) => match never {},
        Err(_) => Ok(plain(StatusCode::SERVICE_UNAVAILABLE, "the page took too long\n")),
    }
}

/// Reads a form's fields. A body that is too long, too slow or not a form yields an error answer.
async fn form(parts: &Parts, body: Incoming) -> Result<Fields, Response<Body>> {
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")) {
        return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "only forms are accepted\n"));
    }
    let read = tokio::time::timeout(FORM_TIMEOUT, Limited::new(body, FORM_BYTES).collect()).await;
    match read {
        Ok(Ok(body)) => Ok(Fields(form_urlencoded::parse(&body.to_bytes()).into_owned().collect())),
        _ => Err(plain(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long, or took too long to arrive\n")),
    }
}
