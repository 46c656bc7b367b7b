//! Network elements between a member and its coordinator: a proxy that opens tunnels by CONNECT, and a faulty wire.
//!
//! Both run on threads of their own until they are dropped.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::timeout;

/// Connection counts so far.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections opened.
    pub opened: AtomicU64,
    /// Connections refused.
    pub refused: AtomicU64,
    /// Connections opened and cut later.
    pub cut: AtomicU64,
}

impl Counts {
    /// Returns the numbers of opened, refused and cut connections.
    pub fn now(&self) -> (u64, u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::SeqCst);
        (of(&self.opened), of(&self.refused), of(&self.cut))
    }
}

fn one_more(count: &AtomicU64) {
    count.fetch_add(1, Ordering::SeqCst);
}

/// An HTTP proxy that opens tunnels.
pub struct ConnectProxy {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// Its connection counts.
    pub counts: Arc<Counts>,
    shared: Arc<Shared>,
    _runtime: Threads,
}

struct Shared {
    /// The only accepted `Proxy-Authorization`; `None` accepts any request.
    authorization: Option<String>,
    /// A tunnel without traffic for this long is cut.
    idle: Duration,
    /// Names that it resolves, with their ports; it resolves no others.
    names: Mutex<HashMap<String, SocketAddr>>,
    counts: Arc<Counts>,
}

impl ConnectProxy {
    /// Starts a proxy that requires this `Proxy-Authorization`, if any, and cuts tunnels that are idle for `idle`.
    pub fn start(authorization: Option<&str>, idle: Duration) -> Self {
        let runtime = Threads::new();
        let counts = Arc::new(Counts::default());
        let shared = Shared {
            authorization: authorization.map(str::to_owned),
            idle,
            names: Mutex::default(),
            counts: Arc::clone(&counts),
        };
        let shared = Arc::new(shared);
        let for_clients = Arc::clone(&shared);
        let address = runtime.listen(move |client| {
            let shared = Arc::clone(&for_clients);
            async move { shared.serve(client).await }
        });
        Self { address, counts, shared, _runtime: runtime }
    }

    /// Makes `name` (`HOST:PORT`) resolve to an address from now on.
    pub fn set_address(&self, name: &str, address: SocketAddr) {
        locked(&self.shared.names).insert(name.to_owned(), address);
    }
}

impl Shared {
    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let head = read_head(&mut client).await?;
        let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let shown = head.lines().find_map(|line| line.strip_prefix("Proxy-Authorization: "));
        let known = locked(&self.names).get(target).copied().or_else(|| target.parse().ok());
        let refusal = match known {
            _ if self.authorization.is_some() && self.authorization.as_deref() != shown => {
                "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"hospital\""
            }
            None => "502 Bad Gateway",
            Some(address) => match TcpStream::connect(address).await {
                Ok(upstream) => {
                    one_more(&self.counts.opened);
                    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                    return self.pass(client, upstream).await;
                }
                Err(_) => "504 Gateway Timeout",
            },
        };
        one_more(&self.counts.refused);
        client.write_all(format!("HTTP/1.1 {refusal}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await
    }

    async fn pass(&self, mut client: TcpStream, mut upstream: TcpStream) -> io::Result<()> {
        let (mut out, mut back) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        loop {
            let step = async {
                tokio::select! {
                    read = client.read(&mut out) => forward(&mut upstream, &out[..read?]).await,
                    read = upstream.read(&mut back) => forward(&mut client, &back[..read?]).await,
                }
            };
            let Ok(open) = timeout(self.idle, step).await else {
                one_more(&self.counts.cut);
                return Ok(());
            };
            if !open? {
                return Ok(());
            }
        }
    }
}

/// Returns false at the stream's end.
async fn forward(to: &mut TcpStream, bytes: &[u8]) -> io::Result<bool> {
    to.write_all(bytes).await?;
    Ok(!bytes.is_empty())
}

async fn read_head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
        if head.len() > 8192 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Probabilities with which a wire breaks.
#[derive(Debug, Clone, Copy)]
pub struct Breaks {
    /// Probability that a new connection is refused.
    pub refuse: f64,
    /// Probability, for every piece of data, that it is lost and its connection cut.
    pub cut: f64,
    /// Seed of the random breaks.
    pub seed: u64,
}

/// A faulty TCP wire to one address.
pub struct Wire {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// Its connection counts.
    pub counts: Arc<Counts>,
    generation: watch::Sender<u64>,
    _runtime: Threads,
}

struct WireState {
    breaks: Breaks,
    chance: Mutex<ChaCha8Rng>,
    counts: Arc<Counts>,
}

impl Wire {
    /// Creates a wire to `upstream`.
    pub fn to(upstream: SocketAddr, breaks: Breaks) -> Self {
        let runtime = Threads::new();
        let counts = Arc::new(Counts::default());
        let chance = Mutex::new(ChaCha8Rng::seed_from_u64(breaks.seed));
        let line = Arc::new(WireState { breaks, chance, counts: Arc::clone(&counts) });
        let (generation, holes) = watch::channel(0);
        let address = runtime.listen(move |client| {
            let (line, holes) = (Arc::clone(&line), holes.clone());
            async move { line.serve(client, upstream, holes).await }
        });
        Self { address, counts, generation, _runtime: runtime }
    }

