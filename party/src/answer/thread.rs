//! The answering thread, and the channel by which the link reaches it.
//!
//! The thread ends when every [`Desk`] is dropped and what was in the channel is answered.

use std::thread::JoinHandle;

use conclave_proto::v1::{self, party_frame::Body};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;

use super::Answerer;

/// Messages that may wait for the one in hand; beyond, the link stops reading and the coordinator feels it.
const WAITING: usize = 64;

/// Where a session's replies go.
pub(crate) type Outbox = mpsc::Sender<v1::PartyFrame>;

enum Command {
    Open(v1::OpenJob, Outbox),
    Query(v1::Query, Outbox),
    Close(v1::CloseJob),
    Flush(oneshot::Sender<()>),
}

/// Takes messages in for the answering thread.
#[derive(Clone)]
pub(crate) struct Desk {
    commands: mpsc::Sender<Command>,
}

/// Starts the answering thread.
///
/// # Errors
/// Where the operating system gives no thread.
pub(crate) fn start(mut answerer: Answerer) -> std::io::Result<(Desk, JoinHandle<()>)> {
    let (commands, mut inbox) = mpsc::channel(WAITING);
    let thread = std::thread::Builder::new().name("answers".into()).spawn(move || {
        while let Some(command) = inbox.blocking_recv() {
            answerer.handle(command);
        }
    })?;
    Ok((Desk { commands }, thread))
}

/// The answering thread has ended; nothing will be answered any more.
#[derive(Debug)]
pub(crate) struct Gone;

impl Desk {
    pub(crate) async fn open(&self, request: v1::OpenJob, outbox: &Outbox) -> Result<(), Gone> {
        self.send(Command::Open(request, outbox.clone())).await
    }

    pub(crate) async fn query(&self, request: v1::Query, outbox: &Outbox) -> Result<(), Gone> {
        self.send(Command::Query(request, outbox.clone())).await
    }

    pub(crate) async fn close(&self, request: v1::CloseJob) -> Result<(), Gone> {
        self.send(Command::Close(request)).await
    }

    /// Waits until everything taken in before is answered.
    pub(crate) async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        if self.send(Command::Flush(done)).await.is_ok() {
            let _ = waiting.await;
        }
    }

    async fn send(&self, command: Command) -> Result<(), Gone> {
        self.commands.send(command).await.map_err(|_| Gone)
    }
}

impl Answerer {
    fn handle(&mut self, command: Command) {
        match command {
            Command::Query(request, outbox) => reply(&outbox, Body::Answer(self.answer(request))),
            Command::Open(request, outbox) => {
                let job = request.job.clone();
                reply(
                    &outbox,
                    match self.open(&request) {
                        Ok(records) => Body::JobOpened(v1::JobOpened { job, records }),
                        Err(fault) => {
                            Body::JobRefused(v1::JobRefused { job, code: fault.code.as_str().into(), reason: fault.to_string() })
                        }
                    },
                );
            }
            // A failure has been logged, and the ledger answers no more.
            Command::Close(request) => drop(self.close(&request.job, &request.reason)),
            Command::Flush(done) => drop(done.send(())),
        }
    }
}

/// A reply that can't go is dropped: it is in the ledger, and the coordinator asks again.
fn reply(outbox: &Outbox, body: Body) {
    if let Err(TrySendError::Full(_)) = outbox.try_send(v1::PartyFrame { body: Some(body) }) {
        tracing::warn!("the coordinator does not take replies; one was dropped and can be asked for again");
    }
}
