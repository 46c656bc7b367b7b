//! Who is let in: token, session or certificate; host, origin, the form's word.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use ring::hmac;
use ring::rand::SystemRandom;

use super::attempts::Attempts;
use super::form::{CSRF_FIELD, Fields};
use super::over::Over;
use super::sessions::Sessions;
use super::token::{Token, hex};
use super::visitor::{Peer, Visitor, Who};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Keeps the pages of one daemon.
#[derive(Debug)]
pub(super) struct Guard {
    token: Token,
    /// Names under which the pages may be asked for, without ports, in lower case.
    hosts: Vec<String>,
    over: Over,
    /// Makes the words of visitors who have a certificate and no session.
    words: hmac::Key,
    sessions: Mutex<Sessions>,
    attempts: Mutex<Attempts>,
}

/// The loopback's own names.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Why a request goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Who asks has shown neither token nor certificate.
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
    /// A browser with a certificate. It sends that along with every request, whichever site's page asks.
    Member { name: String, csrf: String },
    /// A program that sends the token with every request. No browser does that by itself.
    Program,
}

impl Caller {
    pub(super) fn visitor(&self) -> Visitor {
        match self {
            Self::Session { csrf, .. } => Visitor { csrf: csrf.clone(), who: Who::Operator },
            Self::Member { name, csrf } => Visitor { csrf: csrf.clone(), who: Who::Member(name.clone()) },
            Self::Program => Visitor { csrf: String::new(), who: Who::Operator },
        }
    }
}

impl Guard {
    /// # Errors
    /// An operating system without random numbers.
    pub(super) fn new(token: Token, names: &[String], over: Over) -> Result<Self, String> {
        let names = names.iter().map(|name| name.to_ascii_lowercase());
        let hosts = LOOPBACK.map(str::to_owned).into_iter().chain(names).collect();
        let words = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the operating system gives no random numbers".to_owned())?;
        Ok(Self { token, hosts, over, words, sessions: Mutex::default(), attempts: Mutex::default() })
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Every change is whole, so the sessions are usable even if a holder panicked.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the cookie.
    pub(super) fn cookie(&self) -> String {
        // A browser takes the prefix from this very host over TLS alone: no neighbour's page can set such a cookie.
        let prefix = if self.over == Over::Tls { "__Host-" } else { "" };
        format!("{prefix}conclave-{}", self.token.mark)
    }

    /// Who asks, by token, cookie or certificate; the token's bearer is the operator, whatever certificate the browser shows beside it.
    ///
    /// # Errors
    /// [`Refusal::Unknown`], [`Refusal::TooOften`].
    pub(super) fn caller(&self, headers: &HeaderMap, peer: &Peer, now: Instant) -> Result<Caller, Refusal> {
        if let Some(presented) = headers.get(AUTHORIZATION) {
            let token = presented.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
            return self.try_token(token.unwrap_or_default(), peer, now).map(|()| Caller::Program);
        }
        let cookie = format!("{}=", self.cookie());
        let ids = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        let mut ids = ids.filter_map(|pair| pair.trim().strip_prefix(&cookie));
        let sessions = self.sessions();
        let session = ids.find_map(|id| sessions.csrf(id, now).map(|csrf| Caller::Session { id: id.to_owned(), csrf }));
        session.or_else(|| self.member(peer)).ok_or(Refusal::Unknown)
    }

    /// Whoever's certificate opened the connection.
    fn member(&self, peer: &Peer) -> Option<Caller> {
        let member = peer.member.as_ref()?;
        let csrf = hex(hmac::sign(&self.words, &member.certificate).as_ref());
        Some(Caller::Member { name: member.name.clone(), csrf })
    }

    fn try_token(&self, presented: &str, peer: &Peer, now: Instant) -> Result<(), Refusal> {
        // Counts are kept whole at every step.
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if !attempts.may_try(peer.source, now) {
            return Err(Refusal::TooOften);
        }
        if self.token.is(presented) {
            return Ok(());
        }
        attempts.failed(peer.source, now);
        Err(Refusal::Unknown)
    }

    /// Opens a session for whoever fills in the login form with the token; gives its cookie's value.
    ///
    /// # Errors
    /// As [`Self::caller`]; also where the form comes from elsewhere.
    pub(super) fn login(&self, parts: &Parts, fields: &Fields, peer: &Peer, now: Instant) -> Result<String, Refusal> {
        self.host(parts, peer)?;
        self.same_origin(&parts.headers)?;
        self.try_token(fields.get("token").unwrap_or_default(), peer, now)?;
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
    pub(super) fn admits(&self, parts: &Parts, peer: &Peer, caller: &Caller, changes: bool) -> Result<(), Refusal> {
        self.host(parts, peer)?;
        let headers = &parts.headers;
        match (caller, changes) {
            (Caller::Session { .. } | Caller::Member { .. }, true) => self.same_origin(headers),
            (Caller::Program, true) if headers.contains_key(ORIGIN) => self.same_origin(headers),
            (Caller::Program, _) => Ok(()),
            // Another site may lead here by a link, and embed or fetch nothing.
            (Caller::Session { .. } | Caller::Member { .. }, false) => match text(headers, &FETCH_SITE) {
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
            Caller::Session { csrf, .. } | Caller::Member { csrf, .. } => {
                match fields.get(CSRF_FIELD).is_some_and(|word| same(word, csrf)) {
                    true => Ok(()),
                    false => Err(Refusal::Form),
                }
            }
        }
    }

    fn host(&self, parts: &Parts, peer: &Peer) -> Result<(), Refusal> {
        match host_of(&parts.headers) {
            Some(host) if parts.uri.authority().is_none() && self.knows(&host, peer) => Ok(()),
            _ => Err(Refusal::Host),
        }
    }

    fn knows(&self, host: &str, peer: &Peer) -> bool {
        self.hosts.iter().chain(&*peer.hosts).any(|known| known == host)
    }

    /// Whether a browser is to be told that it may ask this host over TLS alone: where it was asked under a name of ours that is not
    /// every machine's own, on which other programs may well serve without.
    pub(super) fn is_strict(&self, headers: &HeaderMap, peer: &Peer) -> bool {
        let ours = |host: String| self.knows(&host, peer) && !LOOPBACK.contains(&&*host);
        self.over == Over::Tls && host_of(headers).is_some_and(ours)
    }

    /// Whether a page of this very site asks, by the browser's word. One that says nothing is refused.
    fn same_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        // Plain HTTP may come from a proxy on this machine that ends TLS.
        let schemes: &[&str] = if self.over == Over::Tls { &["https"] } else { &["http", "https"] };
        let (origin, host) = (text(headers, &ORIGIN), text(headers, &HOST));
        let is = |origin: &str, host: &str| schemes.iter().any(|s| format!("{s}://{host}").eq_ignore_ascii_case(origin));
        let ours = origin.zip(host).is_some_and(|(origin, host)| is(origin, host));
        let site = text(headers, &FETCH_SITE).is_none_or(|site| site == "same-origin");
        if ours && site { Ok(()) } else { Err(Refusal::Origin) }
    }
}

/// The one host that a request names.
fn host_of(headers: &HeaderMap) -> Option<String> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) => Some(name_of(host)),
        _ => None,
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

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Compares in a time that does not depend on where two words differ.
fn same(one: &str, other: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, other.as_bytes());
    hmac::verify(&key, one.as_bytes(), hmac::sign(&key, other.as_bytes()).as_ref()).is_ok()
}

#[cfg(test)]
#[path = "tests/guard.rs"]
mod tests;
