//! A session: attaches to the coordinator and passes its frames to the answering thread. When the stream breaks, the next
//! session begins.

use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use conclave_common::job::MAX_MESSAGE;
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::revoked::RevokedList;
use conclave_proto::tls::IdentityDir;
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::{self, coordinator_frame, party_frame::Body};
use conclave_proto::version::{End, ProtocolRange, agree};
use rand::RngExt;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};
use tonic::Streaming;
use tonic::metadata::MetadataMap;

use super::bounds::{out_of_bounds, strip_if_too_long};
use super::dial::Dial;
use super::frames::{Frames, Open};
use super::pauses::{After, Pauses};
use super::renewal::{POLL_EVERY, Renewal};
use crate::owner::permit::PermitError;
use crate::permits::Permits;
use crate::presence::Announcement;
use conclave_vault::answer::thread::{AnswerHandle, Command, Gone};
use conclave_vault::answer::{ReplySender, lapsed};
use conclave_vault::text::clip;

/// Maximum size of a frame from the coordinator, in bytes; a larger one ends the session.
///
/// It exceeds [`MAX_MESSAGE`], so that a query that is too long is refused by a reply. If it ended the session instead, the coordinator
/// would send it again after every new connection.
const MAX_FRAME: usize = 16 * MAX_MESSAGE;
/// Interval of heartbeats on both sides.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time without any frame after which the coordinator is considered gone.
const SILENCE: Duration = Duration::from_secs(45);
/// Maximum number of replies that wait for the network.
const OUTBOX: usize = 1024;
/// Time limit for sending the last answers of an abandoned session.
const FAREWELL: Duration = Duration::from_secs(2);
const SOFTWARE: &str = concat!("conclave-party ", env!("CARGO_PKG_VERSION"));

/// One party's connection to its coordinator.
pub(crate) struct Link {
    pub(crate) dial: Dial,
    pub(crate) answers: AnswerHandle,
    /// Written when the party is attached for the first time.
    pub(crate) ready_file: Option<PathBuf>,
    /// Announces whether this party is attached.
    pub(crate) presence: Announcement,
    /// The ends of the owner's permits.
    pub(crate) permits: Permits,
}

impl Link {
    /// Keeps the link up until `stop` turns true; returns `Gone` if the answering thread ends first.
    pub(crate) async fn keep(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), Gone> {
        let mut pauses = Pauses::new();
        let mut last_error = String::new();
        loop {
            let (fault, after) = match self.session(stop).await {
                Ended::Gone => return Err(Gone),
                Ended::Stopped => return Ok(()),
                Ended::Renewed => {
                    self.presence.set_attached(false);
                    last_error.clear();
                    tracing::info!("the certificate has been renewed: attaching with the new one");
                    continue;
                }
                Ended::Fault(fault) => (fault, After::Failure),
                Ended::Lost { fault, settled } => {
                    self.presence.set_attached(false);
                    last_error.clear();
                    // A coordinator that accepts a party and drops it at once must not be redialled without a growing pause.
                    (fault, if settled { After::Loss } else { After::Failure })
                }
            };
            let lasting = matches!(fault.code, ErrorCode::Unauthenticated | ErrorCode::InvalidInput | ErrorCode::Policy);
            let line = clip(&fault.to_string(), 600);
            let coordinator = &self.dial.coordinator;
            if last_error == line {
                tracing::debug!("still not attached: {line}");
            } else if lasting {
                tracing::error!("not attached to {coordinator}, and retrying will not help: {line}");
            } else {
                tracing::warn!("not attached to {coordinator}, retrying: {line}");
            }
            last_error = line;
            let after = if lasting { After::Lasting } else { after };
            tokio::select! {
                () = sleep(pauses.next(after, rand::rng().random())) => {}
                () = stop_requested(stop) => return Ok(()),
            }
        }
    }

