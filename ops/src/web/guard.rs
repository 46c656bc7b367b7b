//! Who is let in: token or session, host, origin, the form's word.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use ring::hmac;

use super::sessions::Sessions;
use super::token::Token;
use super::{Fields, Visitor};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// The form field that carries a session's word.
pub const CSRF_FIELD: &str = "csrf";

/// Keeps the pages of one daemon.
#[derive(Debug)]
pub(super) struct Guard {
    token: Token,
    /// Names under which the pages may be asked for, without ports, in lower case.
    hosts: Vec<String>,
    sessions: Mutex<Sessions>,
}

/// Why a request goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Who asks has shown no token.
    Unknown,
    /// Tokens were tried too often.
    TooOften,
    /// Asked for under a name that is not ours: a name elsewhere may have been made to point here.
    Host,
    /// Another site's page asks.
    Origin,
    /// The form is not one that this session was given.
    Form,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Caller {
    /// A browser.
    Session { id: String, csrf: String },
    /// A program that sends the token with every request. No browser does that by itself.
    Program,
}

impl Caller {
    pub(super) fn visitor(&self) -> Visitor {
        match self {
            Self::Session { csrf, .. } => Visitor { csrf: csrf.clone() },
            Self::Program => Visitor { csrf: String::new() },
        }
    }
}

