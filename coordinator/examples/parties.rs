//! Many simulated parties on one coordinator: processor time and memory per party, and the time of a round.
//!
//! This process holds every party's mutual-TLS stream, each with its own certificate, and answers every query immediately with a
//! number that could be a release. The coordinator is the shipped daemon in a separate process; the operating system reports its
//! processor time and memory. Prints one JSON object; `bench/parties.py` runs it.
//!
//! `parties COORDINATOR PARTIES CHAINS ROUNDS [secure]`, where COORDINATOR is the daemon's executable. With `secure`, answers are
//! masked: keys are signed and the roster is confirmed. Up to 30 parties each check the roster and mask their answers, as they
//! would on machines of their own. Pairwise keys of more parties would take this process minutes: the roster is then checked once
//! for all, and all masks are 0, which also cancel.
#![allow(clippy::unwrap_used)]

#[path = "../tests/consortium/mod.rs"]
mod consortium;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conclave_common::job::Secure;
use conclave_common::query::message_digest;
use conclave_privacy::secagg::{CONFIRMATION_LANES, MaskSecret, PairKeys, confirmation_digest, cover};
use conclave_proto::ca::KeyedPem;
use conclave_proto::convert::query_from_wire;
use conclave_proto::identity::Role;
use conclave_proto::tls::{IdentityDir, connect};
use conclave_proto::v1::coordinator_frame::Body as Heard;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::party_frame::Body;
use conclave_proto::v1::{
    Answer, Hello, JobOpened, JobRequest, MaskKey, PartyFrame, Query, RosterAccepted, RosterEntry, SubmitRequest,
};
use conclave_proto::{OLDEST_PROTOCOL, PROTOCOL, mask_key, roster, submission};
use sha2::{Digest, Sha256};
use tokio::sync::{OnceCell, Semaphore, mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

const RECORDS: u64 = 1000;
/// Warm-up rounds, which are not measured.
const WARM: u64 = 20;
/// Maximum number of parties with pairwise keys of their own.
const WITH_KEYS: usize = 30;
/// Concurrent handshakes: fewer than the coordinator accepts from one address.
const DIALLING: usize = 32;

fn main() {
    let mut args = std::env::args().skip(1);
    let daemon = args.next().expect("the coordinator's executable");
    let mut number = || args.next().and_then(|n| n.parse::<u64>().ok()).expect("parties, chains and rounds, as numbers");
    let (parties, chains, rounds) = (number(), number(), number());
    let secure = args.next().is_some_and(|word| word == "secure");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    println!("{}", runtime.block_on(measure(Path::new(&daemon), (parties, chains, rounds), secure)));
}

async fn measure(daemon: &Path, (parties, chains, rounds): (u64, u64, u64), secure: bool) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let ca = consortium::new_ca();
    let coordinator = Coordinator::start(daemon, &ca, folder.path());
    let names: Vec<String> = (0..parties).map(|i| format!("p{i:04}")).collect();
    // The first connection initialises shared state.
    let alice = identity(&ca, folder.path(), Role::Analyst, "alice");
    let mut jobs = JobsClient::new(connect(&coordinator.url, &alice).await.unwrap());
    let before = coordinator.resident_kib();
    let dialling = Arc::new(Semaphore::new(DIALLING));
    let mut attaching = tokio::task::JoinSet::new();
    let masks = Arc::new(Masks::default());
    for name in &names {
        let masks = Arc::clone(&masks);
        let (url, dialling) = (coordinator.url.clone(), Arc::clone(&dialling));
        let identity = identity(&ca, folder.path(), Role::Party, name);
        attaching.spawn(async move {
            let _place = dialling.acquire().await.unwrap();
            Party::attach(&url, identity, masks).await
        });
    }
    let mut attached = attaching.join_all().await;
    // Memory used by the handshakes may be freed meanwhile.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let held = coordinator.resident_kib();
    let (moments, mut span) = mpsc::unbounded_channel();
    let watch = Watch { coordinator: coordinator.child.id(), last: WARM + rounds, moments };
    attached[0].watch = Some(watch);
    let serving: Vec<_> = attached.into_iter().map(|party| tokio::spawn(party.serve())).collect();
    let job = job_toml(&names, chains, WARM + rounds + 5, secure);
    let signed = SubmitRequest { submission: Some(submission::sign(&alice, &job).unwrap()), spec_toml: job };
    let opening = Moment::of(coordinator.child.id()).cpu_us;
    let job = jobs.submit(signed).await.unwrap().into_inner().job;
    let submitted = Instant::now();
    let (opened, first, last) = (span.recv().await.unwrap(), span.recv().await.unwrap(), span.recv().await.unwrap());
    let running = coordinator.resident_kib();
    while !["finished", "failed"].contains(&state(&mut jobs, &job).await.as_str()) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(state(&mut jobs, &job).await, "finished");
    drop(serving);
    coordinator.stop().await;
    let each = |kib: u64| kib.saturating_sub(before) as f64 / parties as f64;
    serde_json::json!({
        "parties": parties, "chains": chains, "rounds": rounds,
        "cpu_us_per_party_round": (last.cpu_us - first.cpu_us) / (parties * rounds) as f64,
        "open_cpu_ms": (opened.cpu_us - opening) / 1e3, "secure": secure, "open_ms": (opened.at - submitted).as_secs_f64() * 1e3,
        "round_us": (last.at - first.at).as_secs_f64() * 1e6 / rounds as f64,
        "attached_kib_per_party": each(held), "running_kib_per_party": each(running), "resident_kib": running,
    })
}

