//! The login page, which is all that a visitor without a token sees. It names neither daemon nor version, and needs no other file.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use ring::digest::{SHA256, digest};

/// The stylesheet, with the colours and shapes of the pages. It is embedded, since a stranger gets no file of the pages.
const STYLE: &str = include_str!("login.css");

/// The page before its stylesheet, after it, and after the message.
const PARTS: [&str; 3] = [
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
     content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><title>Conclave: log in</title>\
     <style>",
    "</style></head><body><main><h1>Conclave</h1>",
    "<form method=\"post\" action=\"/login\"><p><label for=\"token\">Token</label><input id=\"token\" name=\"token\" type=\"password\" \
     autocomplete=\"off\" required autofocus></p><p><button>Open</button></p><p class=\"note\">The token is in the token file named in the \
     configuration.</p></form></main></body></html>",
];

/// The policy of the page: its own stylesheet by hash, and its form.
static POLICY: LazyLock<Option<HeaderValue>> = LazyLock::new(|| {
    let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy =
        format!("default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'");
    HeaderValue::from_str(&policy).ok()
});

/// Renders the page with a message, which is HTML.
pub(super) fn page(message: &str) -> String {
    let [start, middle, end] = PARTS;
    format!("{start}{STYLE}{middle}{message}{end}")
}

/// Returns the page's content security policy.
pub(super) fn policy() -> Option<HeaderValue> {
    POLICY.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_admits_exactly_the_embedded_stylesheet() {
        let page = page("<p role=\"alert\">Wrong token.</p>");
        let inside = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next());
        assert!(inside == Some(STYLE) && !STYLE.contains('<') && page.contains("Wrong token."));
        let policy = policy().and_then(|policy| policy.to_str().map(str::to_owned).ok()).unwrap_or_default();
        assert!(policy.contains("style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
        for outside in ["http", "src=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
