//! What every answer has in common: headers that leave a browser no room, and the words of a refusal.

use axum::body::Body;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};

use super::guard::Refusal;
use super::over::Over;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// On every answer. `same-origin`, not `no-referrer`: under the latter a browser names no origin even to the page's own forms.
const HEADERS: [(HeaderName, &str); 8] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "same-origin"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// The whole of what a stranger sees. It names neither daemon nor version, and needs no file beside it.
const LOGIN: [&str; 2] = [
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
     <meta name=\"color-scheme\" content=\"light dark\"><title>Conclave</title></head><body><main><h1>Conclave</h1>",
    "<form method=\"post\" action=\"/login\"><p><label for=\"token\">Token</label> <input id=\"token\" name=\"token\" \
     type=\"password\" autocomplete=\"off\" required autofocus> <button>Open</button></p><p>It is in the token file that the \
     configuration names.</p></form></main></body></html>",
];

/// For half a year the host is asked over TLS alone.
const STRICT: &str = "max-age=15552000";

/// Adds what every answer carries; `strict` to a host that is to be asked over TLS alone.
pub(super) fn dress(mut response: Response<Body>, strict: bool) -> Response<Body> {
    if strict {
        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(STRICT));
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A refusal.
pub(super) fn refusal(why: Refusal, tried: bool) -> Response<Body> {
    match why {
        Refusal::Unknown if tried => login("<p role=\"alert\">That is not the token.</p>"),
        Refusal::Unknown => login(""),
        Refusal::TooOften => {
            let mut response = login("<p role=\"alert\">Wrong tokens were tried too often: wait a minute.</p>");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
            response
        }
        Refusal::Host => plain(
            StatusCode::MISDIRECTED_REQUEST,
            "This page is not served under that name: use 127.0.0.1, or configure the name.\n",
        ),
        Refusal::Origin => plain(StatusCode::FORBIDDEN, "The request comes from another site.\n"),
        Refusal::Form => plain(StatusCode::FORBIDDEN, "The form is out of date: go back, load the page again, and repeat.\n"),
    }
}

fn login(says: &str) -> Response<Body> {
    of(StatusCode::UNAUTHORIZED, "text/html; charset=utf-8", LOGIN.join(says).into())
}

/// A few words.
pub(super) fn plain(status: StatusCode, words: &'static str) -> Response<Body> {
    of(status, "text/plain; charset=utf-8", words.into())
}

/// A page.
pub fn html(text: String) -> Response<Body> {
    of(StatusCode::OK, "text/html; charset=utf-8", text.into())
}

/// A page that says that there is none.
pub fn missing(text: String) -> Response<Body> {
    of(StatusCode::NOT_FOUND, "text/html; charset=utf-8", text.into())
}

/// A page that says that something was not done.
pub fn refused(text: String) -> Response<Body> {
    of(StatusCode::CONFLICT, "text/html; charset=utf-8", text.into())
}

/// A picture, SVG.
pub fn picture(text: String) -> Response<Body> {
    of(StatusCode::OK, "image/svg+xml", text.into())
}

/// A file that belongs to the pages.
pub fn file(kind: &'static str, text: &'static str) -> Response<Body> {
    of(StatusCode::OK, kind, text.into())
}

fn of(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Leads to another page of this site, which is asked for by GET.
pub fn see_other(path: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    // Paths are made here, of ids that fit a header; any other leads home.
    response.headers_mut().insert(LOCATION, HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/")));
    response
}

/// Sets the session's cookie, or takes it away.
pub(super) fn with_cookie(mut response: Response<Body>, over: Over, name: &str, id: Option<&str>) -> Response<Body> {
    let secure = if over == Over::Tls { "; Secure" } else { "" };
    let cookie = match id {
        Some(id) => format!("{name}={id}; HttpOnly; SameSite=Strict; Path=/{secure}"),
        None => format!("{name}=; HttpOnly; SameSite=Strict; Path=/{secure}; Max-Age=0"),
    };
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}
