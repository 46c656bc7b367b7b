//! The coordinator over real TLS: permissions of roles, and a job from submission to its draws.
#![allow(clippy::unwrap_used)]

mod consortium;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_coordinator::{Config, Coordinator, RunError};
use conclave_draws::zarr::StoreFiles;
use conclave_proto::ca::KeyedPem;
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::identity::Role;
use conclave_proto::tls::{IdentityDir, connect};
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body as Heard;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::party_frame::Body;
use conclave_proto::{OLDEST_PROTOCOL, PROTOCOL};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

const JOB: &str = r#"
name = "mean"
parties = ["a", "b"]
model = { kind = "gaussian_mean", outcome = "x", sd = 1.0 }
columns = { x = { min = -4, max = 4 } }
[sampler]
chains = 4
draws = 1200
warmup = 10
proposal = { kind = "guided", radius = 0.05 }
start = { mean = 0.1 }
[privacy]
epsilon = 20.0
delta = 1e-6
"#;

struct Consortium {
    folder: tempfile::TempDir,
    ca: KeyedPem,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<Result<(), RunError>>>,
}

impl Consortium {
    async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts with extra lines in the coordinator's configuration, and nobody revoked.
    async fn start_with(extra: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca = consortium::new_ca();
        let path = consortium::coordinator(&ca, folder.path());
        std::fs::write(folder.path().join("revoked.txt"), "").unwrap();
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + extra).unwrap();
        let config = Config::load(&path).unwrap();
        let coordinator = Coordinator::open(&config).await.unwrap();
        let address = coordinator.address();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(coordinator.serve(async {
            let _ = stopped.await;
        }));
        Self { folder, ca, address, stop: Some(stop), served: Some(served) }
    }

    async fn dial(&self, role: Role, name: &str) -> Channel {
        self.try_dial(role, name).await.unwrap()
    }

    async fn try_dial(&self, role: Role, name: &str) -> Result<Channel, Fault> {
        let folder = self.folder.path().join(name);
        consortium::identity(&self.ca, &folder, role, name);
        connect(&format!("https://{}", self.address), &IdentityDir::load(&folder).unwrap()).await
    }

    fn revoke(&self, text: &str) {
        std::fs::write(self.folder.path().join("revoked.txt"), text).unwrap();
    }

    /// The certificate that the coordinator shows now.
    async fn shown(&self) -> CertificateDer<'static> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.pem.as_bytes()).unwrap()).unwrap();
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let tls = connector.connect("127.0.0.1".try_into().unwrap(), stream).await.unwrap();
        tls.get_ref().1.peer_certificates().unwrap()[0].clone()
    }

    async fn analyst(&self) -> JobsClient<Channel> {
        JobsClient::new(self.dial(Role::Analyst, "alice").await)
    }

    /// A job as alice submits it, once she has dialled.
    fn signed(&self, job: &str) -> v1::SubmitRequest {
        let alice = IdentityDir::load(&self.folder.path().join("alice")).unwrap();
        let submission = conclave_proto::submission::sign(&alice, job).unwrap();
        v1::SubmitRequest { spec_toml: job.to_owned(), submission: Some(submission) }
    }

    async fn party(&self, name: &'static str) -> Party {
        // Like a party from before protocol ranges.
        self.party_of(name, v1::Hello { protocol: PROTOCOL, software: "test party 1.0".to_owned(), oldest: 0 }).await
    }

    async fn party_of(&self, name: &'static str, hello: v1::Hello) -> Party {
        Party::attach(LinkClient::new(self.dial(Role::Party, name).await), hello).await
    }

    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(4), self.served.take().unwrap()).await.unwrap().unwrap().unwrap();
    }
}

struct Party {
    out: mpsc::UnboundedSender<v1::PartyFrame>,
    heard: Streaming<v1::CoordinatorFrame>,
}