    async fn session(&mut self, stop: &mut watch::Receiver<bool>) -> Ended {
        let (outbox, frames) = mpsc::channel(OUTBOX);
        let (open, frames) = Frames::of(frames);
        let attach = tokio::select! {
            attach = self.attach(&outbox, frames) => attach,
            () = stop_requested(stop) => return Ended::Stopped,
        };
        let Attached { mut inbound, revoked, identity, date } = match attach {
            Ok(attached) => attached,
            Err(fault) => return Ended::Fault(fault),
        };
        let mut stage = Stage::Connecting;
        let mut renewal = Renewal::of(identity);
        let (mut poll, mut beat) = (every(POLL_EVERY), every(HEARTBEAT));
        let (presence, answers, mut sequence) = (self.presence.clone(), self.answers.clone(), 0);
        let mut send_heartbeat = || {
            sequence += 1;
            presence.set_replies(answers.times().counts());
            // A full outbox already contains frames that show the party is alive.
            let _ = outbox.try_send(frame(Body::Heartbeat(v1::Heartbeat { sequence })));
        };
        let mut heard = Instant::now();
        loop {
            let next = tokio::select! {
                () = stop_requested(stop) => {
                    let _ = timeout(FAREWELL, self.farewell(open, inbound)).await;
                    return Ended::Stopped;
                }
                _ = beat.tick() => {
                    stage = stage.after_heartbeat();
                    send_heartbeat();
                    continue;
                }
                _ = poll.tick() => {
                    if renewal.poll(&self.dial) {
                        let _ = timeout(FAREWELL, self.farewell(open, inbound)).await;
                        return Ended::Renewed;
                    }
                    if self.dial.revoked().ok().as_ref() == Some(&revoked) {
                        continue;
                    }
                    // A new session checks the coordinator's certificate again.
                    Err(lost("the list of revoked certificates has changed".into()))
                }
                () = sleep_until(heard + SILENCE) => Err(lost(format!("no frame received for {} s", SILENCE.as_secs()))),
                next = inbound.message() => match next {
                    Ok(Some(frame)) => Ok(frame),
                    Ok(None) => Err(lost("the coordinator ended the connection".into())),
                    Err(status) => Err(from_status(&status)),
                },
            };
            let step = match next {
                Ok(frame) => {
                    let take = self.take(frame, date, Instant::now().into_std(), &outbox, &mut stage);
                    let step = with_heartbeats(take, &mut beat, &mut send_heartbeat).await;
                    // The time in which a full queue held the frame back is no silence of the coordinator's.
                    heard = Instant::now();
                    step
                }
                Err(fault) => Ok(Err(fault)),
            };
            match step {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => return stage.ended(fault),
                Err(Gone) => return Ended::Gone,
            }
        }
    }

    async fn attach(&self, outbox: &ReplySender, frames: Frames) -> Result<Attached, Fault> {
        let identity = self.dial.load()?;
        let (channel, revoked) = self.dial.connect_as(&identity).await?;
        outbox
            .try_send(frame(Body::Hello(ProtocolRange::SUPPORTED.hello(SOFTWARE))))
            .map_err(|_| lost("the connection broke immediately".into()))?;
        let mut client = LinkClient::new(channel).max_decoding_message_size(MAX_FRAME);
        let attach = async { client.attach(frames).await };
        match timeout(HEARTBEAT, attach).await {
            Ok(Ok(response)) => {
                let date = date_of(response.metadata());
                self.presence.set_clock(date);
                Ok(Attached { inbound: response.into_inner(), revoked, identity, date })
            }
            Ok(Err(status)) => Err(from_status(&status)),
            Err(_) => Err(lost(format!("no welcome received within {} s", HEARTBEAT.as_secs()))),
        }
    }

    /// Finishes the current answers, sends them, and waits for the coordinator to hang up.
    async fn farewell(&self, open: Open, mut inbound: Streaming<v1::CoordinatorFrame>) {
        self.answers.flush().await;
        drop(open);
        while let Ok(Some(_)) = inbound.message().await {}
    }

    /// Handles one frame; the inner error ends the session.
    async fn take(
        &mut self,
        frame: v1::CoordinatorFrame,
        date: Option<SystemTime>,
        received: std::time::Instant,
        outbox: &ReplySender,
        stage: &mut Stage,
    ) -> Result<Result<(), Fault>, Gone> {
        use coordinator_frame::Body;
        match frame.body {
            Some(Body::Welcome(welcome)) => {
                // A coordinator welcomes with a shared protocol; otherwise it is treated as speaking only the announced one.
                let coordinator = End { software: &welcome.software, protocols: ProtocolRange::only(welcome.protocol) };
                if let Err(fault) = agree(coordinator, End { software: SOFTWARE, protocols: ProtocolRange::SUPPORTED }) {
                    return Ok(Err(fault));
                }
                // Before any job: the welcome may lock the ledger.
                self.answers.send(Command::Welcome(welcome.protocol, welcome.head, date)).await?;
                if *stage == Stage::Connecting {
                    *stage = Stage::Attached;
                    tracing::info!("attached to {}", self.dial.coordinator);
                    self.presence.set_attached(true);
                    self.ready();
                }
            }
            Some(_) if *stage == Stage::Connecting => return Ok(Err(lost("it sent a frame before its welcome".into()))),
            // Checked before the frame is queued, since a reply is as long as its query asks.
            Some(body) if out_of_bounds(&body) => {
                return Ok(Err(lost("it sent a message that no coordinator of this protocol sends".into())));
            }
            Some(Body::Query(query)) => {
                *stage = Stage::Settled;
                if let Err(why) = self.permits.check(&query.job) {
                    self.end_lapsed().await?;
                    // A full outbox holds frames that are newer than the coordinator's wait for this one.
                    let _ = outbox.try_send(self.refusal(query.job, &why));
                    return Ok(Ok(()));
                }
                self.answers.send(Command::Query(strip_if_too_long(query), received, outbox.clone())).await?;
            }
            Some(Body::OpenJob(open)) => self.answers.send(Command::Open(open, received, outbox.clone())).await?,
            Some(Body::Roster(piece)) => self.answers.send(Command::Roster(piece, outbox.clone())).await?,
            Some(Body::CloseJob(close)) => self.answers.send(Command::Close(close)).await?,
            Some(Body::AskBudget(ask)) => self.answers.send(Command::AskBudget(ask, outbox.clone())).await?,
            Some(Body::Heartbeat(_)) | None => {}
        }
        Ok(Ok(()))
    }

