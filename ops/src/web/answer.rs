//! Common parts of all answers: strict security headers, and the texts of refusals.

use axum::body::Body;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};

use super::guard::Refusal;
use super::login;
use super::transport::Transport;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers of every answer. The referrer policy is `same-origin`, since under `no-referrer` a browser sends no origin even with
/// the page's own forms.
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

/// Value of `Strict-Transport-Security`: half a year.
const STRICT: &str = "max-age=15552000";

/// Adds the headers of every answer; with `strict`, also `Strict-Transport-Security`.
pub(super) fn add_headers(mut response: Response<Body>, strict: bool) -> Response<Body> {
    if strict {
        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(STRICT));
    }
    // The login page has a policy of its own, which admits less.
    let policy = response.extensions_mut().remove::<LoginPolicy>();
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if let Some(LoginPolicy(policy)) = policy {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The policy of an answer with the login page.
#[derive(Debug, Clone)]
struct LoginPolicy(HeaderValue);

/// Builds the answer to a refused request.
pub(super) fn refusal(why: Refusal, tried: bool) -> Response<Body> {
    match why {
        Refusal::Unknown if tried => login_page("<p role=\"alert\">Wrong token.</p>"),
        Refusal::Unknown => login_page(""),
        Refusal::TooOften => {
            let mut response = login_page("<p role=\"alert\">Too many wrong tokens were tried: wait a minute.</p>");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
            response
        }
        Refusal::Host => plain(
            StatusCode::MISDIRECTED_REQUEST,
            "This page is not served under that host name: use 127.0.0.1, or configure the name.\n",
        ),
        Refusal::Origin => plain(StatusCode::FORBIDDEN, "The request comes from another site.\n"),
        Refusal::Form => plain(StatusCode::FORBIDDEN, "The form is out of date: go back, load the page again, and repeat.\n"),
    }
}

fn login_page(message: &str) -> Response<Body> {
    let mut response = response(StatusCode::UNAUTHORIZED, "text/html; charset=utf-8", login::page(message).into());
    if let Some(policy) = login::policy() {
        response.extensions_mut().insert(LoginPolicy(policy));
    }
    response
}

pub(super) fn plain(status: StatusCode, words: &'static str) -> Response<Body> {
    response(status, "text/plain; charset=utf-8", words.into())
}

/// Builds a page.
pub fn html(text: String) -> Response<Body> {
    response(StatusCode::OK, "text/html; charset=utf-8", text.into())
}

/// Builds a page for a missing item (404).
pub fn missing(text: String) -> Response<Body> {
    response(StatusCode::NOT_FOUND, "text/html; charset=utf-8", text.into())
}

/// Builds a page for an action that was refused (409).
pub fn refused(text: String) -> Response<Body> {
    response(StatusCode::CONFLICT, "text/html; charset=utf-8", text.into())
}

/// Builds an answer with an SVG image.
pub fn picture(text: String) -> Response<Body> {
    response(StatusCode::OK, "image/svg+xml", text.into())
}

/// Builds an answer with a stylesheet.
pub fn style(text: String) -> Response<Body> {
    response(StatusCode::OK, "text/css; charset=utf-8", text.into())
}

/// Builds an answer with a static file of the pages.
pub fn file(kind: &'static str, text: &'static str) -> Response<Body> {
    response(StatusCode::OK, kind, text.into())
}

fn response(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Redirects to another page of this site, to be requested by GET.
pub fn see_other(path: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    // Our own paths consist of ids that fit a header; any other path redirects to the start page.
    response.headers_mut().insert(LOCATION, HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/")));
    response
}

/// Sets the session's cookie, or removes it.
pub(super) fn with_cookie(mut response: Response<Body>, transport: Transport, name: &str, id: Option<&str>) -> Response<Body> {
    let secure = if transport == Transport::Tls { "; Secure" } else { "" };
    let cookie = match id {
        Some(id) => format!("{name}={id}; HttpOnly; SameSite=Strict; Path=/{secure}"),
        None => format!("{name}=; HttpOnly; SameSite=Strict; Path=/{secure}; Max-Age=0"),
    };
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}