impl Party {
    async fn attach(mut link: LinkClient<Channel>, hello: v1::Hello) -> Self {
        let (out, frames) = mpsc::unbounded_channel();
        out.send(v1::PartyFrame { body: Some(Body::Hello(hello)) }).unwrap();
        let heard = link.attach(UnboundedReceiverStream::new(frames)).await.unwrap().into_inner();
        Self { out, heard }
    }

    /// Returns true if the stream does not end within two seconds.
    async fn is_attached(&mut self) -> bool {
        let read = async { while let Ok(Some(_)) = self.heard.message().await {} };
        tokio::time::timeout(Duration::from_secs(2), read).await.is_err()
    }

    /// Reads until the stream ends.
    async fn end(mut self) -> Option<Status> {
        let read = async {
            loop {
                match self.heard.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(status) => return Some(status),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("the stream ends")
    }

    async fn next(&mut self) -> Result<Heard, Status> {
        let frame = tokio::time::timeout(Duration::from_secs(5), self.heard.message()).await.unwrap()?;
        Ok(frame.expect("the stream continues").body.unwrap())
    }

    /// Opens every job and answers every query with zeros until the stream ends; returns the number of answers.
    async fn serve(self) -> u64 {
        self.serve_with(|query| vec![0; query.proposals.len()]).await
    }

    async fn serve_with(mut self, releases: impl Fn(&v1::Query) -> Vec<i64>) -> u64 {
        let mut answered = 0;
        while let Ok(Some(frame)) = self.heard.message().await {
            let reply = match frame.body.unwrap() {
                Heard::OpenJob(open) => Body::JobOpened(v1::JobOpened { job: open.job, records: 100, ..Default::default() }),
                Heard::Query(query) => {
                    answered += 1;
                    let releases = releases(&query);
                    Body::Answer(v1::Answer {
                        job: query.job,
                        iteration: query.iteration,
                        status: Some(0),
                        releases,
                        ..Default::default()
                    })
                }
                _ => continue,
            };
            if self.out.send(v1::PartyFrame { body: Some(reply) }).is_err() {
                break;
            }
        }
        answered
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_from_submission_to_its_draws() {
    let consortium = Consortium::start().await;
    let mut analyst = consortium.analyst().await;
    let refused = analyst.submit(consortium.signed(JOB)).await.unwrap_err();
    assert_eq!(from_status(&refused).code, ErrorCode::InvalidInput);

    let mut parties = Vec::new();
    for name in ["a", "b"] {
        let mut party = consortium.party(name).await;
        assert!(matches!(party.next().await.unwrap(), Heard::Welcome(_)));
        parties.push(tokio::spawn(party.serve()));
    }
    // Unsigned, or signed for another text: refused by name.
    let unsigned = v1::SubmitRequest { spec_toml: JOB.to_owned(), submission: None };
    let other = v1::SubmitRequest { spec_toml: JOB.replace("1200", "1201"), ..consortium.signed(JOB) };
    for request in [unsigned, other] {
        assert_eq!(from_status(&analyst.submit(request).await.unwrap_err()).code, ErrorCode::Unauthenticated);
    }
    let begun = Instant::now();
    let request = consortium.signed(JOB);
    let job = analyst.submit(request.clone()).await.unwrap().into_inner().job;
    assert_eq!(analyst.submit(request).await.unwrap().into_inner().job, job, "one signature is one job");
    let request = || v1::JobRequest { job: job.clone() };
    let mut watch = analyst.watch(request()).await.unwrap().into_inner();
    let mut last = None;
    while let Some(status) = watch.message().await.unwrap() {
        last = Some(status);
    }
    let last = last.unwrap();
    assert_eq!(last.state, "finished", "{}", last.error);
    assert!(last.parties.iter().all(|p| p.attached && p.records == 100 && p.queries == 4 * 1210));
    let result: serde_json::Value = serde_json::from_str(&last.result_json).unwrap();
    println!("{} rounds in {:.3} s of sampling, {:?} in all", last.iteration, last.seconds, begun.elapsed());

    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut draws = analyst.draws(request()).await.unwrap().into_inner();
    while let Some(chunk) = draws.message().await.unwrap() {
        files.entry(chunk.path).or_default().extend(chunk.data);
    }
    let root = Path::new(result["draws"].as_str().unwrap());
    let stored = StoreFiles::open(root).unwrap();
    for (path, bytes) in &files {
        assert_eq!(bytes, &stored.read(path).unwrap(), "{path}");
    }
    assert_eq!(stored.names().unwrap().len(), files.len());
    assert_eq!(files["posterior/mean/c/3/0"].len() as u64, 8 * result["draws_per_chain"].as_u64().unwrap());

    check_keeping(&consortium, root);
    check_log(&consortium, &job).await;
    check_traces(&consortium, &job, &result).await;

    check_pruning(&consortium, root);
    let none = async { analyst.clone().draws(request()).await.unwrap().into_inner().message().await };
    assert!(from_status(&none.await.unwrap_err()).message.contains("keep_draws_days"));
    assert_eq!(analyst.list(v1::ListRequest {}).await.unwrap().into_inner().jobs.len(), 1);
    assert_eq!(analyst.cancel(request()).await.unwrap().into_inner().state, "finished");
    let missing = analyst.get(v1::JobRequest { job: "x".to_owned() }).await.unwrap_err();
    assert_eq!(from_status(&missing).code, ErrorCode::NotFound);
    consortium.stop().await;
    for party in parties {
        assert_eq!(party.await.unwrap(), 1210);
    }
}

/// Runs an operator's command beside the coordinator; returns its exit code and its JSON output.
fn operate(consortium: &Consortium, arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conclave-coordinator"));
    command.args(arguments).arg("--json").arg("--config").arg(consortium.folder.path().join("coordinator.toml"));
    let output = command.output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

/// Takes a backup and runs the doctor while the coordinator runs.
fn check_keeping(consortium: &Consortium, draws: &Path) {
    let folder = consortium.folder.path();
    let to = folder.join("backup");
    let (code, done) = operate(consortium, &["backup", "--to", to.to_str().unwrap()]);
    assert_eq!((code, &done["jobs"], &done["rounds"], &done["draws"]), (Some(0), &1.into(), &1210.into(), &1.into()), "{done}");
    let copy = to.join("draws").join(draws.file_name().unwrap());
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(draws).unwrap());
    let modified = |path: &Path| path.metadata().unwrap().modified().unwrap();
    assert_eq!(modified(&copy), modified(draws), "the retention period does not start again");
    assert_eq!(operate(consortium, &["backup", "--to", to.to_str().unwrap()]).0, Some(2), "nothing is overwritten");
    // A coordinator can start on the copy with this configuration.
    std::fs::write(
        to.join("coordinator.toml"),
        "listen = \"127.0.0.1:0\"\nidentity = \"../identity\"\nstore = \"coordinator.sqlite\"\ndraws = \"draws\"\n",
    )
    .unwrap();
    let finding = |found: &serde_json::Value, code: &str| {
        let checks = found["checks"].as_array().unwrap();
        checks.iter().find(|check| check["code"] == code).cloned().unwrap_or_else(|| panic!("{code} in {found}"))
    };
    let (code, found) = operate(consortium, &["doctor"]);
    assert_eq!((code, &found["failed"]), (Some(0), &0.into()), "{found}");
    for (code, word) in
        [("daemon", "serving on"), ("store", "1 jobs, 1210 rounds"), ("draws", "1 ended jobs"), ("identity", "expires in")]
    {
        let check = finding(&found, code);
        assert!(check["result"] != "fail" && check["found"].as_str().unwrap().contains(word), "{check}");
    }
    #[cfg(target_os = "linux")]
    {
        // The store's log is long, and another process holds the store. No process of this test opens the store by itself: closing it
        // would end the coordinator's locks.
        let log = std::fs::File::options().write(true).open(folder.join("c.sqlite-wal")).unwrap();
        log.set_len(17 << 20).unwrap();
        let mut other = Command::new("sh").args(["-c", "exec sleep 617 < c.sqlite"]).current_dir(folder).spawn().unwrap();
        let named = || {
            let (code, found) = operate(consortium, &["doctor"]);
            code == Some(0)
                && finding(&found, "log")["found"].as_str().unwrap().contains(&format!("process {} (sleep 617)", other.id()))
        };
        let end = Instant::now() + Duration::from_secs(20);
        while !named() {
            assert!(Instant::now() < end, "the process is not named");
        }
        other.kill().unwrap();
        other.wait().unwrap();
    }
    // One bit of the draws is flipped, and the key is readable by others.
    let whole = std::fs::read(draws).unwrap();
    let mut bytes = whole.clone();
    bytes[whole.len() / 2] ^= 1;
    std::fs::write(draws, bytes).unwrap();
    #[cfg(unix)]
    let mode = |mode| {
        std::fs::set_permissions(folder.join("identity/key.pem"), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap()
    };
    #[cfg(unix)]
    mode(0o644);
    let (code, found) = operate(consortium, &["doctor"]);
    assert_eq!(code, Some(1));
    assert!(finding(&found, "draws")["found"].as_str().unwrap().contains(".zarr.zip"), "{found}");
    #[cfg(unix)]
    assert!(finding(&found, "permissions")["remedy"].as_str().unwrap().starts_with("chmod 600"), "{found}");
    #[cfg(unix)]
    mode(0o600);
    std::fs::write(draws, whole).unwrap();
}

/// Removes old draws on request, and not before.
fn check_pruning(consortium: &Consortium, draws: &Path) {
    assert_eq!(operate(consortium, &["prune"]).0, Some(2), "no retention period");
    let (code, none) = operate(consortium, &["prune", "--older-than", "1"]);
    assert_eq!((code, none["jobs"].as_array().unwrap().len(), draws.exists()), (Some(0), 0, true));
    // The job's end counts, whatever happened to the file since: a copy is no younger, and an old date makes it no older.
    let two_days = std::time::SystemTime::now() - Duration::from_secs(2 * 86_400 + 60);
    let file = std::fs::File::options().write(true).open(draws).unwrap();
    file.set_modified(two_days).unwrap();
    let (_, none) = operate(consortium, &["prune", "--older-than", "2"]);
    assert!(none["jobs"].as_array().unwrap().is_empty() && draws.exists(), "{none}");
    file.set_modified(std::time::SystemTime::now()).unwrap();
    let store = rusqlite::Connection::open(consortium.folder.path().join("c.sqlite")).unwrap();
    assert_eq!(store.execute("UPDATE jobs SET ended_ms = ended_ms - 172860000", []).unwrap(), 1);
    drop(store);
    let (_, dry) = operate(consortium, &["prune", "--older-than", "2", "--dry-run"]);
    assert!(dry["jobs"][0]["days"] == 2 && dry["removed"] == false && draws.exists(), "{dry}");
    let (_, done) = operate(consortium, &["prune", "--older-than", "2"]);
    assert!(done["removed"] == true && done["bytes"] == dry["bytes"] && !draws.exists(), "{done}");
}

/// The job's analyst receives the chains' figures, equal to the result's; nobody else receives any.
async fn check_traces(consortium: &Consortium, job: &str, result: &serde_json::Value) {
    let ask = async |role, name, job: &str| {
        let mut jobs = JobsClient::new(consortium.dial(role, name).await);
        jobs.traces(v1::TracesRequest { job: job.to_owned() }).await.map(tonic::Response::into_inner)
    };
    let reply = ask(Role::Analyst, "alice", job).await.unwrap();
    let [mean] = &*reply.traces else { panic!("{reply:?}") };
    let row = &result["posterior"][0];
    assert!(!reply.warmup && reply.parameters == 1 && row["name"] == mean.parameter.as_str(), "{reply:?}");
    for (reported, key) in [(mean.mean, "mean"), (mean.sd, "sd")] {
        assert!((reported - row[key].as_f64().unwrap()).abs() < 1e-9, "{key}: {reported} {row}");
    }
    assert!(mean.chains.len() == 4 && mean.chains.iter().all(|chain| chain.draws.len() == 64));
    assert!(reply.ess.unwrap().value > 10.0 && reply.rhat.unwrap().value > 0.9);
    for (role, name, job, code) in [
        (Role::Analyst, "mallory", job, ErrorCode::NotFound),
        (Role::Analyst, "alice", "x", ErrorCode::NotFound),
        (Role::Party, "a", job, ErrorCode::Unauthenticated),
    ] {
        assert_eq!(from_status(&ask(role, name, job).await.unwrap_err()).code, code, "{name}");
    }
}

/// A party of the job receives all of its log, and nobody else any of it.
async fn check_log(consortium: &Consortium, job: &str) {
    use v1::job_log::Body;
    let request = || v1::JobRequest { job: job.to_owned() };
    let link = async |role, name| LinkClient::new(consortium.dial(role, name).await);
    let (mut rounds, mut files, mut ended) = (Vec::new(), 0, false);
    let mut log = link(Role::Party, "a").await.log(request()).await.unwrap().into_inner();
    let Some(Body::Header(header)) = log.message().await.unwrap().unwrap().body else { panic!("no header") };
    assert_eq!((header.job.as_str(), header.state.as_str(), header.spec_toml.as_str()), (job, "finished", JOB));
    assert_eq!(header.parties.iter().map(|p| p.opened.as_ref().unwrap().records).collect::<Vec<_>>(), [100, 100]);
    while let Some(piece) = log.message().await.unwrap() {
        assert!(!ended);
        match piece.body.unwrap() {
            Body::Header(_) => panic!("a second header"),
            Body::Rounds(more) => rounds.extend(more.rounds),
            Body::Draws(chunk) => files += usize::from(chunk.last),
            Body::End(end) => ended = end.damage.is_empty() && !end.draws_removed,
        }
    }
    assert!(ended && files > 10);
    assert!(rounds.iter().map(|r| r.iteration).eq(0..1210) && rounds.iter().all(|r| !r.more && r.releases.len() == 8));
    for (role, name, code) in [(Role::Party, "z", ErrorCode::NotFound), (Role::Analyst, "alice", ErrorCode::Unauthenticated)] {
        assert_eq!(from_status(&link(role, name).await.log(request()).await.unwrap_err()).code, code);
    }
    let nothing = v1::JobRequest { job: "x".to_owned() };
    assert_eq!(from_status(&link(Role::Party, "a").await.log(nothing).await.unwrap_err()).code, ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_no_party_can_have_end_the_job_by_name() {
    let consortium = Consortium::start().await;
    let mut analyst = consortium.analyst().await;
    type Lie = fn(&v1::Query) -> Vec<i64>;
    let lies: [(Lie, &str); 3] = [
        (|query| vec![i64::MAX; query.proposals.len()], "impossible number 9223372036854775807"),
        (|query| vec![1 << 50; query.proposals.len()], "impossible number"),
        (|query| vec![0; query.proposals.len() + 1], "5 numbers for the 4 queries"),
    ];
    for (lie, expected) in lies {
        let (a, b) = (consortium.party("a").await, consortium.party("b").await);
        let parties = [tokio::spawn(a.serve()), tokio::spawn(b.serve_with(lie))];
        let request = consortium.signed(JOB);
        // A party is known once its hello has been read.
        let job = loop {
            match analyst.submit(request.clone()).await {
                Ok(reply) => break reply.into_inner().job,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        let mut watch = analyst.watch(v1::JobRequest { job }).await.unwrap().into_inner();
        let mut last = v1::JobStatus::default();
        while let Some(status) = watch.message().await.unwrap() {
            last = status;
        }
        assert_eq!(last.state, "failed");
        assert!(last.error.contains("b sent") && last.error.contains(expected), "{}", last.error);
        parties.iter().for_each(JoinHandle::abort);
    }
    consortium.stop().await;
}

/// Most tools speak the older version of reflection, and look for the service of health.
#[cfg(feature = "reflection")]
#[tokio::test]
async fn both_versions_of_reflection_list_every_service() {
    macro_rules! listed {
        ($version:ident, $channel:expr) => {{
            use reflection::server_reflection_request::MessageRequest;
            use reflection::server_reflection_response::MessageResponse;
            use tonic_reflection::pb::$version as reflection;
            let mut client = reflection::server_reflection_client::ServerReflectionClient::new($channel);
            let asked = Some(MessageRequest::ListServices(String::new()));
            let request = reflection::ServerReflectionRequest { host: String::new(), message_request: asked };
            let mut replies = client.server_reflection_info(tokio_stream::once(request)).await.unwrap().into_inner();
            let reply = replies.message().await.unwrap().unwrap().message_response.unwrap();
            let MessageResponse::ListServicesResponse(list) = reply else { panic!("{reply:?}") };
            list.service.into_iter().map(|service| service.name).collect::<std::collections::BTreeSet<String>>()
        }};
    }
    let consortium = Consortium::start().await;
    let channel = consortium.dial(Role::Analyst, "ana").await;
    let (v1, v1alpha) = (listed!(v1, channel.clone()), listed!(v1alpha, channel));
    assert_eq!(v1, v1alpha);
    let reflection = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];
    for service in ["conclave.v1.Jobs", "conclave.v1.Link", "grpc.health.v1.Health"].iter().chain(&reflection) {
        assert!(v1.contains(*service), "{service} in {v1:?}");
    }
}

#[tokio::test]
async fn roles_come_from_certificates() {
    let consortium = Consortium::start().await;
    let mut party_as_analyst = JobsClient::new(consortium.dial(Role::Party, "p").await);
    let refused = party_as_analyst.list(v1::ListRequest {}).await.unwrap_err();
    assert_eq!(from_status(&refused).code, ErrorCode::Unauthenticated);
    let mut analyst_as_party = LinkClient::new(consortium.dial(Role::Analyst, "alice").await);
    let refused = analyst_as_party.attach(tokio_stream::empty()).await.unwrap_err();
    assert_eq!(from_status(&refused).code, ErrorCode::Unauthenticated);
    consortium.stop().await;
}

#[tokio::test]
async fn a_party_is_welcomed_with_the_newest_protocol_that_both_speak_or_refused_with_the_side_to_upgrade() {
    let consortium = Consortium::start().await;
    let hello = |oldest, protocol| v1::Hello { protocol, software: "conclave-party 9.0.0".to_owned(), oldest };
    for (oldest, newest) in [(0, PROTOCOL), (PROTOCOL, PROTOCOL), (PROTOCOL, PROTOCOL + 5)] {
        let mut party = consortium.party_of("a", hello(oldest, newest)).await;
        match party.next().await.unwrap() {
            Heard::Welcome(welcome) => assert_eq!(welcome.protocol, PROTOCOL, "{oldest} to {newest}"),
            other => panic!("{other:?}"),
        }
    }
    let too_new = format!("upgrade the coordinator's conclave-coordinator to a version that speaks protocol {}", PROTOCOL + 1);
    let too_old = format!("upgrade the party's conclave-party to a version that speaks protocol {OLDEST_PROTOCOL}");
    for ((oldest, newest), said) in [
        ((PROTOCOL + 1, PROTOCOL + 2), &*too_new),
        ((0, OLDEST_PROTOCOL - 1), &*too_old),
        ((PROTOCOL + 3, PROTOCOL + 2), "empty protocol range"),
    ] {
        let mut party = consortium.party_of("a", hello(oldest, newest)).await;
        let fault = from_status(&party.next().await.unwrap_err());
        // The code on which a party waits long before it tries again.
        assert_eq!((fault.code, fault.party.as_deref()), (ErrorCode::InvalidInput, Some("a")));
        assert!(fault.message.contains(said), "{fault}");
    }
    consortium.stop().await;
}

#[tokio::test]
async fn the_newer_stream_of_a_party_replaces_the_older() {
    let consortium = Consortium::start().await;
    let mut first = consortium.party("a").await;
    assert!(matches!(first.next().await.unwrap(), Heard::Welcome(_)));
    let mut second = consortium.party("a").await;
    assert!(matches!(second.next().await.unwrap(), Heard::Welcome(_)));
    let closed = loop {
        match first.next().await {
            Ok(_) => {}
            Err(status) => break from_status(&status),
        }
    };
    assert_eq!(closed.code, ErrorCode::Conflict, "{closed}");
    assert!(matches!(second.next().await.unwrap(), Heard::Heartbeat(_)));
    consortium.stop().await;
}

#[tokio::test]
async fn a_store_has_one_coordinator() {
    let consortium = Consortium::start().await;
    let config = Config::load(&consortium.folder.path().join("coordinator.toml")).unwrap();
    let Err(RunError::System(message)) = Coordinator::open(&config).await else { panic!("opened twice") };
    assert!(message.contains("in use by another coordinator"), "{message}");
    consortium.stop().await;
}

#[tokio::test]
async fn a_revoked_member_is_cut_off_and_let_in_no_more_without_a_restart() {
    let consortium = Consortium::start_with("revoked = \"revoked.txt\"\n").await;
    let mut analyst = consortium.analyst().await;
    let (mut a, mut b) = (consortium.party("a").await, consortium.party("b").await);
    assert!(matches!(a.next().await.unwrap(), Heard::Welcome(_)));
    assert!(matches!(b.next().await.unwrap(), Heard::Welcome(_)));
    consortium.revoke("party/a # lost its laptop\n");
    a.end().await.unwrap();
    let fault = consortium.try_dial(Role::Party, "a").await.unwrap_err();
    assert_eq!(fault.code, ErrorCode::Unauthenticated);
    assert!(fault.message.contains("has been revoked"), "{fault}");
    // Its jobs wait for it, and their analyst reads why.
    let job = analyst.submit(consortium.signed(JOB)).await.unwrap().into_inner().job;
    let named = async {
        while !analyst
            .get(v1::JobRequest { job: job.clone() })
            .await
            .unwrap()
            .into_inner()
            .waiting_reason
            .contains("a: not connected: its certificate is revoked at the coordinator")
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), named).await.expect("the reason of the wait");
    analyst.cancel(v1::JobRequest { job: job.clone() }).await.unwrap();
    // The others are not affected.
    assert!(b.is_attached().await);
    analyst.list(v1::ListRequest {}).await.unwrap();
    consortium.revoke("");
    let mut a = consortium.party("a").await;
    assert!(matches!(a.next().await.unwrap(), Heard::Welcome(_)));
    // A revocation list that can't be read lets nobody in.
    std::fs::remove_file(consortium.folder.path().join("revoked.txt")).unwrap();
    assert!(consortium.try_dial(Role::Party, "c").await.is_err());
    a.end().await.unwrap();
    b.end().await.unwrap();
    analyst.list(v1::ListRequest {}).await.unwrap_err();
    consortium.revoke("");
    consortium.party("a").await;
    consortium.stop().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart_and_a_bad_one_is_not() {
    let consortium = Consortium::start().await;
    let mut b = consortium.party("b").await;
    assert!(matches!(b.next().await.unwrap(), Heard::Welcome(_)));
    let first = consortium.shown().await;
    let identity = consortium.folder.path().join("identity");
    // A key that does not belong to the certificate.
    let key = std::fs::read(identity.join("key.pem")).unwrap();
    consortium::identity(&consortium.ca, &identity, Role::Coordinator, "c");
    std::fs::write(identity.join("key.pem"), key).unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(consortium.shown().await, first);
    consortium::identity(&consortium.ca, &identity, Role::Coordinator, "c");
    let renewed = CertificateDer::from_pem_file(identity.join("certificate.pem")).unwrap();
    let shown = async {
        while consortium.shown().await != renewed {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), shown).await.expect("the new certificate is shown");
    // Existing connections stay, and new ones are accepted.
    assert!(b.is_attached().await);
    let mut a = consortium.party("a").await;
    assert!(matches!(a.next().await.unwrap(), Heard::Welcome(_)));
    consortium.stop().await;
}

#[tokio::test]
async fn messages_that_are_too_long_are_refused_by_their_length() {
    let consortium = Consortium::start().await;
    let mut party = consortium.party("a").await;
    assert!(matches!(party.next().await.unwrap(), Heard::Welcome(_)));
    let reason = "x".repeat(100 << 20);
    let refused = v1::JobRefused { job: "j".to_owned(), code: String::new(), reason };
    party.out.send(v1::PartyFrame { body: Some(Body::JobRefused(refused)) }).unwrap();
    // Its stream ends; its next stream works as usual.
    party.end().await;
    let mut party = consortium.party("a").await;
    assert!(matches!(party.next().await.unwrap(), Heard::Welcome(_)));
    let mut analyst = consortium.analyst().await;
    let request = v1::SubmitRequest { spec_toml: "#".repeat(100 << 20), submission: None };
    let refused = analyst.submit(request).await.unwrap_err();
    assert!(refused.message().contains("limit"), "{refused}");
    // A party may not call the analysts' service, whatever the size of the request.
    let mut jobs = JobsClient::new(consortium.dial(Role::Party, "a").await);
    let request = v1::SubmitRequest { spec_toml: "#".repeat(100 << 20), submission: None };
    assert_eq!(from_status(&jobs.submit(request).await.unwrap_err()).code, ErrorCode::Unauthenticated);
    consortium.stop().await;
}

/// First half of a ClientHello, as from a peer that has died or is malicious.
const HALF_A_HELLO: [u8; 64] = [
    22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 32, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
];

#[tokio::test]
async fn strangers_who_hang_do_not_keep_members_out() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let consortium = Consortium::start().await;
    let mut strangers = Vec::new();
    for _ in 0..300 {
        let mut stranger = tokio::net::TcpStream::connect(consortium.address).await.unwrap();
        stranger.write_all(&HALF_A_HELLO).await.unwrap();
        strangers.push(stranger);
    }
    let mut party = consortium.party("a").await;
    assert!(matches!(party.next().await.unwrap(), Heard::Welcome(_)));
    // The oldest of them has made room for the others.
    let ended = tokio::time::timeout(Duration::from_secs(5), strangers[0].read(&mut [0; 16])).await;
    assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    drop(strangers);
    consortium.stop().await;
}

/// A client that opens streams without reading them has a limited number, does not block others, and does not delay the shutdown.
#[tokio::test]
async fn draws_that_nobody_reads_hold_up_nobody() {
    let consortium = Consortium::start().await;
    let (_a, _b) = (consortium.party("a").await, consortium.party("b").await);
    let mut alice = consortium.analyst().await;
    let job = alice.submit(consortium.signed(JOB)).await.unwrap().into_inner().job;
    let draws = consortium.folder.path().join("draws").join(format!("{job}.zarr"));
    std::fs::create_dir_all(&draws).unwrap();
    // Far more than any buffer on the way holds.
    std::fs::write(draws.join("large"), vec![7; 64 << 20]).unwrap();
    let request = || v1::JobRequest { job: job.clone() };
    let mut unread = Vec::new();
    for _ in 0..4 {
        unread.push(alice.draws(request()).await.unwrap());
    }
    let refused = from_status(&alice.draws(request()).await.unwrap_err());
    assert!(refused.code == ErrorCode::Unreachable && refused.message.contains("4 at a time"), "{refused}");
    let mut elsewhere = JobsClient::new(consortium.dial(Role::Analyst, "bob").await);
    assert!(elsewhere.list(v1::ListRequest {}).await.unwrap().into_inner().jobs.is_empty());
    drop(unread.pop());
    // Its place is free as soon as the coordinator notices.
    let again = async {
        while alice.draws(request()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again).await.unwrap();
    let began = Instant::now();
    let Consortium { stop, served, .. } = consortium;
    stop.unwrap().send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), served.unwrap()).await.unwrap().unwrap().unwrap();
    assert!(began.elapsed() < Duration::from_secs(10) && unread.len() == 3);
}
