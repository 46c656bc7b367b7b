//! `Link.Log`: a job's log as stored here (header, rounds, draws), for one of its parties to verify. `Jobs.Log`: the same without
//! the draws, for its analyst to repeat the inference.
//!
//! The log reveals nothing new: by assumption, each party faces all others as adversaries that collude, analysts included. All
//! releases in it are noised, and masked if the job's answers are.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use conclave_proto::convert::opened_to_wire;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::submission;
use conclave_proto::v1::job_log::Body;
use conclave_proto::v1::{JobLog, JobOpened, LogEnd, LogHeader, LogParty, LogRound, LogRounds};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::files;
use super::sending::{self, Readers};
use crate::registry::JobRegistry;
use crate::status::State;
use crate::store::{LogReader, LoggedRound, Store};

/// Releases in one message; with the overhead of each round, messages stay below 256 KiB. Only the header may be longer.
const PIECE: usize = (256 << 10) / 8 - 8;
/// Overhead of a round in a message (tags, lengths and its number), counted in releases.
const AROUND: usize = 4;

/// Channel for the messages of a log.
type Pieces = mpsc::Sender<Result<JobLog, Status>>;
/// A log that is being sent.
pub(super) type LogStream = ReceiverStream<Result<JobLog, Status>>;

/// Access to logs for one service.
#[derive(Debug)]
pub(super) struct Logs {
    job_registry: Arc<JobRegistry>,
    store: Store,
    stopping: watch::Receiver<bool>,
    readers: Readers,
}

impl Logs {
    /// Creates the access to logs for one service, whose readers have names of one kind.
    pub(super) fn new(job_registry: Arc<JobRegistry>, store: Store, stopping: watch::Receiver<bool>) -> Self {
        Self { job_registry, store, stopping, readers: Readers::new("logs", 1) }
    }

    /// A job's log, for a party that the job names.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`], also for a job that does not name the party; [`ErrorCode::Unreachable`] while the party reads
    /// another log.
    pub(super) fn for_party(&self, party: &str, job: &str) -> Result<LogStream, Fault> {
        let state = self.job_registry.status_for_party(job, party)?.state;
        self.stream(party, job, state, Some(self.job_registry.draws_of(job)))
    }

    /// A job's log without its draws, for its analyst.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`], also for another analyst's job; [`ErrorCode::Unreachable`] while the analyst reads another log.
    pub(super) fn for_analyst(&self, analyst: &str, job: &str) -> Result<LogStream, Fault> {
        let state = self.job_registry.watch(job, analyst)?.borrow().state;
        self.stream(analyst, job, state, None)
    }

    fn stream(&self, to: &str, job: &str, state: State, draws: Option<PathBuf>) -> Result<LogStream, Fault> {
        let place = self.readers.admit(to)?;
        let reader = self.store.reader(job).map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
        let source = LogSource { state, draws, reader };
        sending::stream(place, self.stopping.clone(), move |pieces| send(source, pieces))
    }
}

/// Reason why sending stops.
enum Halt {
    /// Nobody reads any more.
    Unread,
    /// The stored log can't be read further.
    Damage(String),
}

struct LogSource {
    /// State of the job before anything was read.
    state: State,
    /// Location of the draws, if they are sent too.
    draws: Option<PathBuf>,
    reader: LogReader,
}

/// Sends a log. Blocks: call it on a thread that may.
fn send(mut source: LogSource, pieces: &Pieces) {
    let end = match source.send(pieces) {
        Ok(draws_removed) => LogEnd { damage: String::new(), draws_removed },
        Err(Halt::Damage(damage)) => LogEnd { damage, draws_removed: false },
        Err(Halt::Unread) => return,
    };
    let _ = push(pieces, Body::End(end));
}

fn push(pieces: &Pieces, body: Body) -> Result<(), Halt> {
    pieces.blocking_send(Ok(JobLog { body: Some(body) })).map_err(|_| Halt::Unread)
}

fn damage(error: impl ToString) -> Halt {
    Halt::Damage(error.to_string())
}

