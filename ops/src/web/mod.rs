//! Pages for people, behind a token or a certificate: one guard for the coordinator's dashboard and the party's own page.
//!
//! What a browser can be made to do by a page elsewhere is refused by several means, each enough alone: the session's cookie is
//! `SameSite=Strict`, the `Host` must be a name of ours (names elsewhere may point here), whatever changes something needs our
//! own `Origin` and a word that only this session's, or this certificate's, pages hold, and no page can be framed. Without token, session or
//! certificate every path but `/healthz` answers 401 with the login form.
//!
//! Over plain HTTP pages are served on the loopback interface alone. Whoever takes connections in over TLS hands them to
//! [`Conversations`], with what was shown in the handshake.

mod answer;
mod attempts;
mod converse;
pub mod events;
mod guard;
mod sessions;
mod token;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;

use crate::listen::attend;
use crate::source::Source;
pub use answer::{file, html, missing, picture, refused, see_other};
use converse::CONNECTIONS;
pub use converse::{Conversations, Place};
pub use guard::CSRF_FIELD;
use guard::Guard;
use token::Token;

/// What pages are served over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// HTTP as it is, on the loopback interface.
    Plain,
    /// TLS, ended by whoever takes the connections in.
    Tls,
}

/// Where a connection comes from, and what it showed before its first request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Against whom wrong tokens are counted.
    pub source: Source,
    /// Hosts that the pages may be asked for under, beside the configured: those of the certificate that the server showed.
    pub hosts: Arc<[String]>,
    /// Whoever may look without a token.
    pub member: Option<Member>,
}

/// Whoever's certificate opens the pages.
#[derive(Debug, Clone)]
pub struct Member {
    /// The name in it.
    pub name: String,
    /// The certificate itself, DER: the words of this visitor's forms belong to it.
    pub certificate: Vec<u8>,
}

/// Who looks at a page: every request that reaches the pages carries it as an extension.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// What the field [`CSRF_FIELD`] of every form must hold; empty for a program, which needs none.
    pub csrf: String,
    /// Whose eyes they are.
    pub who: Who,
}

impl Visitor {
    /// Whether there is a session to log out of.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.who == Who::Operator && !self.csrf.is_empty()
    }
}

/// Whose eyes look at a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Whoever has the token: the daemon's operator.
    Operator,
    /// Whoever's certificate has this name.
    Member(String),
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
    over: Over,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The address that a configuration names under `key`.
///
/// # Errors
/// A sentence that names the key, with the remedy.
pub fn address(key: &str, text: &str) -> Result<SocketAddr, String> {
    let address = text.parse();
    address.map_err(|_| format!("`{key}` = {text:?} is not an address with a port, such as \"127.0.0.1:8080\""))
}

/// The same, on the loopback interface.
///
/// # Errors
/// A sentence that names the key, with the remedy.
pub fn loopback_address(key: &str, text: &str) -> Result<SocketAddr, String> {
    let address = address(key, text)?;
    loopback_only(key, address).map(|()| address)
}

/// Whether pages may be served at an address over plain HTTP: nobody on the way may see them.
///
/// # Errors
/// A sentence with the remedy, where others can reach the address.
pub fn loopback_only(key: &str, address: SocketAddr) -> Result<(), String> {
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
    pub async fn bind(key: &str, address: SocketAddr, token: &Path, names: &[String], over: Over) -> Result<Self, String> {
        let scheme = match over {
            Over::Plain => loopback_only(key, address).map(|()| "http")?,
            Over::Tls => "https",
        };
        let guard = Guard::new(Token::at(token)?, names, over)?;
        let unusable = |e: std::io::Error| format!("`{key}` = \"{address}\": can't listen there ({e})");
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        tracing::info!("{key} at {scheme}://{address}/; the token that opens it is in {}", token.display());
        Ok(Self { listener, address, guard, over })
    }

    /// The address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the pages are to be served over.
    pub fn over(&self) -> Over {
        self.over
    }

    /// Serves over plain HTTP until it is dropped.
    pub async fn serve(self, pages: Router, healthy: Healthy) {
        let (listener, conversations) = self.into_parts(pages, healthy);
        // Whoever is on this machine has addresses to choose from, so all of them are one.
        let source = Source::of(IpAddr::V4(Ipv4Addr::LOCALHOST));
        attend(&listener, CONNECTIONS, |stream| {
            let (conversations, peer) = (conversations.clone(), Peer { source, hosts: Arc::default(), member: None });
            async move { conversations.hold(stream, peer, None).await }
        })
        .await;
    }

    /// The port, and what answers over the connections that come in there.
    pub fn into_parts(self, pages: Router, healthy: Healthy) -> (TcpListener, Conversations) {
        (self.listener, Conversations::new(self.guard, self.over, pages, healthy))
    }
}

#[cfg(test)]
mod tests;
