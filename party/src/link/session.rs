//! A session attaches to the coordinator and hands its frames to the answering thread; when the stream
//! breaks, the next begins.

use std::path::PathBuf;
use std::time::Duration;

use conclave_proto::convert::MAX_PROPOSALS;
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::identity::valid_name;
use conclave_proto::revoked::RevokedList;
use conclave_proto::roster;
use conclave_proto::tls::IdentityDir;
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::{self, coordinator_frame, party_frame::Body};
use conclave_proto::version::{End, ProtocolRange, agree};
use rand::RngExt;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};
use tonic::Streaming;

use super::dial::Dial;
use super::frames::{Frames, Open};
use super::pauses::{After, Pauses};
use super::renewal::{LOOK, Renewal};
use crate::presence::Announcement;
use conclave_vault::answer::thread::{AnswerHandle, Gone};
use conclave_vault::answer::{MAX_JOB_ID, ReplySender};
use conclave_vault::text::clip;

/// Longest frame taken from a coordinator, in bytes: a job file has at most 64 KiB, a query of 256 chains far less.
const MAX_FRAME: usize = 1 << 20;
/// Both ends beat this often.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After this long without any frame the coordinator is taken for gone.
const SILENCE: Duration = Duration::from_secs(45);
/// Replies that may wait for the network.
const OUTBOX: usize = 1024;
/// How long the last answers may take to leave once a session is given up.
const FAREWELL: Duration = Duration::from_secs(2);
const SOFTWARE: &str = concat!("conclave-party ", env!("CARGO_PKG_VERSION"));

/// One party's connection to its coordinator.
pub(crate) struct Link {
    pub(crate) dial: Dial,
    pub(crate) answers: AnswerHandle,
    /// Written when the party is attached for the first time.
    pub(crate) ready_file: Option<PathBuf>,
    /// Says whether this party is attached.
    pub(crate) presence: Announcement,
}

impl Link {
    /// Keeps the link up until `stop` turns true; `Gone` when the answering thread ends before.
    pub(crate) async fn keep(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), Gone> {
        let mut pauses = Pauses::new();
        let mut said = String::new();
        loop {
            let (fault, after) = match self.session(stop).await {
                Ended::Gone => return Err(Gone),
                Ended::Stopped => return Ok(()),
                Ended::Renewed => {
                    self.presence.set_attached(false);
                    said.clear();
                    tracing::info!("the certificate has been renewed: attaching with the new one");
                    continue;
                }
                Ended::Fault(fault) => (fault, After::Failure),
                Ended::Lost { fault, settled } => {
                    self.presence.set_attached(false);
                    said.clear();
                    // One that takes a party in and drops it at once is not to be tried at once for ever.
                    (fault, if settled { After::Loss } else { After::Failure })
                }
            };
            let lasting = matches!(fault.code, ErrorCode::Unauthenticated | ErrorCode::InvalidInput | ErrorCode::Policy);
            let line = clip(&fault.to_string(), 600);
            let coordinator = &self.dial.coordinator;
            if said == line {
                tracing::debug!("still not attached: {line}");
            } else if lasting {
                tracing::error!("not attached to {coordinator}, and retrying will not mend it: {line}");
            } else {
                tracing::warn!("not attached to {coordinator}, retrying: {line}");
            }
            said = line;
            let after = if lasting { After::Lasting } else { after };
            tokio::select! {
                () = sleep(pauses.next(after, rand::rng().random())) => {}
                () = told(stop) => return Ok(()),
            }
        }
    }

    async fn session(&mut self, stop: &mut watch::Receiver<bool>) -> Ended {
        let (outbox, frames) = mpsc::channel(OUTBOX);
        let (open, frames) = Frames::of(frames);
        let attach = tokio::select! {
            attach = self.attach(&outbox, frames) => attach,
            () = told(stop) => return Ended::Stopped,
        };
        let Attached { mut inbound, revoked, identity } = match attach {
            Ok(attached) => attached,
            Err(fault) => return Ended::Fault(fault),
        };
        let mut standing = Standing::Stranger;
        let mut renewal = Renewal::of(identity);
        let (mut look, mut beat) = (every(LOOK), every(HEARTBEAT));
        let mut sequence = 0;
        let mut heard = Instant::now();
        loop {
            let next = tokio::select! {
                () = told(stop) => {
                    let _ = timeout(FAREWELL, self.farewell(open, inbound)).await;
                    return Ended::Stopped;
                }
                _ = beat.tick() => {
                    standing = standing.after_a_beat();
                    sequence += 1;
                    self.beat(&outbox, sequence);
                    continue;
                }
                _ = look.tick() => {
                    if renewal.look(&self.dial) {
                        let _ = timeout(FAREWELL, self.farewell(open, inbound)).await;
                        return Ended::Renewed;
                    }
                    if self.dial.revoked().ok().as_ref() == Some(&revoked) {
                        continue;
                    }
                    // The coordinator is asked for its certificate again.
                    Err(lost("the list of revoked certificates has changed".into()))
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
                    self.take(frame, heard.into_std(), &outbox, &mut standing).await
                }
                Err(fault) => Ok(Err(fault)),
            };
            match step {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => return standing.ended(fault),
                Err(Gone) => return Ended::Gone,
            }
        }
    }

    /// Shows that this party lives.
    fn beat(&self, outbox: &ReplySender, sequence: u64) {
        self.presence.set_replies(self.answers.reply_counts());
        // A full outbox holds frames enough to show it.
        let _ = outbox.try_send(frame(Body::Heartbeat(v1::Heartbeat { sequence })));
    }

