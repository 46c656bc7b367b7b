//! A stand-in for the coordinator that repeats the same queries to one party and records every answer: what a party has released
//! can only be seen from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conclave_common::query::Query;
use conclave_proto::convert::query_to_wire;
use conclave_proto::tls::IdentityDir;
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::link_server::{Link, LinkServer};
use conclave_proto::v1::party_frame::Body as Said;
use conclave_proto::{PROTOCOL, submission, v1};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use crate::books::QueryId;

/// Queries sent ahead of the first missing answer, so that a kill finds many in flight.
const AHEAD: u64 = 24;
/// Every new stream begins this many rounds behind, so that answers are requested again.
const REPEATED: u64 = 40;

/// The queries sent and the answers received.
#[derive(Default)]
struct Received {
    /// Every value ever received for a query; exactly one, if the party answers consistently.
    answers: BTreeMap<QueryId, BTreeSet<i64>>,
    /// Number of answers received, repetitions included.
    count: u64,
    /// Refusals received, with their status.
    refusals: Vec<(u64, u32)>,
    /// Round at which the next stream begins, where that was set.
    restart_at: Option<u64>,
}

/// The stand-in, which serves until it is dropped.
pub struct Recorder {
    received: Arc<Mutex<Received>>,
    _runtime: tokio::runtime::Runtime,
}

/// One job, and the queries of each of its rounds.
pub struct JobQueries {
    /// The job as sent to parties.
    pub job: v1::OpenJob,
    /// Returns the queries of a round.
    pub round: Box<dyn Fn(u64) -> Vec<Query> + Send + Sync>,
}

/// Creates a job as a coordinator sends it to a party, signed by the analyst of the identity folder.
pub fn signed_job(analyst: &Path, spec_toml: &str) -> v1::OpenJob {
    let identity = IdentityDir::load(analyst).expect("the analyst's identity");
    let name = identity.identity().name.clone();
    let signed = submission::sign(&identity, spec_toml).expect("a signature");
    v1::OpenJob {
        job: submission::check(Some(&signed), &name, spec_toml).expect("its own signature"),
        analyst: name,
        spec_digest: Sha256::digest(spec_toml.as_bytes()).to_vec(),
        spec_toml: spec_toml.to_owned(),
        submission: Some(signed),
    }
}

impl Recorder {
    /// Starts serving at `address` with the coordinator's identity.
    pub fn serve(address: SocketAddr, identity: &Path, queries: JobQueries) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let received = Arc::new(Mutex::new(Received::default()));
        let service = Service { queries: Arc::new(queries), received: Arc::clone(&received) };
        let tls = IdentityDir::load(identity).and_then(|i| i.server_config()).expect("the coordinator's identity");
        let listener = runtime.block_on(TcpListener::bind(address)).expect("the coordinator's address");
        let server = tonic::transport::Server::builder().tls_config(tls).expect("TLS").add_service(LinkServer::new(service));
        runtime.spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { received, _runtime: runtime }
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns every answer received so far.
    pub fn answers(&self) -> BTreeMap<QueryId, BTreeSet<i64>> {
        self.received().answers.clone()
    }

    /// Returns the refusals received so far: round and status.
    pub fn refusals(&self) -> Vec<(u64, u32)> {
        self.received().refusals.clone()
    }

    /// Returns the number of answers received, repetitions included.
    pub fn count(&self) -> u64 {
        self.received().count
    }

    /// Makes the next stream begin at the first round.
    pub fn restart_from_first_round(&self) {
        self.received().restart_at = Some(0);
    }
}

struct Service {
    queries: Arc<JobQueries>,
    received: Arc<Mutex<Received>>,
}

type Frame = Result<v1::CoordinatorFrame, Status>;

#[tonic::async_trait]
impl Link for Service {
    type AttachStream = UnboundedReceiverStream<Frame>;
    type LogStream = UnboundedReceiverStream<Result<v1::JobLog, Status>>;

    async fn log(&self, _: Request<v1::JobRequest>) -> Result<Response<Self::LogStream>, Status> {
        Err(Status::unimplemented("this stand-in keeps no log"))
    }

    async fn attach(&self, request: Request<Streaming<v1::PartyFrame>>) -> Result<Response<Self::AttachStream>, Status> {
        let (sender, outgoing) = mpsc::unbounded_channel();
        let session = Session { queries: Arc::clone(&self.queries), received: Arc::clone(&self.received), sender, next: 0 };
        tokio::spawn(session.run(request.into_inner()));
        Ok(Response::new(UnboundedReceiverStream::new(outgoing)))
    }
}

struct Session {
    queries: Arc<JobQueries>,
    received: Arc<Mutex<Received>>,
    sender: mpsc::UnboundedSender<Frame>,
    next: u64,
}

impl Session {
    async fn run(mut self, mut incoming: Streaming<v1::PartyFrame>) {
        while let Ok(Some(frame)) = incoming.message().await {
            match frame.body {
                Some(Said::Hello(_)) => {
                    // The message may gain fields that this stand-in does not use.
                    #[allow(clippy::needless_update)]
                    let welcome = v1::Welcome { protocol: PROTOCOL, software: "recorder".to_owned(), ..v1::Welcome::default() };
                    self.send(Body::Welcome(welcome));
                    self.send(Body::OpenJob(self.queries.job.clone()));
                }
                Some(Said::JobOpened(_)) => {
                    self.next = self.first();
                    (0..AHEAD).for_each(|_| self.ask());
                }
                Some(Said::JobRefused(refused)) => panic!("{}: {}", refused.code, refused.reason),
                Some(Said::Answer(answer)) => {
                    self.take(&answer);
                    self.ask();
                }
                _ => {}
            }
        }
    }

    fn first(&self) -> u64 {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = received.answers.keys().next_back().map_or(0, |id| id.0);
        received.restart_at.take().unwrap_or(newest.saturating_sub(REPEATED))
    }

    fn ask(&mut self) {
        let queries = (self.queries.round)(self.next);
        let query = query_to_wire(&self.queries.job.job, self.next, &queries);
        self.next += 1;
        self.send(Body::Query(query));
    }

    fn take(&self, answer: &v1::Answer) {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        match answer.status {
            Some(0) => {}
            status => received.refusals.push((answer.iteration, status.unwrap_or(u32::MAX))),
        }
        if answer.status == Some(0) {
            let queries = (self.queries.round)(answer.iteration);
            assert_eq!(answer.releases.len(), queries.len());
            for (query, released) in queries.iter().zip(&answer.releases) {
                received.answers.entry((answer.iteration, query.chain)).or_default().insert(*released);
                received.count += 1;
            }
        }
    }

    fn send(&self, body: Body) {
        // A party that was just killed receives nothing.
        let _ = self.sender.send(Ok(v1::CoordinatorFrame { body: Some(body) }));
    }
}
