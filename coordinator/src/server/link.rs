//! `Link.Attach`: one stream per party, from its hello to its end. `Link.Log` is in [`super::log`].

use std::sync::Arc;
use std::time::Duration;

use conclave_common::text::shown;
use conclave_proto::convert::{answer_from_wire, opened_from_wire};
use conclave_proto::delay::AnswerDelay;
use conclave_proto::echo::Echo;
use conclave_proto::error::{self, ErrorCode, Fault};
use conclave_proto::identity::{self, Role};
use conclave_proto::revoked::serial_of;
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::link_server::Link;
use conclave_proto::v1::party_frame::Body as Said;
use conclave_proto::v1::{Heartbeat, Hello, JobRequest, PartyFrame, Welcome};
use conclave_proto::version::{End, ProtocolRange, agree};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::{Request, Response, Status, Streaming};

use super::log::{LogStream, Logs};
use super::stopping::stopped;
use crate::clock::now_ms;
use crate::driver::DriverContext;
use crate::party_event::Message;
use crate::registry::JobRegistry;
use crate::send_queue::{SendQueue, SendStream, send_queue};

/// Interval of the heartbeats that both ends send, whatever else they send: proxies cut idle connections.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Silence after which a stream counts as detached.
const SILENCE: Duration = Duration::from_secs(45);
/// Time limit for the hello of a new stream.
const HELLO: Duration = Duration::from_secs(10);
const SOFTWARE: &str = concat!("conclave-coordinator ", env!("CARGO_PKG_VERSION"));

/// The parties' service.
#[derive(Debug)]
pub(crate) struct LinkService {
    context: DriverContext,
    stopping: watch::Receiver<bool>,
    logs: Logs,
}

impl LinkService {
    pub(crate) fn new(job_registry: Arc<JobRegistry>, context: DriverContext, stopping: watch::Receiver<bool>) -> Self {
        Self { logs: Logs::new(job_registry, context.store.clone(), stopping.clone()), context, stopping }
    }

    /// Begins the session of a stream from this party.
    pub(crate) fn begin(&self, party: AttachingParty, incoming: Streaming<PartyFrame>) -> <Self as Link>::AttachStream {
        let (queue, outgoing) = send_queue();
        let (context, stopping) = (self.context.clone(), self.stopping.clone());
        let AttachingParty { name: party, serial } = party;
        let session = Session { party, serial, queue, incoming, context, stopping };
        tokio::spawn(session.run());
        outgoing
    }
}

/// A party that opens a stream, by its certificate, which has been checked.
#[derive(Debug)]
pub(crate) struct AttachingParty {
    /// Name.
    pub(crate) name: String,
    /// Serial number of the certificate, in hexadecimal; `None` for a simulated party.
    pub(crate) serial: Option<String>,
}

fn party_of<T>(request: &Request<T>) -> Result<String, Status> {
    Ok(identity::of_request(request)?.require(Role::Party)?.name)
}

#[tonic::async_trait]
impl Link for LinkService {
    type AttachStream = SendStream;
    type LogStream = LogStream;

    async fn attach(&self, request: Request<Streaming<PartyFrame>>) -> Result<Response<Self::AttachStream>, Status> {
        let name = party_of(&request)?;
        let certificates = request.peer_certs();
        let serial = certificates.as_ref().and_then(|chain| chain.first()).map(serial_of).transpose()?;
        Ok(Response::new(self.begin(AttachingParty { name, serial }, request.into_inner())))
    }

    async fn log(&self, request: Request<JobRequest>) -> Result<Response<Self::LogStream>, Status> {
        let party = party_of(&request)?;
        Ok(Response::new(self.logs.for_party(&party, &request.get_ref().job)?))
    }
}

/// Shortens a party's text, for display and storage, to one line of at most 2000 characters.
fn clip(words: &str) -> String {
    words.chars().map(shown).take(2000).collect()
}

struct Session {
    party: String,
    serial: Option<String>,
    queue: SendQueue,
    incoming: Streaming<PartyFrame>,
    context: DriverContext,
    stopping: watch::Receiver<bool>,
}

impl Session {
    async fn run(mut self) {
        let (hello, protocol) = match self.hello().await {
            Ok(agreed) => agreed,
            Err(fault) => {
                tracing::warn!(party = self.party, reason = %fault, "stream refused");
                self.queue.refuse(&fault);
                return;
            }
        };
        self.queue = self.queue.with_protocol(protocol);
        self.context.store.seen(&self.party, &hello.software, now_ms());
        self.context.party_registry.set_software(&self.party, &hello.software);
        self.store_certificate();
        self.queue.send(Body::Welcome(Welcome {
            protocol,
            software: SOFTWARE.to_owned(),
            head: self.context.party_registry.checkpoint(&self.party),
        }));
        let party_registry = Arc::clone(&self.context.party_registry);
        let mut place = party_registry.attach(&self.party, self.queue.clone());
        let _traced = tracing::info_span!(target: conclave_ops::EXPORTED, "attached", party = %self.party);
        tracing::info!(party = self.party, software = hello.software, protocol, "attached");
        if place.replaced_another {
            tracing::warn!(party = self.party, "attached a second time: the newer stream replaces the older one");
        }
        let why = tokio::select! {
            why = self.relay_frames() => why,
            _ = &mut place.replaced => {
                let message = "another stream with this party's certificate has replaced this one";
                self.queue.refuse(&Fault::new(ErrorCode::Conflict, message).at_party(self.party.clone()));
                "replaced".to_owned()
            }
        };
        party_registry.detach(&self.party, place.generation);
        tracing::info!(party = self.party, why, "detached");
    }