    async fn attach(&self, outbox: &ReplySender, frames: Frames) -> Result<Attached, Fault> {
        let identity = self.dial.load()?;
        let (channel, revoked) = self.dial.connect_as(&identity).await?;
        outbox
            .try_send(frame(Body::Hello(ProtocolRange::SUPPORTED.hello(SOFTWARE))))
            .map_err(|_| lost("the connection broke at once".into()))?;
        let mut client = LinkClient::new(channel).max_decoding_message_size(MAX_FRAME);
        let attach = async { client.attach(frames).await };
        match timeout(HEARTBEAT, attach).await {
            Ok(Ok(response)) => Ok(Attached { inbound: response.into_inner(), revoked, identity }),
            Ok(Err(status)) => Err(from_status(&status)),
            Err(_) => Err(lost(format!("no welcome within {} s", HEARTBEAT.as_secs()))),
        }
    }

    /// Finishes what is in hand, lets it leave, and waits for the coordinator to hang up.
    async fn farewell(&self, open: Open, mut inbound: Streaming<v1::CoordinatorFrame>) {
        self.answers.flush().await;
        drop(open);
        while let Ok(Some(_)) = inbound.message().await {}
    }

    /// Handles one frame; the inner error ends the session.
    async fn take(
        &mut self,
        frame: v1::CoordinatorFrame,
        received: std::time::Instant,
        outbox: &ReplySender,
        standing: &mut Standing,
    ) -> Result<Result<(), Fault>, Gone> {
        use coordinator_frame::Body;
        match frame.body {
            Some(Body::Welcome(welcome)) => {
                // A coordinator welcomes with a protocol that both speak; one that doesn't is heard as one that speaks no other.
                let coordinator = End { software: &welcome.software, protocols: ProtocolRange::only(welcome.protocol) };
                if let Err(fault) = agree(coordinator, End { software: SOFTWARE, protocols: ProtocolRange::SUPPORTED }) {
                    return Ok(Err(fault));
                }
                // Before any job: the ledger may have to be locked.
                self.answers.welcome(welcome.protocol, welcome.head).await?;
                if *standing == Standing::Stranger {
                    *standing = Standing::Welcome;
                    tracing::info!("attached to {}", self.dial.coordinator);
                    self.presence.set_attached(true);
                    self.ready();
                }
            }
            Some(_) if *standing == Standing::Stranger => return Ok(Err(lost("it spoke before it said welcome".into()))),
            // Before anything is queued or answered at the length of what was asked.
            Some(body) if out_of_bounds(&body) => {
                return Ok(Err(lost("it sent a message that no coordinator of this protocol sends".into())));
            }
            Some(Body::Query(query)) => {
                *standing = Standing::Settled;
                self.answers.query(query, received, outbox).await?;
            }
            Some(Body::OpenJob(open)) => self.answers.open(open, received, outbox).await?,
            Some(Body::Roster(piece)) => self.answers.roster(piece, outbox).await?,
            Some(Body::CloseJob(close)) => self.answers.close(close).await?,
            Some(Body::AskBudget(ask)) => self.answers.ask_budget(ask, outbox).await?,
            Some(Body::Heartbeat(_)) | None => {}
        }
        Ok(Ok(()))
    }

    fn ready(&mut self) {
        if let Some(path) = self.ready_file.take()
            && let Err(e) = std::fs::write(&path, format!("{}\n", self.dial.coordinator))
        {
            tracing::warn!("cannot write {}: {e}", path.display());
        }
    }
}

/// How far a session has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Not welcomed yet.
    Stranger,
    /// Attached.
    Welcome,
    /// Attached, and asked for an answer or still there a heartbeat later.
    Settled,
}

impl Standing {
    /// A party that is still attached when it beats is settled.
    fn after_a_beat(self) -> Self {
        if self == Self::Welcome { Self::Settled } else { self }
    }

    fn ended(self, fault: Fault) -> Ended {
        match self {
            Self::Stranger => Ended::Fault(fault),
            Self::Welcome => Ended::Lost { fault, settled: false },
            Self::Settled => Ended::Lost { fault, settled: true },
        }
    }
}

/// A stream that the coordinator has taken, and what it was opened with.
struct Attached {
    inbound: Streaming<v1::CoordinatorFrame>,
    revoked: Option<RevokedList>,
    identity: IdentityDir,
}

/// How a session ended.
enum Ended {
    /// Never attached.
    Fault(Fault),
    /// Attached, then lost.
    Lost { fault: Fault, settled: bool },
    /// Attached, and given up for a renewed certificate.
    Renewed,
    /// The party was told to stop.
    Stopped,
    /// The answering thread is gone.
    Gone,
}

/// Ticks first after one period; a tick that comes late puts off those after it.
fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
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
        Body::Roster(piece) => piece.job.len() > MAX_JOB_ID || !roster::is_in_bounds(piece),
        Body::CloseJob(close) => close.job.len() > MAX_JOB_ID,
        Body::AskBudget(ask) => !valid_name(&ask.analyst),
        Body::Welcome(_) | Body::Heartbeat(_) => false,
    }
}

fn frame(body: Body) -> v1::PartyFrame {
    v1::PartyFrame { body: Some(body) }
}

fn lost(why: String) -> Fault {
    Fault::new(ErrorCode::Unreachable, why)
}