async fn state(jobs: &mut JobsClient<tonic::transport::Channel>, job: &str) -> String {
    jobs.get(JobRequest { job: job.to_owned() }).await.unwrap().into_inner().state
}

fn identity(ca: &KeyedPem, folder: &Path, role: Role, name: &str) -> IdentityDir {
    let folder = folder.join(name);
    consortium::identity(ca, &folder, role, name);
    IdentityDir::load(&folder).unwrap()
}

/// A job whose chains start immediately.
fn job_toml(parties: &[String], chains: u64, draws: u64, secure: bool) -> String {
    let names: Vec<String> = parties.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "name = \"many\"\nparties = [{}]\nmodel = {{ kind = \"gaussian_mean\", outcome = \"x\", sd = 1.0 }}\n\
         columns = {{ x = {{ min = -4, max = 4 }} }}\n[sampler]\nchains = {chains}\ndraws = {draws}\nwarmup = 0\n\
         proposal = {{ kind = \"guided\", radius = 0.05 }}\nstart = {{ mean = 0.1 }}\n[privacy]\nepsilon = 900.0\ndelta = 1e-6\n{}",
        names.join(", "),
        if secure { "[aggregation]\nmode = \"secure\"\n" } else { "" }
    )
}

/// The daemon, in a process of its own.
struct Coordinator {
    child: Child,
    url: String,
}

impl Coordinator {
    fn start(daemon: &Path, ca: &KeyedPem, folder: &Path) -> Self {
        let config = consortium::coordinator(ca, folder);
        let ready = folder.join("ready");
        let mut command = Command::new(daemon);
        command.args(["run", "--exit-with-stdin", "--config"]).arg(config).arg("--ready-file").arg(&ready);
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let child = command.stdin(Stdio::piped()).stderr(log).spawn().unwrap();
        let address = loop {
            match std::fs::read_to_string(&ready) {
                Ok(address) => break address,
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        Self { child, url: format!("https://{}", address.trim()) }
    }

    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    async fn stop(mut self) {
        drop(self.child.stdin.take());
        tokio::task::spawn_blocking(move || self.child.wait()).await.unwrap().unwrap();
    }
}

/// The coordinator's processor time at one moment.
struct Moment {
    at: Instant,
    cpu_us: f64,
}

impl Moment {
    fn of(coordinator: u32) -> Self {
        let tasks = std::fs::read_dir(format!("/proc/{coordinator}/task")).unwrap();
        // Nanoseconds on a processor; a thread that has ended has none.
        let on = |task: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<f64>().ok()
        };
        Self { at: Instant::now(), cpu_us: tasks.filter_map(on).sum::<f64>() / 1e3 }
    }
}

/// Records the times of the first and the last measured round.
struct Watch {
    coordinator: u32,
    last: u64,
    moments: mpsc::UnboundedSender<Moment>,
}

struct Party {
    out: mpsc::UnboundedSender<PartyFrame>,
    heard: Streaming<conclave_proto::v1::CoordinatorFrame>,
    watch: Option<Watch>,
    entries: u64,
    identity: IdentityDir,
    keys: Option<PairKeys>,
    assembly: roster::Assembly,
    masks: Arc<Masks>,
}

/// Digests shared by all parties of a masked job, computed once because this process simulates all of them.
#[derive(Default)]
struct Masks {
    roster: OnceCell<[u8; 32]>,
    round: Mutex<Option<(u64, [u8; 32])>>,
}

impl Masks {
    async fn roster(&self, job: &str, spec_digest: [u8; 32], entries: &[RosterEntry]) -> [u8; 32] {
        let make = async || roster::read(entries, job, &spec_digest, Secure::usual_colluders(entries.len())).unwrap().digest();
        *self.roster.get_or_init(make).await
    }

