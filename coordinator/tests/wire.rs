//! The coordinator over real TLS: who may call what, and a job from submission to its draws.
#![allow(clippy::unwrap_used)]

mod consortium;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use conclave_coordinator::{Config, Coordinator, RunError};
use conclave_proto::ca::KeyedPem;
use conclave_proto::error::{ErrorCode, from_status};
use conclave_proto::identity::Role;
use conclave_proto::tls::{IdentityDir, connect};
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body as Heard;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::party_frame::Body;
use conclave_proto::{OLDEST_PROTOCOL, PROTOCOL};
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
        let folder = tempfile::tempdir().unwrap();
        let ca = consortium::new_ca();
        let config = Config::load(&consortium::coordinator(&ca, folder.path())).unwrap();
        let coordinator = Coordinator::open(&config).await.unwrap();
        let address = coordinator.address();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(coordinator.serve(async {
            let _ = stopped.await;
        }));
        Self { folder, ca, address, stop: Some(stop), served: Some(served) }
    }

    async fn dial(&self, role: Role, name: &str) -> Channel {
        let folder = self.folder.path().join(name);
        consortium::identity(&self.ca, &folder, role, name);
        connect(&format!("https://{}", self.address), &IdentityDir::load(&folder).unwrap()).await.unwrap()
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
        // As a party of before ranges were said.
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

    async fn next(&mut self) -> Result<Heard, Status> {
        let frame = tokio::time::timeout(Duration::from_secs(5), self.heard.message()).await.unwrap()?;
        Ok(frame.expect("the stream goes on").body.unwrap())
    }

    /// Opens and answers whatever comes, with zeros for releases, until the stream ends.
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
    for (path, bytes) in &files {
        assert_eq!(bytes, &std::fs::read(root.join(path)).unwrap(), "{path}");
    }
    assert_eq!(files["posterior/mean/c/3/1"].len(), 8000);

    check_log(&consortium, &job, root).await;

    assert_eq!(analyst.list(v1::ListRequest {}).await.unwrap().into_inner().jobs.len(), 1);
    assert_eq!(analyst.cancel(request()).await.unwrap().into_inner().state, "finished");
    let missing = analyst.get(v1::JobRequest { job: "x".to_owned() }).await.unwrap_err();
    assert_eq!(from_status(&missing).code, ErrorCode::NotFound);
    consortium.stop().await;
    for party in parties {
        assert_eq!(party.await.unwrap(), 1210);
    }
}

/// A party of the job is sent all of it, and nobody else anything.
async fn check_log(consortium: &Consortium, job: &str, root: &Path) {
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
            Body::Draws(chunk) => files += usize::from(chunk.last && root.join(chunk.path).exists()),
            Body::End(end) => ended = end.damage.is_empty(),
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
    for (lie, told) in lies {
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
        assert!(last.error.contains("b sent") && last.error.contains(told), "{}", last.error);
        parties.iter().for_each(JoinHandle::abort);
    }
    consortium.stop().await;
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
async fn a_party_is_welcomed_with_the_newest_protocol_that_both_speak_or_told_which_side_to_upgrade() {
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
        ((PROTOCOL + 3, PROTOCOL + 2), "which is no range"),
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
