//! Pages for people, behind a token: one guard for the coordinator's dashboard and the party's own page.
//!
//! What a browser can be made to do by a page elsewhere is refused by several means, each enough alone: the session's cookie is
//! `SameSite=Strict`, the `Host` must be a name of ours (names elsewhere may point here), whatever changes something needs our
//! own `Origin` and a word that only this session's pages hold, and no page can be framed. Without token or session every path
//! but `/healthz` answers 401 with the login form.

mod answer;
pub mod events;
mod guard;
mod sessions;
mod token;

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use crate::listen::attend;
use answer::{dress, plain, refusal, with_cookie};
pub use answer::{file, html, missing, picture, refused, see_other};
pub use guard::CSRF_FIELD;
use guard::{Caller, Guard, Refusal};
use token::Token;

/// Connections at a time; a watched page holds one.
const CONNECTIONS: usize = 64;
/// The least that hyper takes for a request's head.
const HEAD_BYTES: usize = 8 << 10;
/// A form's fields.
const FORM_BYTES: usize = 16 << 10;
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const FORM_TIMEOUT: Duration = Duration::from_secs(5);
/// What a page may take to be made.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Request and answer together.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(45);
/// The same for a stream of events; a browser then asks again by itself.
const STREAM_TIMEOUT: Duration = Duration::from_secs(1800);

/// Who looks at a page: every request that reaches the pages carries it as an extension.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// What the field [`CSRF_FIELD`] of every form must hold; empty for a program, which needs none.
    pub csrf: String,
}

/// The fields of a form that was sent, as an extension of every `POST` that reaches the pages.
#[derive(Debug, Clone, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// These fields, as if they had been sent.
    #[must_use]
    pub fn of(fields: &[(&str, &str)]) -> Self {
        Self(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// The first field of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// Whether the daemon does its work, for `/healthz`.
pub type Healthy = Arc<dyn Fn() -> bool + Send + Sync>;

/// A port that listens and serves no page yet.
pub struct Site {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The address that a configuration names under `key`, if pages may be served there.
///
/// # Errors
/// A sentence that names the key, with the remedy.
pub fn address(key: &str, text: &str) -> Result<SocketAddr, String> {
    let address = text.parse();
    let address = address.map_err(|_| format!("`{key}` = {text:?} is not an address with a port, such as \"127.0.0.1:8080\""))?;
    loopback_only(key, address).map(|()| address)
}

/// Whether pages may be served at an address: they go over plain HTTP, so nobody on the way may see them.
///
/// # Errors
/// A sentence with the remedy, where others can reach the address.
fn loopback_only(key: &str, address: SocketAddr) -> Result<(), String> {
    match address.ip().is_loopback() {
        true => Ok(()),
        false => Err(format!(
            "`{key}` = \"{address}\": pages are served without TLS, and so on the loopback interface alone: use \
             \"127.0.0.1:{port}\", and reach it through `ssh -L {port}:127.0.0.1:{port} HOST`",
            port = address.port()
        )),
    }
}

impl Site {
    /// Takes the address of the configuration's `key`, and makes the token file where there is none. `names` are hosts under which
    /// the pages may be asked for beside the loopback's own.
    ///
    /// # Errors
    /// A sentence that names the key or the file.
    pub async fn bind(key: &str, address: SocketAddr, token: &Path, names: &[String]) -> Result<Self, String> {
        loopback_only(key, address)?;
        let guard = Guard::new(Token::at(token)?, names);
        let unusable = |e: std::io::Error| format!("`{key}` = \"{address}\": can't listen there ({e})");
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        tracing::info!("{key} at http://{address}/; the token that opens it is in {}", token.display());
        Ok(Self { listener, address, guard })
    }

    /// The address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped.
    pub async fn serve(self, pages: Router, healthy: Healthy) {
        let behind = Arc::new(Behind { guard: self.guard, pages, healthy });
        attend(&self.listener, CONNECTIONS, |stream| converse(stream, Arc::clone(&behind))).await;
    }
}

/// What lies behind a port.
struct Behind {
    guard: Guard,
    pages: Router,
    healthy: Healthy,
}

async fn converse(stream: TcpStream, behind: Arc<Behind>) {
    let streams = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| {
        let (behind, streams) = (Arc::clone(&behind), Arc::clone(&streams));
        async move {
            let response = answer(request, &behind).await;
            if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
                streams.store(true, Ordering::Relaxed);
            }
            Ok::<_, Infallible>(dress(response))
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
    if tokio::time::timeout(CONNECTION_TIMEOUT, &mut connection).await.is_err() && streams.load(Ordering::Relaxed) {
        let _ = tokio::time::timeout(STREAM_TIMEOUT, connection).await;
    }
}

async fn answer(request: Request<Incoming>, behind: &Behind) -> Response<Body> {
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
        return login(&parts, body, &behind.guard).await;
    }
    match behind.guard.caller(&parts.headers, Instant::now()) {
        Err(why) => refusal(why, false),
        Ok(caller) => known(parts, body, caller, behind).await.unwrap_or_else(|refused| *refused),
    }
}

async fn login(parts: &Parts, body: Incoming, guard: &Guard) -> Response<Body> {
    let fields = form(parts, body).await.unwrap_or_default();
    match guard.login(parts, &fields, Instant::now()) {
        Ok(id) => with_cookie(see_other("/"), &guard.cookie(), Some(&id)),
        Err(why @ Refusal::TooOften) => refusal(why, true),
        // A stranger is told nothing else, whatever is wrong.
        Err(_) => refusal(Refusal::Unknown, true),
    }
}

type Answered = Result<Response<Body>, Box<Response<Body>>>;

async fn known(mut parts: Parts, body: Incoming, caller: Caller, behind: &Behind) -> Answered {
    let refused = |why| Box::new(refusal(why, false));
    let changes = parts.method == Method::POST;
    if !changes && parts.method != Method::GET && parts.method != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are answered here\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        return Err(Box::new(response));
    }
    behind.guard.admits(&parts, &caller, changes).map_err(refused)?;
    if changes {
        let fields = form(&parts, body).await.map_err(Box::new)?;
        behind.guard.admits_form(&caller, &fields).map_err(refused)?;
        if parts.uri.path() == "/logout" {
            behind.guard.logout(&caller);
            return Ok(with_cookie(see_other("/"), &behind.guard.cookie(), None));
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

#[cfg(test)]
mod tests;
