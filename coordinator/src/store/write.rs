//! The writing thread: it commits whatever has gathered in one group.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use conclave_common::query::PartyMetadata;
use conclave_ops::place::Place;
use conclave_privacy::accounting::Adjacency;
use rusqlite::{Connection, params};

use super::command::{Command, JobEnd, NewJob};
use super::commits::Commits;
use super::error::{StoreError, failed_first};
use super::wal::ShortLog;

/// Time for which rounds gather before they are committed together. The thread sleeps meanwhile, so that its log does not preempt
/// a fast chain on a small machine at every round.
const GATHER: Duration = Duration::from_millis(20);
/// Time without a write after which a long log is emptied.
const IDLE: Duration = Duration::from_secs(15);
/// Maximum number of commands in one transaction.
const GROUP: usize = 4096;

/// Commits commands until it receives `Close` or every handle is gone.
pub(super) fn serve(
    mut connection: Connection,
    queue: &Receiver<Command>,
    path: &Path,
    place: &Place,
    failure: &OnceLock<StoreError>,
    commits: &Commits,
) {
    let (mut open, mut log) = (true, ShortLog::of(path));
    while open {
        let first = match queue.recv_timeout(IDLE) {
            Ok(first) => first,
            // A reader may have gone since the last write.
            Err(RecvTimeoutError::Timeout) => {
                if failure.get().is_none() {
                    log.keep(&connection);
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let mut group = vec![first];
        open = gather(queue, &mut group);
        let mut barriers = Vec::new();
        let outcome = match failure.get() {
            Some(error) => Err(error.clone()),
            None => {
                let began = Instant::now();
                let committed = commit(&mut connection, &group);
                let took = began.elapsed();
                commits.seconds.observe(took.as_secs_f64());
                commits.latest.record([took]);
                committed
                    .map_err(|e| StoreError::Failed { path: path.to_owned(), message: e.to_string() })
                    // What went into a file that is no longer in its place is not recorded.
                    .and_then(|()| Ok(place.check()?))
                    .map_err(|error| failed_first(failure, error))
            }
        };
        for command in group {
            if let Command::Barrier(done) = command {
                barriers.push(done);
            }
        }
        for done in barriers {
            // The caller may have stopped waiting.
            let _ = done.send(outcome.clone());
        }
        if outcome.is_ok() {
            log.keep(&connection);
        }
    }
}

/// Adds the queued commands to `group`, after a pause if the first one is a round or a checkpoint. Returns false after `Close`.
fn gather(queue: &Receiver<Command>, group: &mut Vec<Command>) -> bool {
    if matches!(group[0], Command::Round { .. } | Command::Checkpoint { .. }) {
        std::thread::sleep(GATHER);
    }
    while !matches!(group.last(), Some(Command::Close)) {
        if group.len() >= GROUP {
            return true;
        }
        match queue.try_recv() {
            Ok(command) => group.push(command),
            Err(TryRecvError::Empty) => return true,
            Err(TryRecvError::Disconnected) => return false,
        }
    }
    false
}

pub(super) fn commit(connection: &mut Connection, group: &[Command]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let newest = newest_checkpoints(group);
    for (at, command) in group.iter().enumerate() {
        match command {
            Command::Job(job) => insert_job(&transaction, job)?,
            Command::Metadata { job, position, metadata } => set_metadata(&transaction, job, *position, metadata)?,
            Command::Round { job, iteration, elapsed_us, releases } => {
                transaction
                    .prepare_cached("INSERT INTO rounds SELECT key, ?2, ?3, ?4 FROM jobs WHERE id = ?1")?
                    .execute(params![&**job, *iteration as i64, *elapsed_us as i64, releases])?;
            }
            Command::Roster { job, roster } => {
                transaction.execute("INSERT INTO rosters SELECT key, ?2 FROM jobs WHERE id = ?1", params![&**job, roster])?;
            }
            Command::Waits { job, since_ms } => set_waits(&transaction, job, since_ms)?,
            Command::JobEnd(ended) => end_job(&transaction, ended)?,
            Command::Seen { party, software, at_ms } => {
                transaction
                    .prepare_cached(
                        "INSERT INTO parties VALUES (?1, ?3, ?3, ?2)
                         ON CONFLICT (name) DO UPDATE SET last_seen_ms = ?3, software = ?2",
                    )?
                    .execute(params![party, software, at_ms])?;
            }
            Command::Certificate { party, serial } => {
                transaction.execute("INSERT OR REPLACE INTO certificates VALUES (?1, ?2)", params![party, serial])?;
            }
            Command::Checkpoint { party, checkpoint } if newest.get(party.as_str()) == Some(&at) => {
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO heads VALUES (?1, ?2)")?
                    .execute(params![party, checkpoint])?;
            }
            Command::Checkpoint { .. } | Command::Barrier(_) | Command::Close => {}
        }
    }
    transaction.commit()
}

/// Index in a group of each party's last checkpoint: every answer brings one, and earlier ones would be replaced in the same
/// commit.
fn newest_checkpoints(group: &[Command]) -> HashMap<&str, usize> {
    let mut newest = HashMap::new();
    for (at, command) in group.iter().enumerate() {
        if let Command::Checkpoint { party, .. } = command {
            newest.insert(party.as_str(), at);
        }
    }
    newest
}

fn set_metadata(connection: &Connection, job: &str, position: usize, metadata: &PartyMetadata) -> rusqlite::Result<()> {
    let count = |count: Option<u64>| count.map(|c| c as i64);
    let unit = metadata.unit();
    connection.execute(
        "UPDATE job_parties SET opened = 1, records = ?3, persons = ?4, records_per_person = ?5, add_remove = ?6
         WHERE job = (SELECT key FROM jobs WHERE id = ?1) AND position = ?2",
        params![
            job,
            position as i64,
            count(metadata.records()),
            count(metadata.persons()),
            unit.records_per_person().unwrap_or(0),
            unit.adjacency == Adjacency::AddRemove,
        ],
    )?;
    Ok(())
}

fn set_waits(connection: &Connection, job: &str, since_ms: &[Option<i64>]) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE job_parties SET waiting_since_ms = ?3 WHERE job = (SELECT key FROM jobs WHERE id = ?1) AND position = ?2",
    )?;
    (0_i64..).zip(since_ms).try_for_each(|(position, since)| update.execute(params![job, position, since]).map(drop))
}

fn insert_job(connection: &Connection, NewJob { job, parties }: &NewJob) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO jobs (id, name, analyst, spec, submitted_ms, state, submission, protocol)
         VALUES (?1, ?2, ?3, ?4, ?5, 'queued', ?6, ?7)",
        params![job.id, job.name, job.analyst, job.spec, job.submitted_ms, job.submission, job.protocol],
    )?;
    let key = connection.last_insert_rowid();
    for (position, party) in parties.iter().enumerate() {
        connection.execute(
            "INSERT INTO job_parties (job, position, party) VALUES (?1, ?2, ?3)",
            params![key, position as i64, party],
        )?;
    }
    Ok(())
}

fn end_job(connection: &Connection, ended: &JobEnd) -> rusqlite::Result<()> {
    let run = &ended.run;
    let fault = run.fault.as_ref();
    connection.execute(
        "UPDATE jobs SET state = ?2, iterations = ?3, draws = ?4, acceptance_rate = ?5, seconds = ?6,
                error_code = ?7, error_party = ?8, error = ?9, result = ?10, ended_ms = ?11 WHERE id = ?1",
        params![
            ended.id,
            ended.state,
            run.iterations as i64,
            run.draws as i64,
            run.acceptance_rate,
            run.seconds,
            fault.map(|f| f.code.as_str()),
            fault.and_then(|f| f.party.as_deref()),
            fault.map(|f| f.message.as_str()),
            run.result,
            ended.at_ms,
        ],
    )?;
    for (position, (queries, units)) in ended.spent.iter().enumerate() {
        connection.execute(
            "UPDATE job_parties SET queries = ?3, charge_units = ?4
             WHERE job = (SELECT key FROM jobs WHERE id = ?1) AND position = ?2",
            params![ended.id, position as i64, *queries as i64, *units as i64],
        )?;
    }
    Ok(())
}
