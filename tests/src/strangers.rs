//! Attacks on a coordinator, by strangers without a certificate and by a malicious member, and measures of their cost: the times
//! of rounds, and memory.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conclave_proto::PROTOCOL;
use conclave_proto::tls::{IdentityDir, connect};
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::party_frame::Body;
use conclave_proto::v1::{Hello, JobRefused, PartyFrame, SubmitRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;

/// Length of a message longer than any legitimate one.
const LONG: usize = 100 << 20;
/// Pause between two long messages of one attacker: on a small machine, the cost of generating them must not distort the
/// measurements.
const PAUSE: Duration = Duration::from_millis(250);

/// An ongoing attack; it ends when this is dropped.
pub struct Attack {
    runtime: Runtime,
    address: SocketAddr,
    counts: Arc<Counts>,
}

/// Counts of the attackers' actions so far.
#[derive(Default)]
pub struct Counts {
    /// Half-open connections made, renewed ones included.
    pub half_open: AtomicU64,
    /// Long messages started.
    pub long: AtomicU64,
}

impl Attack {
    /// Prepares an attack on the coordinator at this URL, without any attacker yet.
    pub fn on(url: &str) -> Self {
        let address = url.trim_start_matches("https://").parse().expect("an address");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        Self { runtime, address, counts: Arc::default() }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Starts `many` connections from eight addresses that each send half a ClientHello, then nothing, and reconnect when cut.
    pub fn half_open(&self, many: u32) {
        for stranger in 0..many {
            let (address, counts) = (self.address, Arc::clone(&self.counts));
            let from = Ipv4Addr::new(127, 0, 0, 2 + (stranger % 8) as u8);
            self.runtime.spawn(async move {
                loop {
                    if let Ok(mut stream) = dial(from, address).await {
                        counts.half_open.fetch_add(1, Ordering::Relaxed);
                        let _ = stream.write_all(&half_a_hello()).await;
                        while matches!(stream.read(&mut [0; 256]).await, Ok(1..)) {}
                    }
                    // It retries as fast as it can, with a short pause that lets the other tasks run.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    }

    /// Starts `many` strangers that send 100 MB each, either as an endless series of TLS records or as plain HTTP/2.
    pub fn long_strangers(&self, many: u32) {
        for stranger in 0..many {
            let (address, counts) = (self.address, Arc::clone(&self.counts));
            self.runtime.spawn(async move {
                let opening: &[u8] = if stranger % 2 == 0 {
                    &[22, 3, 1, 0x40, 0, 1, 0x7f, 0xff, 0xff]
                } else {
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                };
                let chunk = vec![0; 64 << 10];
                loop {
                    if let Ok(mut stream) = dial(Ipv4Addr::LOCALHOST, address).await {
                        counts.long.fetch_add(1, Ordering::Relaxed);
                        let _ = stream.write_all(opening).await;
                        for _ in 0..LONG / chunk.len() {
                            if stream.write_all(&chunk).await.is_err() {
                                break;
                            }
                        }
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
    }

    /// Starts a party in good standing that sends 100 MB wherever the coordinator reads from it, over and over.
    pub fn long_member(&self, identity: &Path) {
        let identity = IdentityDir::load(identity).expect("a member's identity");
        let (url, counts) = (format!("https://{}", self.address), Arc::clone(&self.counts));
        let words = "x".repeat(LONG);
        self.runtime.spawn(async move {
            loop {
                if let Ok(channel) = connect(&url, &identity).await {
                    counts.long.fetch_add(2, Ordering::Relaxed);
                    let hello = Hello { protocol: PROTOCOL, software: "hostile".to_owned(), oldest: 0 };
                    let refused = JobRefused { job: "j".to_owned(), code: String::new(), reason: words.clone() };
                    let frames = [Body::Hello(hello), Body::JobRefused(refused)].map(|body| PartyFrame { body: Some(body) });
                    let mut link = LinkClient::new(channel.clone());
                    if let Ok(stream) = link.attach(tokio_stream::iter(frames)).await {
                        let mut stream = stream.into_inner();
                        while let Ok(Some(_)) = stream.message().await {}
                    }
                    let request = SubmitRequest { spec_toml: words.clone(), submission: None };
                    let _ = JobsClient::new(channel).submit(request).await;
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
}

async fn dial(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(IpAddr::V4(from), 0))?;
    socket.connect(to).await
}

/// Returns the first 64 bytes of a ClientHello of 512.
fn half_a_hello() -> [u8; 64] {
    let mut bytes = [7; 64];
    bytes[..11].copy_from_slice(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
    bytes[43] = 32;
    bytes
}

/// Returns a process's resident memory, in bytes.
pub fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process of this system");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident memory");
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib << 10
}

/// Returns the peak resident memory of each process while `is_ongoing` returns true.
pub fn most_resident(pids: &[u32], mut is_ongoing: impl FnMut() -> bool) -> Vec<u64> {
    let mut most: Vec<u64> = pids.iter().map(|pid| resident(*pid)).collect();
    while is_ongoing() {
        std::thread::sleep(Duration::from_millis(50));
        for (most, pid) in most.iter_mut().zip(pids) {
            *most = resident(*pid).max(*most);
        }
    }
    most
}

/// Returns the median time of a round between two round numbers, in microseconds, from the coordinator's log.
pub fn median_round(store: &rusqlite::Connection, job: &str, from: u64, to: u64) -> f64 {
    let sql =
        "SELECT elapsed_us FROM rounds WHERE job = (SELECT key FROM jobs WHERE id = ?1) ORDER BY iteration LIMIT ?3 OFFSET ?2";
    let mut statement = store.prepare(sql).expect("a store");
    let rows = statement.query_map(rusqlite::params![job, from as i64, (to - from) as i64], |row| row.get::<_, i64>(0));
    let moments: Vec<i64> = rows.expect("rounds").collect::<Result<_, _>>().expect("numbers");
    let mut times: Vec<i64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(!times.is_empty(), "no rounds between {from} and {to}");
    times.sort_unstable();
    times[times.len() / 2] as f64
}

/// Returns the number of a job's rounds in the coordinator's log.
pub fn rounds(store: &rusqlite::Connection, job: &str) -> u64 {
    let sql = "SELECT count(*) FROM rounds WHERE job = (SELECT key FROM jobs WHERE id = ?1)";
    store.query_row(sql, [job], |row| row.get(0)).expect("a count")
}
