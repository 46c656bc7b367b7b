//! A port at which pages are served.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;

use super::connection::{CONNECTIONS, Healthy, PageConnections};
use super::guard::Guard;
use super::over::{Over, loopback_only};
use super::token::Token;
use super::visitor::Peer;
use crate::listen::attend;
use crate::source::Source;

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
        let (listener, connections) = self.into_parts(pages, healthy);
        // Whoever is on this machine has addresses to choose from, so all of them are one.
        let source = Source::of(IpAddr::V4(Ipv4Addr::LOCALHOST));
        attend(&listener, CONNECTIONS, |stream| {
            let (connections, peer) = (connections.clone(), Peer { source, hosts: Arc::default(), member: None });
            async move { connections.hold(stream, peer, None).await }
        })
        .await;
    }

    /// The port, and what answers over the connections that come in there.
    pub fn into_parts(self, pages: Router, healthy: Healthy) -> (TcpListener, PageConnections) {
        (self.listener, PageConnections::new(self.guard, self.over, pages, healthy))
    }
}
