//! The coordinator without its sockets, its store's thread and its clock, for tests that inject faults between it and the
//! parties.
//!
//! Registries, drivers, sessions and store are the daemon's own. A test takes the place of the network: it passes in the frames
//! of each stream as bytes and takes out the coordinator's frames. Dropping the coordinator kills it.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use conclave_ops::clock::Clock;
use conclave_proto::error::Fault;
use conclave_proto::submission;
use conclave_proto::v1::{CoordinatorFrame, JobStatus, PartyFrame, Submission};
use http_body::Frame;
use prost::Message;
use tokio::sync::{mpsc, watch};
use tonic::codec::{DecodeBuf, Decoder};
use tonic::codegen::{Body, Bytes, tokio_stream::Stream};
use tonic::{Status, Streaming};

use crate::bounds::Bounds;
use crate::driver::{DriverContext, Limits};
use crate::party_registry::PartyRegistry;
use crate::registry::{JobRegistry, SignedSubmission};
use crate::server::{AttachingParty, LinkService};
use crate::store::deferred::{self, DeferredCommands};

/// Skews the wall clock of every coordinator on this thread, in milliseconds.
pub fn set_clock_skew_ms(skew: i64) {
    Clock::Coordinator.set_skew_ms(skew);
}

/// Frames that the coordinator sends on one stream.
pub type Downlink = Pin<Box<dyn Stream<Item = Result<CoordinatorFrame, Status>> + Send>>;

/// Sending end of a party's stream, for encoded [`PartyFrame`]s. Dropping it ends the stream.
#[derive(Debug)]
pub struct Uplink(mpsc::UnboundedSender<Result<Bytes, Status>>);

impl Uplink {
    /// Passes in a frame; returns false once the coordinator reads no more.
    pub fn send(&self, frame: &[u8]) -> bool {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&u32::try_from(frame.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(frame);
        self.0.send(Ok(bytes.into())).is_ok()
    }

    /// Breaks the connection.
    pub fn fail(self) {
        let _ = self.0.send(Err(Status::unavailable("the connection was cut")));
    }
}

struct Wire(mpsc::UnboundedReceiver<Result<Bytes, Status>>);

impl Body for Wire {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.0.poll_recv(context).map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }
}

struct Frames;

impl Decoder for Frames {
    type Item = PartyFrame;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<PartyFrame>, Status> {
        PartyFrame::decode(bytes).map(Some).map_err(|e| Status::internal(e.to_string()))
    }
}

/// A coordinator between two starts. Everything in it lives on the runtime that opened it.
#[derive(Debug)]
pub struct SimulatedCoordinator {
    context: DriverContext,
    job_registry: Arc<JobRegistry>,
    link: LinkService,
    deferred: Arc<DeferredCommands>,
    stop: watch::Sender<bool>,
}

impl SimulatedCoordinator {
    /// Opens the store and resumes its unfinished jobs.
    ///
    /// # Errors
    /// A message, if the store can't be opened.
    pub fn open(store: &Path, draws: &Path) -> Result<Self, String> {
        let (store, loaded, deferred) = deferred::open(store).map_err(|e| e.to_string())?;
        let context = DriverContext {
            party_registry: Arc::new(PartyRegistry::with_checkpoints(loaded.parties, loaded.checkpoints)),
            store,
            counters: Arc::default(),
            limits: Limits::default(),
        };
        let job_registry = JobRegistry::open(context.clone(), draws.to_owned(), loaded.jobs, false, Bounds::default());
        let (stop, stopping) = watch::channel(false);
        let link = LinkService::new(Arc::clone(&job_registry), context.clone(), stopping);
        Ok(Self { context, job_registry, link, deferred, stop })
    }

    /// Opens a new stream of a party.
    #[must_use]
    pub fn attach(&self, party: &str) -> (Uplink, Downlink) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let incoming = Streaming::new_request(Frames, Wire(receiver), None, None);
        (Uplink(sender), Box::pin(self.link.begin(AttachingParty { name: party.to_owned(), serial: None }, incoming)))
    }

    /// Commits the next `count` of the waiting writes; a barrier commits all.
    pub fn commit_next(&self, count: usize) {
        self.deferred.commit_next(count);
    }

    /// Submits a job, as the job service does; to be run on the coordinator's runtime.
    ///
    /// # Errors
    /// An invalid signature, and the errors of the job service.
    pub fn submit(
        &self,
        spec_toml: String,
        analyst: String,
        submission: Submission,
    ) -> impl Future<Output = Result<String, Fault>> + use<> {
        let job_registry = Arc::clone(&self.job_registry);
        async move {
            let job = submission::check(Some(&submission), &analyst, &spec_toml)?;
            job_registry.submit(spec_toml, &analyst, SignedSubmission { job, submission }).await
        }
    }

    /// Cancels a job; resolves once it has ended.
    ///
    /// # Errors
    /// The errors of the job service.
    pub fn cancel(&self, job: String, analyst: String) -> impl Future<Output = Result<JobStatus, Fault>> + use<> {
        let (job_registry, party_registry) = (Arc::clone(&self.job_registry), Arc::clone(&self.context.party_registry));
        async move { job_registry.cancel(&job, &analyst).await.map(|status| status.to_wire(&party_registry)) }
    }

    /// A job as its analyst sees it.
    ///
    /// # Errors
    /// The errors of the job service.
    pub fn status(&self, job: &str, analyst: &str) -> Result<JobStatus, Fault> {
        let status = self.job_registry.watch(job, analyst)?.borrow().clone();
        Ok(status.to_wire(&self.context.party_registry))
    }

    /// Stops as on SIGTERM.
    pub async fn shut_down(self) {
        self.job_registry.close().await;
        self.stop.send_replace(true);
        self.context.store.close();
    }
}
