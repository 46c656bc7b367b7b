//! The link: this party dials the coordinator, holds one stream, and dials again whenever it breaks.

use std::path::PathBuf;
use std::time::Duration;

use conclave_proto::convert::MAX_PROPOSALS;
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::identity::Role;
use conclave_proto::revoked::{RevokedFile, RevokedList};
use conclave_proto::tls::{self, IdentityDir, ProxySettings};
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::{self, coordinator_frame, party_frame::Body};
use conclave_proto::version::{End, Spoken, agree};
use rand::RngExt;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::answer::MAX_JOB_ID;
use crate::answer::thread::{Desk, Gone, Outbox};
use crate::presence::Announcement;
use crate::text::clip;

/// Longest frame taken from a coordinator, in bytes: a job file has at most 64 KiB, a query of 256 chains far less.
const MAX_FRAME: usize = 1 << 20;
/// Both ends beat this often.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After this long without any frame the coordinator is taken for gone.
const SILENCE: Duration = Duration::from_secs(45);
/// Replies that may wait for the network.
const OUTBOX: usize = 1024;
/// First and last pause between two attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// Pause where only a person can mend what is wrong.
const LONG_PAUSE: Duration = Duration::from_secs(30);
/// How long the last answers may take to leave once the party is told to stop.
const FAREWELL: Duration = Duration::from_secs(2);
const SOFTWARE: &str = concat!("conclave-party ", env!("CARGO_PKG_VERSION"));

/// One party's connection to its coordinator.
pub(crate) struct Link {
    pub(crate) party: String,
    pub(crate) coordinator: String,
    pub(crate) proxy: ProxySettings,
    pub(crate) identity: PathBuf,
    pub(crate) key: PathBuf,
    /// Certificates that count for nothing, a coordinator's among them.
    pub(crate) revoked: Option<RevokedFile>,
    pub(crate) desk: Desk,
    /// Written when the party is attached for the first time.
    pub(crate) ready_file: Option<PathBuf>,
    /// Says whether this party is attached.
    pub(crate) presence: Announcement,
}

impl Link {
    /// Keeps the link up until `stop` turns true; `Gone` when the answering thread ends before.
    pub(crate) async fn keep(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), Gone> {
        let mut pause = FIRST_PAUSE;
        let mut said = String::new();
        loop {
            let started = Instant::now();
            let fault = match self.session(stop).await {
                Ended::Gone => return Err(Gone),
                Ended::Stopped => return Ok(()),
                Ended::Fault(fault) => fault,
                Ended::Lost(fault) => {
                    self.presence.set_attached(false);
                    // It was attached: begin again with short pauses.
                    pause = FIRST_PAUSE;
                    said.clear();
                    fault
                }
            };
            let lasting = matches!(fault.code, ErrorCode::Unauthenticated | ErrorCode::InvalidInput | ErrorCode::Policy);
            let line = clip(&fault.to_string(), 600);
            if said == line {
                tracing::debug!("still not attached: {line}");
            } else if lasting {
                tracing::error!("not attached to {}, and retrying will not mend it: {line}", self.coordinator);
            } else {
                tracing::warn!("not attached to {}, retrying: {line}", self.coordinator);
            }
            said = line;
            let next = if lasting { LONG_PAUSE } else { pause };
            tokio::select! {
                () = sleep(next.mul_f64(rand::rng().random_range(0.5..1.0))) => {}
                () = told(stop) => return Ok(()),
            }
            pause = if started.elapsed() > LONG_PAUSE { FIRST_PAUSE } else { (pause * 2).min(LAST_PAUSE) };
        }
    }

    async fn session(&mut self, stop: &mut watch::Receiver<bool>) -> Ended {
        let (outbox, frames) = mpsc::channel(OUTBOX);
        let attach = tokio::select! {
            attach = self.attach(&outbox, frames) => attach,
            () = told(stop) => return Ended::Stopped,
        };
        let (mut inbound, revoked) = match attach {
            Ok(attached) => attached,
            Err(fault) => return Ended::Fault(fault),
        };
        let mut attached = false;
        let mut beat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sequence = 0;
        let mut heard = Instant::now();
        loop {
            let next = tokio::select! {
                () = told(stop) => {
                    let _ = timeout(FAREWELL, self.farewell(outbox, inbound)).await;
                    return Ended::Stopped;
                }
                _ = beat.tick() => {
                    // The coordinator is asked for its certificate again.
                    if self.revoked().ok() != Some(revoked.clone()) {
                        return Ended::Lost(lost("the list of revoked certificates has changed".into()));
                    }
                    sequence += 1;
                    self.presence.set_replies(self.desk.reply_counts());
                    // A full outbox holds frames enough to show that this party lives.
                    let _ = outbox.try_send(frame(Body::Heartbeat(v1::Heartbeat { sequence })));
                    continue;
                }
                () = sleep_until(heard + SILENCE) => Err(lost(format!("no word for {} s", SILENCE.as_secs()))),
                next = inbound.message() => match next {
                    Ok(Some(frame)) => Ok(frame),
                    Ok(None) => Err(lost("the coordinator ended the connection".into())),
                    Err(status) => Err(from_status(&status)),
                },
            };
            let step = match next {
                Ok(frame) => {
                    heard = Instant::now();
                    self.take(frame, heard.into_std(), &outbox, &mut attached).await
                }
                Err(fault) => Ok(Err(fault)),
            };
            match step {
                Ok(Ok(())) => {}
                Ok(Err(fault)) if attached => return Ended::Lost(fault),
                Ok(Err(fault)) => return Ended::Fault(fault),
                Err(Gone) => return Ended::Gone,
            }
        }
    }

