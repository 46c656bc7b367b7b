//! Access control: token, session or certificate; host, origin and CSRF token.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use ring::hmac;
use ring::rand::SystemRandom;

use super::attempts::Attempts;
use super::form::{CSRF_FIELD, Fields};
use super::secret::{equal, hex};
use super::sessions::Sessions;
use super::token::Token;
use super::transport::Transport;
use super::visitor::{Peer, Principal, Visitor};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Sent with requests ahead of the user's navigation.
const PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The access control of one daemon's pages.
#[derive(Debug)]
pub(super) struct Guard {
    token: Token,
    /// Host names of the pages, without ports, in lower case.
    hosts: Vec<String>,
    transport: Transport,
    /// Derives the CSRF tokens of visitors with a certificate but without a session.
    csrf_key: hmac::Key,
    sessions: Mutex<Sessions>,
    attempts: Mutex<Attempts>,
}

/// Names of the loopback.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The reason for refusing a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The caller presented neither token nor certificate.
    Unknown,
    /// Too many wrong tokens were tried.
    TooOften,
    /// The request names a host that is not ours. A foreign name may have been made to resolve to this address.
    Host,
    /// The request comes from another site's page.
    Origin,
    /// The form lacks the CSRF token of this session.
    Form,
}

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Caller {
    /// A browser with a session.
    Session { id: String, csrf: String },
    /// A browser with a certificate, which it presents with every request, whichever site's page makes it.
    Member { name: String, csrf: String },
    /// A program that sends the token with every request. A browser never does so by itself.
    Program,
}

impl Caller {
    pub(super) fn visitor(&self) -> Visitor {
        match self {
            Self::Session { csrf, .. } => Visitor { csrf: csrf.clone(), principal: Principal::Operator },
            Self::Member { name, csrf } => Visitor { csrf: csrf.clone(), principal: Principal::Member(name.clone()) },
            Self::Program => Visitor { csrf: String::new(), principal: Principal::Operator },
        }
    }
}

