//! The dashboard over TLS: the same certificate, the same rule for members' certificates, the same patience with strangers.

use std::net::IpAddr;
use std::sync::Arc;

use conclave_ops::source::SourceHost;
use conclave_ops::web::{Member, PageConnections, Peer};
use conclave_proto::identity::{PeerIdentity, Role};
use tokio::net::{TcpListener, TcpStream};

use super::accept::{Host, Waiting, handshake, keep};
use super::credentials::Credentials;

/// Serves until it is dropped. An analyst's certificate opens the pages; nobody else's does, and nobody needs one.
pub(crate) async fn serve_pages(listener: TcpListener, page_connections: PageConnections, credentials: Arc<Credentials>) {
    keep(listener, PageHost { page_connections, credentials }).await;
}

#[derive(Clone)]
struct PageHost {
    page_connections: PageConnections,
    credentials: Arc<Credentials>,
}

impl Host for PageHost {
    async fn receive(self, stream: TcpStream, from: IpAddr, waiting: Waiting) -> Result<(), String> {
        let gate = self.credentials.gate();
        let stream = handshake(gate.pages(), stream).await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let peer = |member| Peer { source: SourceHost::at(from), hosts: Arc::clone(gate.hosts()), member };
        let Some((analyst, leaf)) = chain.first().and_then(|leaf| Some((analyst_of(leaf)?, leaf.to_vec()))) else {
            self.page_connections.serve(stream, peer(None), Some(Box::new(waiting))).await;
            return Ok(());
        };
        drop(waiting);
        let member = Member { name: analyst.name.clone(), certificate: leaf };
        let mut place = self.credentials.connections().enter(analyst, chain);
        tokio::select! {
            () = self.page_connections.serve(stream, peer(Some(member)), None) => {}
            // Whether sent or dropped: the register wants it gone.
            _ = &mut place.cut => {}
        }
        Ok(())
    }

    async fn closed(&self) {
        std::future::pending().await
    }
}

/// The analyst whose certificate this is, as `Jobs` knows analysts.
fn analyst_of(leaf: &rustls_pki_types::CertificateDer<'_>) -> Option<PeerIdentity> {
    PeerIdentity::from_certificate(leaf).and_then(|peer| peer.require(Role::Analyst)).ok()
}
