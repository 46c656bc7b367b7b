//! A test consortium in a folder, with a minimal coordinator: real TLS, one party.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use conclave_party::PartyConfig;
use conclave_privacy::mechanism::NoiseScale;
use conclave_proto::ca::{self, KeyedPem, Validity};
use conclave_proto::identity::{PeerIdentity, Role, of_request};
use conclave_proto::submission;
use conclave_proto::tls::IdentityDir;
use conclave_proto::v1::link_server::{Link, LinkServer};
use conclave_proto::v1::{self, coordinator_frame, party_frame};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const SPEC: &str = include_str!("../../../vault/tests/jobs/mean.toml");

/// One attached party, as its coordinator sees it.
pub(crate) struct Session {
    pub(crate) name: String,
    /// Its certificate, DER.
    pub(crate) certificate: Vec<u8>,
    /// The job that the session opens and queries.
    pub(crate) job: v1::OpenJob,
    pub(crate) to: mpsc::Sender<Result<v1::CoordinatorFrame, Status>>,
    pub(crate) from: Streaming<v1::PartyFrame>,
}

impl Session {
    pub(crate) async fn send(&self, body: coordinator_frame::Body) {
        self.to.send(Ok(v1::CoordinatorFrame { body: Some(body) })).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> party_frame::Body {
        timeout(PATIENCE, self.from.message()).await.unwrap().unwrap().unwrap().body.unwrap()
    }

    /// Sends the welcome and opens the job.
    pub(crate) async fn open(&mut self) -> party_frame::Body {
        assert!(matches!(self.receive().await, party_frame::Body::Hello(h) if h.protocol == conclave_proto::PROTOCOL));
        self.send(coordinator_frame::Body::Welcome(v1::Welcome {
            protocol: conclave_proto::PROTOCOL,
            software: "test".into(),
            head: Vec::new(),
        }))
        .await;
        self.send(coordinator_frame::Body::OpenJob(self.job.clone())).await;
        self.receive().await
    }

    pub(crate) async fn ask(&mut self, iteration: u64) -> v1::Answer {
        self.send(query(&self.job.job, iteration)).await;
        match self.receive().await {
            party_frame::Body::Answer(answer) => answer,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn query(job: &str, iteration: u64) -> coordinator_frame::Body {
    let noise_scale = NoiseScale::from_sd(1.0).unwrap().units();
    let proposal = |chain, to| v1::Proposal { chain, from: vec![0.0], to: vec![to], noise_scale, kind: 0 };
    coordinator_frame::Body::Query(v1::Query {
        job: job.to_owned(),
        iteration,
        proposals: vec![proposal(0, 1e-4), proposal(1, -1e-4)],
        attempt: 0,
    })
}

struct Door(mpsc::Sender<Session>, v1::OpenJob);

#[tonic::async_trait]
impl Link for Door {
    type AttachStream = ReceiverStream<Result<v1::CoordinatorFrame, Status>>;
    type LogStream = ReceiverStream<Result<v1::JobLog, Status>>;

    async fn log(&self, _: Request<v1::JobRequest>) -> Result<Response<Self::LogStream>, Status> {
        Err(Status::unimplemented("it keeps no log"))
    }

    async fn attach(&self, request: Request<Streaming<v1::PartyFrame>>) -> Result<Response<Self::AttachStream>, Status> {
        let name = of_request(&request).unwrap().name;
        let certificate = request.peer_certs().unwrap()[0].to_vec();
        let (to, frames) = mpsc::channel(16);
        self.0.send(Session { name, certificate, job: self.1.clone(), to, from: request.into_inner() }).await.unwrap();
        Ok(Response::new(ReceiverStream::new(frames)))
    }
}

/// A consortium in a folder.
pub(crate) struct Town {
    folder: tempfile::TempDir,
    ca: KeyedPem,
    /// Alice's single submission: a new signature would make another job.
    signed: OnceLock<v1::OpenJob>,
}

impl Town {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca = ca::create_ca("town", validity()).unwrap();
        let town = Self { folder, ca, signed: OnceLock::new() };
        town.enrol(Role::Party, "hospital-a", &[]);
        town.enrol(Role::Analyst, "alice", &[]);
        town.enrol(Role::Coordinator, "hall", &["127.0.0.1".into()]);
        std::fs::write(town.path("a.csv"), "height\n170\n180\n").unwrap();
        town
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a job signed by its analyst.
    pub(crate) fn job(&self, analyst: &str, spec_toml: &str) -> v1::OpenJob {
        let identity = IdentityDir::load(&self.path(analyst)).unwrap();
        let signed = submission::sign(&identity, spec_toml).unwrap();
        v1::OpenJob {
            job: submission::check(Some(&signed), analyst, spec_toml).unwrap(),
            analyst: analyst.to_owned(),
            spec_toml: spec_toml.to_owned(),
            spec_digest: Sha256::digest(spec_toml.as_bytes()).to_vec(),
            submission: Some(signed),
        }
    }

    /// Returns a job with a signature by another member's key, assembled by hand.
    pub(crate) fn forged(&self, signer: &str, analyst: &str, spec_toml: &str) -> v1::OpenJob {
        let mut job = self.job(analyst, spec_toml);
        let other = IdentityDir::load(&self.path(signer)).unwrap().sign(b"whatever").unwrap();
        let signed = job.submission.as_mut().unwrap();
        (signed.signature, signed.certificate) = (other.bytes, other.certificate);
        job
    }

    /// Issues a certificate of this consortium's CA, with its key.
    pub(crate) fn issue(&self, role: Role, name: &str, hosts: &[String]) -> KeyedPem {
        ca::issue(&self.ca, &PeerIdentity::new(role, name).unwrap(), hosts, validity()).unwrap()
    }

    pub(crate) fn enrol(&self, role: Role, name: &str, hosts: &[String]) {
        let issued = self.issue(role, name, hosts);
        let folder = self.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("certificate.pem"), issued.pem).unwrap();
        std::fs::write(folder.join("key.pem"), issued.key_pem).unwrap();
        close(&folder.join("key.pem"));
        std::fs::write(folder.join("ca.pem"), &self.ca.pem).unwrap();
    }

    /// Signs a new owner's request as the consortium would.
    pub(crate) fn sign_request(&self) {
        let folder = self.path("hospital-a");
        let request = std::fs::read_to_string(folder.join("request.pem")).unwrap();
        std::fs::write(folder.join("certificate.pem"), ca::sign(&self.ca, &request, false, validity()).unwrap()).unwrap();
        std::fs::write(folder.join("ca.pem"), &self.ca.pem).unwrap();
    }

    pub(crate) fn config(&self, port: u16) -> PartyConfig {
        let text = format!(
            "name = \"hospital-a\"\ncoordinator = \"https://127.0.0.1:{port}\"\nidentity = \"hospital-a\"\n\
             ledger = \"ledger.sqlite\"\n[data]\npath = \"a.csv\"\n[budget]\nepsilon = 8\ndelta = 1e-6\n[policy]\n\
             approve = \"automatic\"\nreply_delay_ms = 0\n"
        );
        let path = self.path("party.toml");
        std::fs::write(&path, text).unwrap();
        PartyConfig::load(&path).unwrap()
    }

    /// Starts the coordinator; sessions come out of the channel, and aborting the task stops it.
    pub(crate) async fn door(&self, listener: TcpListener) -> (mpsc::Receiver<Session>, JoinHandle<()>) {
        let (door, sessions) = mpsc::channel(4);
        let tls = IdentityDir::load(&self.path("hall")).unwrap().server_config().unwrap();
        let server = tonic::transport::Server::builder()
            .tls_config(tls)
            .unwrap()
            .add_service(LinkServer::new(Door(door, self.signed.get_or_init(|| self.job("alice", SPEC)).clone())))
            .serve_with_incoming(TcpListenerStream::new(listener));
        (sessions, tokio::spawn(async move { server.await.unwrap() }))
    }
}

/// Sets a key's permissions as its maker would: for the owner only.
fn close(key: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

pub(crate) fn validity() -> Validity {
    Validity { now: SystemTime::now(), days: 2 }
}

pub(crate) async fn next(sessions: &mut mpsc::Receiver<Session>) -> Session {
    timeout(PATIENCE, sessions.recv()).await.unwrap().unwrap()
}
