//! A port that serves pages.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;

use super::connection::{CONNECTIONS, HealthCheck, PageConnections};
use super::guard::Guard;
use super::token::Token;
use super::transport::{Transport, check_loopback};
use super::visitor::Peer;
use crate::listen::serve_connections;
use crate::source::SourceHost;

/// A listening port that serves no pages yet.
pub struct Site {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    transport: Transport,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Site {
    /// Binds the address of the configuration's `key`, and creates the token file if it is missing. `names` are host names of the
    /// pages in addition to those of the loopback.
    ///
    /// # Errors
    /// A message that names the key or the file.
    pub async fn bind(
        key: &str,
        address: SocketAddr,
        token: &Path,
        names: &[String],
        transport: Transport,
    ) -> Result<Self, String> {
        let scheme = match transport {
            Transport::Plain => check_loopback(key, address).map(|()| "http")?,
            Transport::Tls => "https",
        };
        let guard = Guard::new(Token::load_or_create(token)?, names, transport)?;
        let unusable = |e: std::io::Error| format!("`{key}` = \"{address}\": can't listen there ({e})");
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        tracing::info!("{key} at {scheme}://{address}/; its token is in {}", token.display());
        Ok(Self { listener, address, guard, transport })
    }

    /// Returns the address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the transport of the pages.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Serves over plain HTTP until it is dropped.
    pub async fn serve(self, pages: Router, health: HealthCheck) {
        let (listener, connections) = self.into_parts(pages, health);
        // A user of this machine can choose among many addresses, so all of them count as one source.
        let source = SourceHost::at(IpAddr::V4(Ipv4Addr::LOCALHOST));
        serve_connections(&listener, CONNECTIONS, |stream| {
            let (connections, peer) = (connections.clone(), Peer { source, hosts: Arc::default(), member: None });
            async move { connections.serve(stream, peer, None).await }
        })
        .await;
    }

    /// Splits the site into its port and the server of the connections accepted there.
    pub fn into_parts(self, pages: Router, health: HealthCheck) -> (TcpListener, PageConnections) {
        (self.listener, PageConnections::new(self.guard, self.transport, pages, health))
    }
}
