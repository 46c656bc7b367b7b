//! The dashboard over TLS: the same certificate, the same checks of members' certificates, the same limits for strangers.

use std::net::IpAddr;
use std::sync::Arc;

use conclave_ops::source::SourceHost;
use conclave_ops::web::{Member, PageConnections, Peer};
use conclave_proto::identity::{PeerIdentity, Role};
use tokio::net::{TcpListener, TcpStream};

use super::accept::{ConnectionHandler, HandshakeSlot, accept_loop, handshake};
use super::credentials::Credentials;

/// Serves until it is dropped. An analyst's certificate opens the pages; other certificates do not, and none is required.
pub(crate) async fn serve_pages(listener: TcpListener, page_connections: PageConnections, credentials: Arc<Credentials>) {
    accept_loop(listener, PageHandler { page_connections, credentials }).await;
}

#[derive(Clone)]
struct PageHandler {
    page_connections: PageConnections,
    credentials: Arc<Credentials>,
}

impl ConnectionHandler for PageHandler {
    async fn handle(self, stream: TcpStream, from: IpAddr, slot: HandshakeSlot) -> Result<(), String> {
        let gate = self.credentials.gate();
        let stream = handshake(gate.pages(), stream).await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let peer = |member| Peer { source: SourceHost::at(from), hosts: Arc::clone(gate.hosts()), member };
        let Some((analyst, leaf)) = chain.first().and_then(|leaf| Some((analyst_of(leaf)?, leaf.to_vec()))) else {
            self.page_connections.serve(stream, peer(None), Some(Box::new(slot))).await;
            return Ok(());
        };
        drop(slot);
        let member = Member { name: analyst.name.clone(), certificate: leaf };
        let mut place = self.credentials.connections().enter(analyst, chain);
        tokio::select! {
            () = self.page_connections.serve(stream, peer(Some(member)), None) => {}
            // A sent value and a dropped sender both mean that the register wants the connection closed.
            _ = &mut place.cut => {}
        }
        Ok(())
    }

    async fn closed(&self) {
        std::future::pending().await
    }
}

/// Returns the analyst that this certificate identifies, as `Jobs` does.
fn analyst_of(leaf: &rustls_pki_types::CertificateDer<'_>) -> Option<PeerIdentity> {
    PeerIdentity::from_certificate(leaf).and_then(|peer| peer.require(Role::Analyst)).ok()
}