    async fn attach(
        &self,
        outbox: &Outbox,
        frames: mpsc::Receiver<v1::PartyFrame>,
    ) -> Result<(Streaming<v1::CoordinatorFrame>, Option<RevokedList>), Fault> {
        // Read again at every attempt: a renewed certificate needs no restart.
        let identity = load_identity(&self.identity, &self.key, &self.party)?;
        let revoked = self.revoked()?;
        let channel = tls::connect_through(&self.coordinator, &identity, &self.proxy, revoked.clone()).await?;
        outbox
            .try_send(frame(Body::Hello(Spoken::HERE.hello(SOFTWARE))))
            .map_err(|_| lost("the connection broke at once".into()))?;
        let mut client = LinkClient::new(channel).max_decoding_message_size(MAX_FRAME);
        let attach = async { client.attach(ReceiverStream::new(frames)).await };
        match timeout(HEARTBEAT, attach).await {
            Ok(Ok(response)) => Ok((response.into_inner(), revoked)),
            Ok(Err(status)) => Err(from_status(&status)),
            Err(_) => Err(lost(format!("no welcome within {} s", HEARTBEAT.as_secs()))),
        }
    }

    /// The list of revoked certificates as it stands now; `None` where the owner keeps none.
    fn revoked(&self) -> Result<Option<RevokedList>, Fault> {
        self.revoked.as_ref().map(RevokedFile::read).transpose()
    }

    /// Finishes what is in hand, lets it leave, and waits for the coordinator to hang up.
    async fn farewell(&self, outbox: Outbox, mut inbound: Streaming<v1::CoordinatorFrame>) {
        self.desk.flush().await;
        drop(outbox);
        while let Ok(Some(_)) = inbound.message().await {}
    }

    /// Handles one frame; the inner error ends the session.
    async fn take(
        &mut self,
        frame: v1::CoordinatorFrame,
        received: std::time::Instant,
        outbox: &Outbox,
        attached: &mut bool,
    ) -> Result<Result<(), Fault>, Gone> {
        use coordinator_frame::Body;
        match frame.body {
            Some(Body::Welcome(welcome)) => {
                // A coordinator welcomes with a protocol that both speak; one that doesn't is heard as one that speaks no other.
                let coordinator = End { software: &welcome.software, speaks: Spoken::only(welcome.protocol) };
                if let Err(fault) = agree(coordinator, End { software: SOFTWARE, speaks: Spoken::HERE }) {
                    return Ok(Err(fault));
                }
                // Before any job: the ledger may have to be locked.
                self.desk.show_head(welcome.head).await?;
                if !*attached {
                    *attached = true;
                    tracing::info!("attached to {}", self.coordinator);
                    self.presence.set_attached(true);
                    self.ready();
                }
            }
            Some(_) if !*attached => return Ok(Err(lost("it spoke before it said welcome".into()))),
            // Before anything is queued or answered at the length of what was asked.
            Some(body) if out_of_bounds(&body) => {
                return Ok(Err(lost("it sent a message that no coordinator of this protocol sends".into())));
            }
            Some(Body::Query(query)) => self.desk.query(query, received, outbox).await?,
            Some(Body::OpenJob(open)) => self.desk.open(open, received, outbox).await?,
            Some(Body::CloseJob(close)) => self.desk.close(close).await?,
            Some(Body::Heartbeat(_)) | None => {}
        }
        Ok(Ok(()))
    }

    fn ready(&mut self) {
        if let Some(path) = self.ready_file.take()
            && let Err(e) = std::fs::write(&path, format!("{}\n", self.coordinator))
        {
            tracing::warn!("cannot write {}: {e}", path.display());
        }
    }
}

/// How a session ended.
enum Ended {
    /// Never attached.
    Fault(Fault),
    /// Attached, then lost.
    Lost(Fault),
    /// The party was told to stop.
    Stopped,
    /// The answering thread is gone.
    Gone,
}

/// Loads the identity folder and checks that it is this party's.
pub(crate) fn load_identity(folder: &std::path::Path, key: &std::path::Path, party: &str) -> Result<IdentityDir, Fault> {
    let identity = IdentityDir::load_with_key(folder, key)?;
    identity.require(Role::Party)?;
    let name = &identity.identity().name;
    if name != party {
        return Err(Fault::new(
            ErrorCode::InvalidInput,
            format!(
                "{}: the certificate is party {name:?}'s, and the configuration's name is {party:?}; use one name",
                folder.display()
            ),
        ));
    }
    Ok(identity)
}

/// Completes once the party is told to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Whether a frame is larger than any that a coordinator has reason to send.
fn out_of_bounds(body: &coordinator_frame::Body) -> bool {
    use coordinator_frame::Body;
    match body {
        Body::Query(query) => query.job.len() > MAX_JOB_ID || query.proposals.len() > MAX_PROPOSALS,
        Body::OpenJob(open) => open.job.len() > MAX_JOB_ID,
        Body::CloseJob(close) => close.job.len() > MAX_JOB_ID,
        Body::Welcome(_) | Body::Heartbeat(_) => false,
    }
}

fn frame(body: Body) -> v1::PartyFrame {
    v1::PartyFrame { body: Some(body) }
}

fn lost(why: String) -> Fault {
    Fault::new(ErrorCode::Unreachable, why)
}