impl LogSource {
    /// Sends everything but the end; returns true if the draws of an ended job are no longer there.
    fn send(&mut self, pieces: &Pieces) -> Result<bool, Halt> {
        let header = self.header()?;
        let parties = header.parties.len();
        push(pieces, Body::Header(header))?;
        loop {
            let rounds = self.reader.rounds(parties, 8 * PIECE).map_err(damage)?;
            if rounds.is_empty() {
                break;
            }
            for rounds in in_pieces(rounds) {
                push(pieces, Body::Rounds(LogRounds { rounds }))?;
            }
        }
        let Some(draws) = &self.draws else { return Ok(false) };
        let mut unread = false;
        let sent = files::each(draws, &mut |chunk| {
            unread = push(pieces, Body::Draws(chunk)).is_err();
            !unread
        });
        match sent {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(damage(format!("the draws can't be read: {e}"))),
            _ if unread => Err(Halt::Unread),
            // No file exists before every party has opened the job.
            Err(_) => Ok(self.state.has_ended()),
            Ok(()) => Ok(false),
        }
    }

    fn header(&self) -> Result<LogHeader, Halt> {
        let row = self.reader.job().map_err(damage)?.ok_or_else(|| damage("the job is not in the store"))?;
        // The store's state of an ended job counts, because it is written after all rounds.
        let state = State::parse_ended(&row.state).unwrap_or(if self.state.has_ended() { State::Paused } else { self.state });
        let opened = |metadata| JobOpened { job: String::new(), ..opened_to_wire("", metadata) };
        let parties =
            row.parties.iter().map(|p| LogParty { name: p.name.clone(), opened: p.metadata.as_ref().map(opened) }).collect();
        Ok(LogHeader {
            job: row.job.id,
            analyst: row.job.analyst,
            spec_toml: row.job.spec,
            submission: submission::decode(&row.job.submission),
            state: state.as_str().to_owned(),
            result_json: row.run.result.unwrap_or_default(),
            parties,
            roster: self.reader.roster().map_err(damage)?.unwrap_or_default(),
        })
    }
}

/// Groups rounds into messages: short ones together, and one of very many parties in several messages.
fn in_pieces(rounds: Vec<LoggedRound>) -> Vec<Vec<LogRound>> {
    let mut pieces: Vec<Vec<LogRound>> = Vec::new();
    let mut held = PIECE;
    for LoggedRound { iteration, releases, .. } in rounds {
        let releases = releases.concat();
        let parts = releases.chunks(PIECE - AROUND);
        let last = parts.len().saturating_sub(1);
        for (at, part) in parts.enumerate() {
            let round = LogRound { iteration, releases: part.to_vec(), more: at < last };
            match pieces.last_mut().filter(|_| held + part.len() + AROUND <= PIECE) {
                Some(piece) => piece.push(round),
                None => {
                    pieces.push(vec![round]);
                    held = 0;
                }
            }
            held += part.len() + AROUND;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use prost::Message;

    fn round(iteration: u64, parties: usize, queries: usize) -> LoggedRound {
        let releases = (0..parties).map(|p| (0..queries).map(|q| (p * queries + q) as i64 - 7).collect()).collect();
        LoggedRound { iteration, elapsed_us: 0, releases }
    }

    #[test]
    fn no_message_is_longer_than_promised_and_nothing_is_lost() {
        let mut rounds = vec![round(0, 3, 4), round(1, 10_000, 5), round(2, 3, 4), round(3, 96, 256)];
        rounds.extend((4..20_000).map(|iteration| round(iteration << 40, 1, 1)));
        let pieces = in_pieces(rounds.clone());
        assert!((4..8).contains(&pieces.len()));
        let mut whole: Vec<(u64, Vec<i64>)> = Vec::new();
        let mut more = false;
        for piece in pieces {
            assert!(LogRounds { rounds: piece.clone() }.encoded_len() <= 256 << 10);
            for part in piece {
                if more {
                    let last = whole.last_mut().unwrap();
                    assert_eq!(last.0, part.iteration);
                    last.1.extend(part.releases);
                } else {
                    whole.push((part.iteration, part.releases));
                }
                more = part.more;
            }
        }
        assert!(!more);
        let expected: Vec<_> = rounds.into_iter().map(|r| (r.iteration, r.releases.concat())).collect();
        assert!(whole == expected);
    }
}