impl Guard {
    pub(super) fn new(token: Token, names: &[String]) -> Self {
        let own = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
        let hosts = own.into_iter().chain(names.iter().map(|name| name.to_ascii_lowercase())).collect();
        Self { token, hosts, sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Every change is whole, so the sessions are usable even if a holder panicked.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the cookie.
    pub(super) fn cookie(&self) -> String {
        format!("conclave-{}", self.token.mark)
    }

    /// Who asks, by cookie or token.
    ///
    /// # Errors
    /// [`Refusal::Unknown`], [`Refusal::TooOften`].
    pub(super) fn caller(&self, headers: &HeaderMap, now: Instant) -> Result<Caller, Refusal> {
        if let Some(presented) = headers.get(AUTHORIZATION) {
            let token = presented.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
            return self.try_token(token.unwrap_or_default(), now).map(|()| Caller::Program);
        }
        let cookie = format!("{}=", self.cookie());
        let ids = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        let mut ids = ids.filter_map(|pair| pair.trim().strip_prefix(&cookie));
        let sessions = self.sessions();
        ids.find_map(|id| sessions.csrf(id, now).map(|csrf| Caller::Session { id: id.to_owned(), csrf })).ok_or(Refusal::Unknown)
    }

    fn try_token(&self, presented: &str, now: Instant) -> Result<(), Refusal> {
        let mut sessions = self.sessions();
        if !sessions.may_try(now) {
            return Err(Refusal::TooOften);
        }
        if self.token.is(presented) {
            return Ok(());
        }
        sessions.failed(now);
        Err(Refusal::Unknown)
    }

    /// Opens a session for whoever fills in the login form with the token; gives its cookie's value.
    ///
    /// # Errors
    /// As [`Self::caller`]; also where the form comes from elsewhere.
    pub(super) fn login(&self, parts: &Parts, fields: &Fields, now: Instant) -> Result<String, Refusal> {
        self.host(parts)?;
        same_origin(&parts.headers)?;
        self.try_token(fields.get("token").unwrap_or_default(), now)?;
        self.sessions().begin(now).map_err(|_| Refusal::TooOften)
    }

    /// Ends a session.
    pub(super) fn logout(&self, caller: &Caller) {
        if let Caller::Session { id, .. } = caller {
            self.sessions().end(id);
        }
    }

    /// Whether a known caller may ask for this, before the request's body is read.
    ///
    /// # Errors
    /// [`Refusal::Host`], [`Refusal::Origin`].
    pub(super) fn admits(&self, parts: &Parts, caller: &Caller, changes: bool) -> Result<(), Refusal> {
        self.host(parts)?;
        let headers = &parts.headers;
        match (caller, changes) {
            (Caller::Session { .. }, true) => same_origin(headers),
            (Caller::Program, true) if headers.contains_key(ORIGIN) => same_origin(headers),
            (Caller::Program, _) => Ok(()),
            // Another site may lead here by a link, and embed or fetch nothing.
            (Caller::Session { .. }, false) => match text(headers, &FETCH_SITE) {
                Some("cross-site" | "same-site") if text(headers, &FETCH_MODE) != Some("navigate") => Err(Refusal::Origin),
                _ => Ok(()),
            },
        }
    }

    /// Whether a form may change something.
    ///
    /// # Errors
    /// [`Refusal::Form`].
    pub(super) fn admits_form(&self, caller: &Caller, fields: &Fields) -> Result<(), Refusal> {
        match caller {
            Caller::Program => Ok(()),
            Caller::Session { csrf, .. } => match fields.get(CSRF_FIELD).is_some_and(|word| same(word, csrf)) {
                true => Ok(()),
                false => Err(Refusal::Form),
            },
        }
    }

    fn host(&self, parts: &Parts) -> Result<(), Refusal> {
        let mut hosts = parts.headers.get_all(HOST).iter();
        match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next(), parts.uri.authority()) {
            (Some(host), None, None) if self.hosts.contains(&name_of(host)) => Ok(()),
            _ => Err(Refusal::Host),
        }
    }
}

/// A host without its port, in lower case. Ports don't matter here: the pages may be reached through a tunnel.
fn name_of(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    name.to_ascii_lowercase()
}

/// Whether a page of this very site asks, by the browser's word. One that says nothing is refused.
fn same_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let (origin, host) = (text(headers, &ORIGIN), text(headers, &HOST));
    let of_host = |host: &str| [format!("http://{host}"), format!("https://{host}")];
    let ours = origin.zip(host).is_some_and(|(origin, host)| of_host(host).iter().any(|o| o.eq_ignore_ascii_case(origin)));
    let site = text(headers, &FETCH_SITE).is_none_or(|site| site == "same-origin");
    if ours && site { Ok(()) } else { Err(Refusal::Origin) }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Compares in a time that does not depend on where two words differ.
fn same(one: &str, other: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, other.as_bytes());
    hmac::verify(&key, one.as_bytes(), hmac::sign(&key, other.as_bytes()).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hyper::Request;

    fn guard() -> (Guard, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let guard = Guard::new(Token::at(&path).unwrap(), &["Board.Example".to_owned()]);
        (guard, std::fs::read_to_string(&path).unwrap())
    }

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn hosts_are_known_by_name_and_under_any_port() {
        let (guard, _) = guard();
        for good in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "[::1]", "board.example:443"] {
            assert_eq!(guard.host(&parts(&[("host", good)])), Ok(()), "{good}");
        }
        for bad in ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "", "evil@127.0.0.1", "::1"] {
            assert_eq!(guard.host(&parts(&[("host", bad)])), Err(Refusal::Host), "{bad}");
        }
        assert!(guard.host(&parts(&[])).is_err());
        assert!(guard.host(&parts(&[("host", "localhost"), ("host", "evil.example")])).is_err());
    }

    #[test]
    fn only_pages_of_this_site_change_anything() {
        let ours = [("host", "localhost:8080"), ("origin", "http://localhost:8080")];
        assert_eq!(same_origin(&parts(&ours).headers), Ok(()));
        let with = |name, value| same_origin(&parts(&[ours[0], ours[1], (name, value)]).headers);
        assert_eq!(with("sec-fetch-site", "same-origin"), Ok(()));
        for site in ["cross-site", "same-site", "none"] {
            assert_eq!(with("sec-fetch-site", site), Err(Refusal::Origin), "{site}");
        }
        for origin in ["http://localhost:8081", "http://evil.example", "null", "http://localhost", ""] {
            assert!(same_origin(&parts(&[ours[0], ("origin", origin)]).headers).is_err(), "{origin}");
        }
        assert!(same_origin(&parts(&ours[..1]).headers).is_err());
    }

    #[test]
    fn a_session_needs_its_own_word_and_a_program_none() {
        let (guard, token) = guard();
        let now = Instant::now();
        let ours = parts(&[("host", "localhost"), ("origin", "http://localhost")]);
        assert_eq!(guard.login(&ours, &Fields::of(&[("token", "wrong")]), now), Err(Refusal::Unknown));
        assert_eq!(guard.login(&parts(&[("host", "localhost")]), &Fields::of(&[("token", &token)]), now), Err(Refusal::Origin));
        let [one, other] = [0, 1].map(|_| guard.login(&ours, &Fields::of(&[("token", &token)]), now).unwrap());
        let of = |id: &str| guard.caller(&parts(&[("cookie", &format!("a=b; {}={id}", guard.cookie()))]).headers, now);
        let (caller, stranger) = (of(&one).unwrap(), of(&other).unwrap());
        assert_eq!(of("x"), Err(Refusal::Unknown));
        assert_eq!(guard.admits_form(&caller, &Fields::of(&[(CSRF_FIELD, &caller.visitor().csrf)])), Ok(()));
        for wrong in ["", "x", &stranger.visitor().csrf] {
            assert_eq!(guard.admits_form(&caller, &Fields::of(&[(CSRF_FIELD, wrong)])), Err(Refusal::Form));
        }
        assert_eq!(guard.admits_form(&caller, &Fields::of(&[])), Err(Refusal::Form));
        guard.logout(&caller);
        assert_eq!(of(&one), Err(Refusal::Unknown));

        let bearer = parts(&[("authorization", &format!("Bearer {}", token.trim()))]);
        assert_eq!(guard.caller(&bearer.headers, now), Ok(Caller::Program));
        assert_eq!(guard.admits_form(&Caller::Program, &Fields::of(&[])), Ok(()));
        let elsewhere = parts(&[("host", "localhost"), ("origin", "http://evil.example")]);
        assert_eq!(guard.admits(&elsewhere, &Caller::Program, true), Err(Refusal::Origin));
    }

    #[test]
    fn guessing_is_slow_even_for_who_has_the_token() {
        let (guard, token) = guard();
        let now = Instant::now();
        let presents = |word: &str| guard.caller(&parts(&[("authorization", &format!("Bearer {word}"))]).headers, now);
        while presents("wrong") == Err(Refusal::Unknown) {}
        assert_eq!(presents(token.trim()), Err(Refusal::TooOften));
    }
}
