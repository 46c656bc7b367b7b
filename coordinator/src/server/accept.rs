//! The accept loop: it handles strangers at little cost and passes members on.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conclave_ops::source::SourceHost;
use conclave_proto::error::Fault;
use conclave_proto::identity::PeerIdentity;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;

use super::connection::Connection;
use super::credentials::Credentials;
use super::failure_log::FailureLog;
use super::pending::Pending;
use crate::counters::Counters;

/// Time limit of a handshake; a slower peer is dropped.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Connections accepted in a burst after a quiet period; from then on one in each [`PACE`]. A handshake costs some 0.3 ms of one
/// core before the peer has shown who it is. Others wait in the operating system's queue meanwhile, at no cost here.
const BURST: u32 = 256;
const PACE: Duration = Duration::from_micros(2500);
/// Strangers dropped when the machine has no file descriptors left, and the pause after that.
const RELIEF: usize = 16;
const RELIEF_PAUSE: Duration = Duration::from_millis(20);
/// Detects a dead connection even before HTTP begins.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// Handler of the connections that arrive at a port.
pub(super) trait ConnectionHandler: Clone + Send + Sync + 'static {
    /// Runs the handshake and serves the connection. It may be dropped for a newer one while `slot` lives.
    fn handle(self, stream: TcpStream, from: IpAddr, slot: HandshakeSlot) -> impl Future<Output = Result<(), String>> + Send;

    /// Resolves when no more connections are to be accepted.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

/// A stranger's slot among the pending handshakes; freed when it is dropped.
#[derive(Debug)]
pub(super) struct HandshakeSlot {
    pending: Arc<Mutex<Pending>>,
    id: u64,
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        with(&self.pending, |pending| pending.leave(self.id));
    }
}

fn with<T>(pending: &Mutex<Pending>, act: impl FnOnce(&mut Pending) -> T) -> T {
    // A table whose count is off by one still limits.
    act(&mut pending.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs the TLS handshake of a connection.
///
/// # Errors
/// A short reason why it failed.
pub(super) async fn handshake(acceptor: &TlsAcceptor, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let shaken = timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await.map_err(|_| "no handshake in time")?;
    shaken.map_err(|e| e.to_string())
}

/// Members' connections after their handshakes.
pub(super) type Incoming = ReceiverStream<Result<Connection, Infallible>>;

/// Starts to accept members; ends when the stream is dropped.
pub(super) fn accept(listener: TcpListener, credentials: Arc<Credentials>, counters: Arc<Counters>) -> Incoming {
    let (members, incoming) = mpsc::channel(16);
    tokio::spawn(accept_loop(listener, Members { credentials, counters, members }));
    ReceiverStream::new(incoming)
}

#[derive(Clone)]
struct Members {
    credentials: Arc<Credentials>,
    counters: Arc<Counters>,
    members: mpsc::Sender<Result<Connection, Infallible>>,
}

impl ConnectionHandler for Members {
    fn handle(self, stream: TcpStream, _: IpAddr, slot: HandshakeSlot) -> impl Future<Output = Result<(), String>> + Send {
        self.counters.record_connection();
        self.authenticate(stream, slot)
    }

    async fn closed(&self) {
        self.members.closed().await;
    }
}

impl Members {
    async fn authenticate(self, stream: TcpStream, slot: HandshakeSlot) -> Result<(), String> {
        let stream = handshake(self.credentials.gate().acceptor(), stream).await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let leaf = chain.first().ok_or("no certificate")?;
        let member = PeerIdentity::from_certificate(leaf).map_err(|fault: Fault| fault.message)?;
        let connection = Connection::new(stream, self.credentials.connections().enter(member, chain));
        drop(slot);
        // An error means that the server has stopped.
        let _ = self.members.send(Ok(connection)).await;
        Ok(())
    }
}

/// Accepts connections until the handler has closed or this future is dropped, which also drops all pending handshakes.
pub(super) async fn accept_loop(listener: TcpListener, handler: impl ConnectionHandler) {
    let mut incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(TCP_KEEPALIVE));
    let mut acceptor = Acceptor { handler, pending: Arc::default(), failures: Arc::default(), received: JoinSet::new() };
    let mut pace = Pace::new(Instant::now());
    loop {
        let accepted = tokio::select! {
            accepted = incoming.next() => accepted,
            () = acceptor.handler.closed() => return,
        };
        match accepted {
            Some(Ok(stream)) => pace.wait(acceptor.start(stream)).await,
            Some(Err(error)) => {
                acceptor.failures.note("the machine accepts no more connections", &error);
                with(&acceptor.pending, |pending| pending.drop_oldest(RELIEF));
                tokio::time::sleep(RELIEF_PAUSE).await;
            }
            None => return,
        }
    }
}

struct Acceptor<H> {
    handler: H,
    pending: Arc<Mutex<Pending>>,
    failures: Arc<FailureLog>,
    received: JoinSet<()>,
}

impl<H: ConnectionHandler> Acceptor<H> {
    /// Starts to handle a connection; returns its cost to the pace.
    fn start(&mut self, stream: TcpStream) -> u32 {
        while self.received.try_join_next().is_some() {}
        let Ok(address) = stream.peer_addr() else { return 1 };
        let from = address.ip();
        let (id, crowded) = with(&self.pending, |pending| pending.enter(SourceHost::at(from)));
        if crowded {
            self.failures.note("a stranger's connection was dropped for a newer one", &from);
        }
        let slot = HandshakeSlot { pending: Arc::clone(&self.pending), id };
        let (received, failures) = (self.handler.clone().handle(stream, from, slot), Arc::clone(&self.failures));
        let task = self.received.spawn(async move {
            if let Err(why) = received.await {
                failures.note(&why, &from);
            }
        });
        with(&self.pending, |pending| pending.set_task(id, task));
        if crowded { 2 } else { 1 }
    }
}

/// A bucket of [`BURST`] connections, refilled by one in each [`PACE`].
struct Pace {
    /// When the bucket is full again.
    full_at: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { full_at: now }
    }

    /// Takes `many` out; returns the time from which the next connection may be taken.
    fn take(&mut self, many: u32, now: Instant) -> Instant {
        self.full_at = self.full_at.max(now) + PACE * many;
        self.full_at.checked_sub(PACE * BURST).unwrap_or(now)
    }

    async fn wait(&mut self, many: u32) {
        let now = Instant::now();
        let next = self.take(many, now);
        if next > now {
            sleep_until(next).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_connections_are_paced() {
        let now = Instant::now() + Duration::from_secs(60);
        let mut pace = Pace::new(now);
        assert!((0..BURST).all(|_| pace.take(1, now) <= now));
        assert_eq!(pace.take(1, now), now + PACE);
        assert_eq!(pace.take(2, now), now + 3 * PACE);
        // A quiet period fills the bucket, and no further.
        let later = now + Duration::from_secs(3600);
        assert!((0..BURST).all(|_| pace.take(1, later) <= later));
        assert!(pace.take(1, later) > later);
    }
}