    /// Has the jobs let go whose permit has ended.
    async fn end_lapsed(&self) -> Result<(), Gone> {
        for (job, why) in self.permits.lapsed() {
            self.answers.send(Command::Lapse(job, why.to_string())).await?;
        }
        Ok(())
    }

    /// Builds the refusal of a job whose permit has expired.
    fn refusal(&self, job: String, why: &PermitError) -> v1::PartyFrame {
        let fault = lapsed(&self.dial.party, &why.to_string());
        frame(Body::JobRefused(v1::JobRefused { job, code: fault.code.as_str().into(), reason: fault.message }))
    }

    fn ready(&mut self) {
        if let Some(path) = self.ready_file.take()
            && let Err(e) = std::fs::write(&path, format!("{}\n", self.dial.coordinator))
        {
            tracing::warn!("cannot write {}: {e}", path.display());
        }
    }
}

/// Stage of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not welcomed yet.
    Connecting,
    /// Attached.
    Attached,
    /// Attached, and queried or still connected at the next heartbeat.
    Settled,
}

impl Stage {
    /// Returns the stage after a heartbeat: an attached session is then settled.
    fn after_heartbeat(self) -> Self {
        if self == Self::Attached { Self::Settled } else { self }
    }

    fn ended(self, fault: Fault) -> Ended {
        match self {
            Self::Connecting => Ended::Fault(fault),
            Self::Attached => Ended::Lost { fault, settled: false },
            Self::Settled => Ended::Lost { fault, settled: true },
        }
    }
}

/// An accepted stream, with the identity and revocations it was opened with.
struct Attached {
    inbound: Streaming<v1::CoordinatorFrame>,
    revoked: Option<RevokedList>,
    identity: IdentityDir,
    /// The coordinator's clock when it accepted the stream.
    date: Option<SystemTime>,
}

/// Reads the coordinator's clock from the header of its reply.
fn date_of(reply: &MetadataMap) -> Option<SystemTime> {
    reply.get("date")?.to_str().ok().and_then(|date| httpdate::parse_http_date(date).ok())
}

/// Reasons for the end of a session.
enum Ended {
    /// Never attached.
    Fault(Fault),
    /// Attached, then lost.
    Lost { fault: Fault, settled: bool },
    /// Attached, and abandoned for a renewed certificate.
    Renewed,
    /// The party was asked to stop.
    Stopped,
    /// The answering thread is gone.
    Gone,
}

/// Ticks first after one period; a late tick delays the following ones.
fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Completes `work`, and calls `send` at every tick until then. A frame waits while the answering thread's queue is full, longer than the
/// coordinator waits for a heartbeat.
async fn with_heartbeats<T>(work: impl Future<Output = T>, beat: &mut Interval, mut send: impl FnMut()) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = beat.tick() => send(),
        }
    }
}

/// Completes once the party is asked to stop.
async fn stop_requested(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn frame(body: Body) -> v1::PartyFrame {
    v1::PartyFrame { body: Some(body) }
}

fn lost(why: String) -> Fault {
    Fault::new(ErrorCode::Unreachable, why)
}

#[cfg(test)]
#[path = "tests/permit.rs"]
mod permit_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame that waits for a place in a full queue does not hold the heartbeats back.
    #[tokio::test]
    async fn heartbeats_are_sent_while_the_queue_is_full() {
        let (queue, mut inbox) = mpsc::channel(1);
        queue.send(0).await.expect("a place");
        let (mut beats, mut beat) = (0, every(Duration::from_millis(5)));
        let sent = with_heartbeats(queue.send(1), &mut beat, || {
            beats += 1;
            if beats == 3 {
                assert_eq!(inbox.try_recv(), Ok(0), "the frame before");
            }
        });
        assert!(timeout(Duration::from_secs(60), sent).await.expect("heartbeats").is_ok());
        assert_eq!((beats, inbox.recv().await), (3, Some(1)));
    }
}