    /// Reads a party's hello and agrees on a protocol with it.
    async fn hello(&mut self) -> Result<(Hello, u32), Fault> {
        let at_party = |code, message: String| Fault::new(code, message).at_party(self.party.clone());
        let first = tokio::time::timeout(HELLO, self.incoming.message()).await;
        let frame = match first {
            Ok(Ok(Some(frame))) => frame,
            Ok(Ok(None)) => return Err(at_party(ErrorCode::InvalidInput, "the stream ended before a hello".to_owned())),
            Ok(Err(status)) => return Err(error::from_status(&status)),
            Err(_) => return Err(at_party(ErrorCode::Unreachable, format!("no hello within {} s", HELLO.as_secs()))),
        };
        match frame.body {
            Some(Said::Hello(hello)) => {
                let hello = Hello { software: clip(&hello.software), ..hello };
                let here = End { software: SOFTWARE, protocols: ProtocolRange::SUPPORTED };
                ProtocolRange::from_hello(&hello)
                    .and_then(|protocols| agree(here, End { software: &hello.software, protocols }))
                    .map(|protocol| (hello, protocol))
                    .map_err(|fault| fault.at_party(self.party.clone()))
            }
            _ => Err(at_party(ErrorCode::InvalidInput, "the first frame of a stream must be a hello".to_owned())),
        }
    }

    /// Passes frames on until the stream ends; returns the reason for its end.
    async fn relay_frames(&mut self) -> String {
        let mut beat = tokio::time::interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        let silence = tokio::time::sleep(SILENCE);
        tokio::pin!(silence);
        let mut sequence = 0;
        let queue = self.queue.clone();
        let ended = queue.ended();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                why = &mut ended => return why,
                frame = self.incoming.message() => match frame {
                    Ok(Some(frame)) => {
                        heard = Instant::now();
                        self.relay_frame(frame);
                    }
                    Ok(None) => return "the party closed the stream".to_owned(),
                    Err(status) => return format!("the connection broke: {}", error::from_status(&status)),
                },
                _ = beat.tick() => {
                    sequence += 1;
                    self.queue.send(Body::Heartbeat(Heartbeat { sequence }));
                }
                // Not reset with every frame: when it fires, the actual length of the silence is checked.
                () = &mut silence => match heard + SILENCE {
                    due if due <= Instant::now() => return format!("silent for {} s", SILENCE.as_secs()),
                    due => silence.as_mut().reset(due),
                },
                () = stopped(&mut self.stopping) => {
                    let fault = Fault::new(ErrorCode::Unreachable, "the coordinator is stopping: attach again later");
                    self.queue.refuse(&fault);
                    return "the coordinator is stopping".to_owned();
                }
            }
        }
    }

    fn store_certificate(&self) {
        if let Some(serial) = &self.serial
            && self.context.party_registry.note_certificate(&self.party, serial)
        {
            self.context.store.store_certificate(&self.party, serial);
        }
    }

    fn store_checkpoint(&self, checkpoint: &[u8]) {
        if self.context.party_registry.note_checkpoint(&self.party, checkpoint) {
            self.context.store.store_checkpoint(&self.party, checkpoint.to_vec());
        }
    }

    fn relay_frame(&self, frame: PartyFrame) {
        let (job, message) = match frame.body {
            Some(Said::Answer(answer)) => {
                let job = answer.job.clone();
                self.store_checkpoint(&answer.head);
                let message = match Echo::read(&answer).and_then(|echo| Ok((answer_from_wire(answer)?, echo))) {
                    Ok((answer, echo)) => Message::Answer { iteration: answer.iteration, outcome: answer.outcome, echo },
                    Err(fault) => Message::Malformed(fault.message),
                };
                (job, message)
            }
            Some(Said::JobOpened(opened)) => {
                self.store_checkpoint(&opened.head);
                let message = match opened_from_wire(&opened) {
                    Ok(metadata) => Message::Opened(metadata, AnswerDelay::read(&opened), opened.mask_key.clone().map(Box::new)),
                    Err(fault) => Message::Malformed(fault.message),
                };
                (opened.job, message)
            }
            Some(Said::JobPending(pending)) => {
                let held_up = !pending.reason.is_empty();
                let reason = clip(&pending.reason);
                let message = match (pending.full, held_up) {
                    (true, _) => Message::Full(reason),
                    (false, true) => Message::HeldUp(reason),
                    (false, false) => Message::Pending,
                };
                (pending.job, message)
            }
            Some(Said::JobRefused(refused)) => {
                let code = ErrorCode::parse(&refused.code).unwrap_or(ErrorCode::Internal);
                let fault = Fault::new(code, clip(&refused.reason)).at_party(self.party.clone());
                (refused.job, Message::Refused(fault))
            }
            Some(Said::RosterAccepted(accepted)) => (accepted.job.clone(), Message::RosterAccepted(accepted)),
            Some(Said::BudgetTold(reply)) => return self.context.party_registry.deliver_budget(&self.party, reply),
            Some(Said::Heartbeat(_) | Said::Hello(_)) | None => return,
        };
        if !self.context.party_registry.deliver(&self.party, &job, message) {
            tracing::debug!(party = self.party, job, "message about a job that does not run here");
        }
    }
}