impl Guard {
    /// # Errors
    /// A failure of the system's random number generator.
    pub(super) fn new(token: Token, names: &[String], transport: Transport) -> Result<Self, String> {
        let names = names.iter().map(|name| name.to_ascii_lowercase());
        let hosts = LOOPBACK.map(str::to_owned).into_iter().chain(names).collect();
        let csrf_key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the system's random number generator failed".to_owned())?;
        Ok(Self { token, hosts, transport, csrf_key, sessions: Mutex::default(), attempts: Mutex::default() })
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Every change is atomic, so the sessions are usable even after a panic of a holder.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn cookie(&self) -> String {
        // A browser accepts this prefix only from this exact host over TLS, so no neighbouring host can set such a cookie.
        let prefix = if self.transport == Transport::Tls { "__Host-" } else { "" };
        format!("{prefix}conclave-{}", self.token.mark)
    }

    /// Identifies the caller by token, cookie or certificate. The bearer of the token is the operator, whatever certificate the
    /// browser also presents.
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

    /// Returns the member whose certificate opened the connection.
    fn member(&self, peer: &Peer) -> Option<Caller> {
        let member = peer.member.as_ref()?;
        let csrf = hex(hmac::sign(&self.csrf_key, &member.certificate).as_ref());
        Some(Caller::Member { name: member.name.clone(), csrf })
    }

    fn try_token(&self, presented: &str, peer: &Peer, now: Instant) -> Result<(), Refusal> {
        self.attempt(peer, now, || self.token.matches(presented))
    }

    /// Counts the failures of a source, and refuses further attempts after too many.
    fn attempt(&self, peer: &Peer, now: Instant, is_right: impl FnOnce() -> bool) -> Result<(), Refusal> {
        // The counts are consistent at every step.
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if !attempts.can_try(peer.source, now) {
            return Err(Refusal::TooOften);
        }
        if is_right() {
            return Ok(());
        }
        attempts.record_failure(peer.source, now);
        Err(Refusal::Unknown)
    }

    /// Opens a session for a login form with the right token, and returns its cookie's value.
    ///
    /// # Errors
    /// The errors of [`Self::caller`]; a form that comes from another site.
    pub(super) fn login(&self, parts: &Parts, fields: &Fields, peer: &Peer, now: Instant) -> Result<String, Refusal> {
        self.check_host(parts, peer)?;
        self.check_origin(&parts.headers)?;
        self.try_token(fields.get("token").unwrap_or_default(), peer, now)?;
        self.sessions().begin(now).map_err(|_| Refusal::TooOften)
    }

    /// Opens a session for a link that was not used before, and returns its cookie's value.
    ///
    /// # Errors
    /// Those of [`Self::login`]; a link that another site's page follows, or that the browser loads before its user follows it.
    pub(super) fn open_once(&self, parts: &Parts, link: &str, peer: &Peer, now: Instant) -> Result<String, Refusal> {
        self.check_host(parts, peer)?;
        let foreign = text(&parts.headers, &FETCH_SITE).is_some_and(|site| !matches!(site, "none" | "same-origin"));
        if foreign || parts.headers.contains_key(PURPOSE) {
            return Err(Refusal::Origin);
        }
        self.attempt(peer, now, || self.token.accepts(link))?;
        self.sessions().begin(now).map_err(|_| Refusal::TooOften)
    }

    pub(super) fn logout(&self, caller: &Caller) {
        if let Caller::Session { id, .. } = caller {
            self.sessions().end(id);
        }
    }

    /// Checks that a known caller may make this request, before its body is read.
    ///
    /// # Errors
    /// [`Refusal::Host`], [`Refusal::Origin`].
    pub(super) fn check_request(&self, parts: &Parts, peer: &Peer, caller: &Caller, changes: bool) -> Result<(), Refusal> {
        self.check_host(parts, peer)?;
        let headers = &parts.headers;
        match (caller, changes) {
            (Caller::Session { .. } | Caller::Member { .. }, true) => self.check_origin(headers),
            (Caller::Program, true) if headers.contains_key(ORIGIN) => self.check_origin(headers),
            (Caller::Program, _) => Ok(()),
            // Another site may link here, but neither embed nor fetch.
            (Caller::Session { .. } | Caller::Member { .. }, false) => match text(headers, &FETCH_SITE) {
                Some("cross-site" | "same-site") if text(headers, &FETCH_MODE) != Some("navigate") => Err(Refusal::Origin),
                _ => Ok(()),
            },
        }
    }

    /// Checks the CSRF token of a form.
    ///
    /// # Errors
    /// [`Refusal::Form`].
    pub(super) fn check_form(&self, caller: &Caller, fields: &Fields) -> Result<(), Refusal> {
        match caller {
            Caller::Program => Ok(()),
            Caller::Session { csrf, .. } | Caller::Member { csrf, .. } => {
                match fields.get(CSRF_FIELD).is_some_and(|presented| equal(presented, csrf)) {
                    true => Ok(()),
                    false => Err(Refusal::Form),
                }
            }
        }
    }

    fn check_host(&self, parts: &Parts, peer: &Peer) -> Result<(), Refusal> {
        match host_of(&parts.headers) {
            Some(host) if parts.uri.authority().is_none() && self.has_host(&host, peer) => Ok(()),
            _ => Err(Refusal::Host),
        }
    }

    fn has_host(&self, host: &str, peer: &Peer) -> bool {
        self.hosts.iter().chain(&*peer.hosts).any(|known| known == host)
    }

    /// Returns true if the answer should demand TLS for this host in future. That holds for our names except those of the
    /// loopback, under which other programs on the visitor's machine may serve without TLS.
    pub(super) fn is_strict(&self, headers: &HeaderMap, peer: &Peer) -> bool {
        let ours = |host: String| self.has_host(&host, peer) && !LOOPBACK.contains(&&*host);
        self.transport == Transport::Tls && host_of(headers).is_some_and(ours)
    }

    /// Checks that the request comes from a page of this site, according to the browser. A missing origin is refused.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        // Plain HTTP may come from a proxy on this machine that terminates TLS.
        let schemes: &[&str] = if self.transport == Transport::Tls { &["https"] } else { &["http", "https"] };
        let (origin, host) = (text(headers, &ORIGIN), text(headers, &HOST));
        let is = |origin: &str, host: &str| schemes.iter().any(|s| format!("{s}://{host}").eq_ignore_ascii_case(origin));
        let ours = origin.zip(host).is_some_and(|(origin, host)| is(origin, host));
        let site = text(headers, &FETCH_SITE).is_none_or(|site| site == "same-origin");
        if ours && site { Ok(()) } else { Err(Refusal::Origin) }
    }
}

/// Returns the host of a request, which must name exactly one.
fn host_of(headers: &HeaderMap) -> Option<String> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) => Some(name_of(host)),
        _ => None,
    }
}

/// Returns a host without its port, in lower case. Ports are ignored because the pages may be reached through a tunnel.
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

#[cfg(test)]
#[path = "tests/guard.rs"]
mod tests;