    /// Creates a reliable wire to `upstream` that delivers everything `delay` after it was sent, in both directions.
    pub fn delayed(upstream: SocketAddr, delay: Duration) -> Self {
        let runtime = Threads::new();
        let counts = Arc::new(Counts::default());
        let opened = Arc::clone(&counts);
        let (generation, _) = watch::channel(0);
        let address = runtime.listen(move |client| {
            one_more(&opened.opened);
            async move {
                // The round trip of the TCP handshake.
                tokio::time::sleep(2 * delay).await;
                let upstream = TcpStream::connect(upstream).await?;
                client.set_nodelay(true)?;
                upstream.set_nodelay(true)?;
                let ((from, to), (back_from, back_to)) = (client.into_split(), upstream.into_split());
                tokio::try_join!(carry(from, back_to, delay), carry(back_from, to, delay)).map(drop)
            }
        });
        Self { address, counts, generation, _runtime: runtime }
    }

    /// Discards from now on everything sent over the current connections, without notifying either end.
    pub fn swallow(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl WireState {
    async fn serve(&self, mut client: TcpStream, upstream: SocketAddr, mut holes: watch::Receiver<u64>) -> io::Result<()> {
        if self.breaks(self.breaks.refuse) {
            one_more(&self.counts.refused);
            return Ok(());
        }
        let mut upstream = TcpStream::connect(upstream).await?;
        for side in [&client, &upstream] {
            side.set_nodelay(true)?;
        }
        one_more(&self.counts.opened);
        holes.mark_unchanged();
        let (mut out, mut back) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        loop {
            let (to, bytes) = tokio::select! {
                read = client.read(&mut out) => (&mut upstream, &out[..read?]),
                read = upstream.read(&mut back) => (&mut client, &back[..read?]),
                _ = holes.changed() => break,
            };
            if !bytes.is_empty() && self.breaks(self.breaks.cut) {
                one_more(&self.counts.cut);
                return Ok(());
            }
            if !forward(to, bytes).await? {
                return Ok(());
            }
        }
        // A black hole: it reads and discards until the ends give up.
        one_more(&self.counts.cut);
        tokio::join!(swallow(&mut client, &mut out), swallow(&mut upstream, &mut back));
        Ok(())
    }

    fn breaks(&self, probability: f64) -> bool {
        locked(&self.chance).random::<f64>() < probability
    }
}

/// Forwards data after `delay`, in order, however much arrives meanwhile.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) -> io::Result<()> {
    let (sender, mut pieces) = tokio::sync::mpsc::unbounded_channel::<(tokio::time::Instant, Vec<u8>)>();
    let write = async move {
        while let Some((due, piece)) = pieces.recv().await {
            tokio::time::sleep_until(due).await;
            to.write_all(&piece).await?;
        }
        to.shutdown().await
    };
    let read = async move {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = from.read(&mut buffer).await?;
            if read == 0 || sender.send((tokio::time::Instant::now() + delay, buffer[..read].to_vec())).is_err() {
                return Ok(());
            }
        }
    };
    tokio::try_join!(read, write).map(drop)
}

async fn swallow(side: &mut TcpStream, buffer: &mut [u8]) {
    while side.read(buffer).await.is_ok_and(|read| read > 0) {}
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A runtime that stops, with all its tasks, when it is dropped.
struct Threads(Option<Runtime>);

impl Threads {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self(Some(runtime.expect("a runtime")))
    }

    /// Serves every connection to a port chosen by the system.
    fn listen<S>(&self, serve: impl Fn(TcpStream) -> S + Send + 'static) -> SocketAddr
    where
        S: Future<Output = io::Result<()>> + Send + 'static,
    {
        let runtime = self.0.as_ref().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client));
            }
        });
        address
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
