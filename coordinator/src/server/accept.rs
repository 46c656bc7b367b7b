//! The accept loop: strangers are handled here, at little cost, and members come out of it.

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

use super::complaints::Complaints;
use super::connection::Connection;
use super::credentials::Credentials;
use super::pending::Pending;
use crate::counters::Counters;

/// A peer that has not finished its handshake by then is dropped.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Connections taken in at once, after a calm, and one more in each [`PACE`] from then on. A handshake costs some 0.3 ms of one core
/// before the peer has shown who it is; others wait in the operating system's queue meanwhile, at no cost here.
const BURST: u32 = 256;
const PACE: Duration = Duration::from_micros(2500);
/// Strangers dropped at once where the machine has no more descriptors, and the pause after it.
const RELIEF: usize = 16;
const RELIEF_PAUSE: Duration = Duration::from_millis(20);
/// A dead connection is noticed even where HTTP has not begun.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// What is done with the connections that come in at a port.
pub(super) trait Host: Clone + Send + Sync + 'static {
    /// Takes one through its handshake, and further. It may be dropped for a newer one for as long as `waiting` lives.
    fn receive(self, stream: TcpStream, from: IpAddr, waiting: Waiting) -> impl Future<Output = Result<(), String>> + Send;

    /// Resolves when nobody is to be received any more.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

/// A stranger's place among those who make room for each other; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    pending: Arc<Mutex<Pending>>,
    id: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        with(&self.pending, |pending| pending.leave(self.id));
    }
}

fn with<T>(pending: &Mutex<Pending>, act: impl FnOnce(&mut Pending) -> T) -> T {
    // A table that has lost count by one still bounds.
    act(&mut pending.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Takes a connection through its handshake.
///
/// # Errors
/// In a few words, why there was none.
pub(super) async fn handshake(acceptor: &TlsAcceptor, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let shaken = timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await.map_err(|_| "no handshake in time")?;
    shaken.map_err(|e| e.to_string())
}

/// Members' connections, as they come through their handshakes.
pub(super) type Incoming = ReceiverStream<Result<Connection, Infallible>>;

/// Starts to accept members; ends when the stream is dropped.
pub(super) fn accept(listener: TcpListener, credentials: Arc<Credentials>, counters: Arc<Counters>) -> Incoming {
    let (members, incoming) = mpsc::channel(16);
    tokio::spawn(keep(listener, Members { credentials, counters, members }));
    ReceiverStream::new(incoming)
}

#[derive(Clone)]
struct Members {
    credentials: Arc<Credentials>,
    counters: Arc<Counters>,
    members: mpsc::Sender<Result<Connection, Infallible>>,
}

impl Host for Members {
    fn receive(self, stream: TcpStream, _: IpAddr, waiting: Waiting) -> impl Future<Output = Result<(), String>> + Send {
        self.counters.connection();
        self.take_in(stream, waiting)
    }

    async fn closed(&self) {
        self.members.closed().await;
    }
}

impl Members {
    async fn take_in(self, stream: TcpStream, waiting: Waiting) -> Result<(), String> {
        let stream = handshake(self.credentials.gate().acceptor(), stream).await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let leaf = chain.first().ok_or("no certificate")?;
        let member = PeerIdentity::from_certificate(leaf).map_err(|fault: Fault| fault.message)?;
        let connection = Connection::new(stream, self.credentials.connections().enter(member, chain));
        drop(waiting);
        // An error means that the server has stopped.
        let _ = self.members.send(Ok(connection)).await;
        Ok(())
    }
}

/// Receives whoever comes in, until the host has closed or this is dropped, and all that are being received with it.
pub(super) async fn keep(listener: TcpListener, host: impl Host) {
    let mut incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(TCP_KEEPALIVE));
    let mut door = Door { host, pending: Arc::default(), complaints: Arc::default(), received: JoinSet::new() };
    let mut pace = Pace::new(Instant::now());
    loop {
        let accepted = tokio::select! {
            accepted = incoming.next() => accepted,
            () = door.host.closed() => return,
        };
        match accepted {
            Some(Ok(stream)) => pace.wait(door.welcome(stream)).await,
            Some(Err(error)) => {
                door.complaints.note("the machine takes no more connections", &error);
                with(&door.pending, |pending| pending.relieve(RELIEF));
                tokio::time::sleep(RELIEF_PAUSE).await;
            }
            None => return,
        }
    }
}

struct Door<H> {
    host: H,
    pending: Arc<Mutex<Pending>>,
    complaints: Arc<Complaints>,
    received: JoinSet<()>,
}

impl<H: Host> Door<H> {
    /// Begins to receive somebody; gives what it costs the pace.
    fn welcome(&mut self, stream: TcpStream) -> u32 {
        while self.received.try_join_next().is_some() {}
        let Ok(address) = stream.peer_addr() else { return 1 };
        let from = address.ip();
        let (id, crowded) = with(&self.pending, |pending| pending.enter(SourceHost::at(from)));
        if crowded {
            self.complaints.note("a stranger's connection was dropped for a newer one", &from);
        }
        let waiting = Waiting { pending: Arc::clone(&self.pending), id };
        let (received, complaints) = (self.host.clone().receive(stream, from, waiting), Arc::clone(&self.complaints));
        let task = self.received.spawn(async move {
            if let Err(why) = received.await {
                complaints.note(&why, &from);
            }
        });
        with(&self.pending, |pending| pending.runs(id, task));
        if crowded { 2 } else { 1 }
    }
}

/// A bucket of [`BURST`] connections that fills by one in each [`PACE`].
struct Pace {
    /// When the bucket is full again.
    full_at: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { full_at: now }
    }

    /// Takes so many out; gives the moment from which on the next one may be taken.
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
        // A calm fills the bucket, and no more than fills it.
        let later = now + Duration::from_secs(3600);
        assert!((0..BURST).all(|_| pace.take(1, later) <= later));
        assert!(pace.take(1, later) > later);
    }
}
