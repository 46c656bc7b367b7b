//! The accept loop: strangers are handled here, at little cost, and members come out of it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conclave_proto::error::Fault;
use conclave_proto::identity::PeerIdentity;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;

use super::complaints::Complaints;
use super::connection::Connection;
use super::connections::Connections;
use super::credentials::Credentials;
use super::pending::{Pending, Source};
use crate::meters::Meters;

/// A peer that has not finished its handshake by then is dropped.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Connections taken in at once, after a calm, and one more in each [`PACE`] from then on. A handshake costs some 0.3 ms of one core
/// before the peer has shown who it is; others wait in the operating system's queue meanwhile, at no cost here.
const BURST: u32 = 256;
const PACE: Duration = Duration::from_micros(2500);
/// Handshakes dropped at once where the machine has no more descriptors, and the pause after it.
const RELIEF: usize = 16;
const RELIEF_PAUSE: Duration = Duration::from_millis(20);
/// A dead connection is noticed even where HTTP/2 has not begun.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// Members' connections, as they come through their handshakes.
pub(super) type Incoming = ReceiverStream<Result<Connection, Infallible>>;

/// Starts to accept; ends when the stream is dropped.
pub(super) fn accept(
    listener: TcpListener,
    credentials: Arc<Credentials>,
    connections: Arc<Connections>,
    meters: Arc<Meters>,
) -> Incoming {
    let (members, incoming) = mpsc::channel(16);
    let door = Door { credentials, connections, meters, members, pending: Arc::default(), complaints: Arc::default() };
    tokio::spawn(door.keep(listener));
    ReceiverStream::new(incoming)
}

#[derive(Clone)]
struct Door {
    credentials: Arc<Credentials>,
    connections: Arc<Connections>,
    meters: Arc<Meters>,
    members: mpsc::Sender<Result<Connection, Infallible>>,
    pending: Arc<Mutex<Pending>>,
    complaints: Arc<Complaints>,
}

impl Door {
    async fn keep(self, listener: TcpListener) {
        let mut incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(TCP_KEEPALIVE));
        let mut pace = Pace::new(Instant::now());
        loop {
            let accepted = tokio::select! {
                accepted = incoming.next() => accepted,
                () = self.members.closed() => return,
            };
            match accepted {
                Some(Ok(stream)) => pace.wait(self.welcome(stream)).await,
                Some(Err(error)) => {
                    self.complaints.note("the machine takes no more connections", &error);
                    self.with(|pending| pending.relieve(RELIEF));
                    tokio::time::sleep(RELIEF_PAUSE).await;
                }
                None => return,
            }
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Pending) -> T) -> T {
        // A table that has lost count by one still bounds.
        act(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a handshake; gives what it costs the pace.
    fn welcome(&self, stream: TcpStream) -> u32 {
        self.meters.connection();
        let Ok(address) = stream.peer_addr() else { return 1 };
        let (id, crowded) = self.with(|pending| pending.enter(Source::of(address.ip())));
        if crowded {
            self.complaints.note("a handshake was dropped for a newer one", &address.ip());
        }
        let door = self.clone();
        let task = tokio::spawn(async move {
            let outcome = timeout(HANDSHAKE_WITHIN, door.handshake(stream)).await;
            door.with(|pending| pending.leave(id));
            match outcome {
                Ok(Ok(connection)) => drop(door.members.send(Ok(connection)).await),
                Ok(Err(fault)) => door.complaints.note(&fault, &address.ip()),
                Err(_) => door.complaints.note("no handshake in time", &address.ip()),
            }
        });
        self.with(|pending| pending.runs(id, task.abort_handle()));
        if crowded { 2 } else { 1 }
    }

    async fn handshake(&self, stream: TcpStream) -> Result<Connection, String> {
        let gate = self.credentials.gate();
        let stream = gate.acceptor().accept(stream).await.map_err(|e| e.to_string())?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
        let leaf = chain.first().ok_or("no certificate")?;
        let member = PeerIdentity::of_certificate(leaf).map_err(|fault: Fault| fault.message)?;
        Ok(Connection::new(stream, self.connections.enter(member, chain)))
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