    fn digest(&self, query: &Query) -> Option<[u8; 32]> {
        let roster = self.roster.get()?;
        let mut round = self.round.lock().unwrap();
        let known = round.filter(|(iteration, _)| *iteration == query.iteration);
        let compute = || (query.iteration, message_digest(roster, query.iteration, &query_from_wire(query.clone()).unwrap()));
        Some(round.insert(known.unwrap_or_else(compute)).1)
    }
}

impl Party {
    async fn attach(url: &str, identity: IdentityDir, masks: Arc<Masks>) -> Self {
        let mut link = LinkClient::new(connect(url, &identity).await.unwrap());
        let (out, frames) = mpsc::unbounded_channel();
        let hello = Hello { protocol: PROTOCOL, software: "simulated".to_owned(), oldest: OLDEST_PROTOCOL };
        out.send(PartyFrame { body: Some(Body::Hello(hello)) }).unwrap();
        let mut heard = link.attach(UnboundedReceiverStream::new(frames)).await.unwrap().into_inner();
        let welcome = heard.message().await.unwrap().and_then(|frame| frame.body);
        assert!(matches!(welcome, Some(Heard::Welcome(_))), "{welcome:?}");
        Self { out, heard, watch: None, entries: 0, identity, keys: None, assembly: roster::Assembly::default(), masks }
    }

    async fn serve(mut self) {
        let mut digest = [0; 32];
        while let Ok(Some(frame)) = self.heard.message().await {
            let said = match frame.body {
                Some(Heard::OpenJob(open)) => {
                    let head = self.head();
                    digest = open.spec_digest.as_slice().try_into().unwrap();
                    let mask_key = open.spec_toml.contains("[aggregation]").then(|| self.mask_key(&open.job, &digest));
                    Body::JobOpened(JobOpened { job: open.job, records: RECORDS, head, mask_key, ..JobOpened::default() })
                }
                Some(Heard::Roster(piece)) => {
                    let job = piece.job.clone();
                    let Some(entries) = self.assembly.take(piece).unwrap() else { continue };
                    let (digest, confirm) = self.enter(&job, digest, &entries).await;
                    Body::RosterAccepted(RosterAccepted { job, digest: digest.to_vec(), confirm })
                }
                Some(Heard::Query(query)) => self.answer(query),
                _ => continue,
            };
            if self.out.send(PartyFrame { body: Some(said) }).is_err() {
                return;
            }
        }
    }

    fn answer(&mut self, query: Query) -> Body {
        if let Some(watch) = &self.watch
            && [0, WARM, watch.last].contains(&query.iteration)
        {
            let _ = watch.moments.send(Moment::of(watch.coordinator));
        }
        // Pseudo-noise derived from the query alone.
        let releases =
            (0..query.proposals.len() as i64).map(|at| ((query.iteration as i64 * 977 + at * 131) % 2001 - 1000) << 20);
        let digest = self.masks.digest(&query);
        let lanes = query.proposals.len() + 1;
        let masks = digest.and_then(|digest| Some(self.keys.as_ref()?.masks(&digest, lanes))).unwrap_or(vec![0; lanes]);
        Body::Answer(Answer {
            releases: releases.zip(&masks).map(|(release, mask)| cover(release, *mask)).collect(),
            iteration: query.iteration,
            job: query.job,
            status: Some(0),
            head: self.head(),
            check: digest.map(|_| masks[lanes - 1]),
            digest: digest.map(|digest| digest.to_vec()).unwrap_or_default(),
        })
    }

    /// Returns the roster's digest and its confirmation.
    async fn enter(&mut self, job: &str, digest: [u8; 32], entries: &[RosterEntry]) -> ([u8; 32], Vec<u64>) {
        if entries.len() > WITH_KEYS {
            return (self.masks.roster(job, digest, entries).await, vec![0; CONFIRMATION_LANES]);
        }
        let roster = roster::read(entries, job, &digest, Secure::usual_colluders(entries.len())).unwrap();
        let name = &self.identity.identity().name;
        let place = entries.iter().position(|entry| entry.name == *name).unwrap();
        let keys = PairKeys::agree(&roster, place, &self.secret()).unwrap();
        let digest = *self.masks.roster.get_or_init(async || roster.digest()).await;
        let confirm = self.keys.insert(keys).masks(&confirmation_digest(&digest), CONFIRMATION_LANES);
        (digest, confirm)
    }

    fn secret(&self) -> MaskSecret {
        MaskSecret::from_bytes(<[u8; 32]>::from(Sha256::digest(self.identity.identity().name.as_bytes())).into())
    }

    fn mask_key(&self, job: &str, spec_digest: &[u8; 32]) -> MaskKey {
        mask_key::sign(&self.identity, job, spec_digest, &self.secret().public()).unwrap()
    }

    /// A new checkpoint for every answer, like that of a growing ledger.
    fn head(&mut self) -> Vec<u8> {
        self.entries += 1;
        [self.entries.to_le_bytes().as_slice(), &[7; 64]].concat()
    }
}
