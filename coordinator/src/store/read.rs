//! Reads the store: jobs, parties, checkpoints.

use std::collections::{BTreeSet, HashMap};

use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_proto::error::{ErrorCode, Fault};
use rusqlite::{Connection, Params};

use super::columns::column_or_null;
use super::job::{RunEnd, SubmittedJob};

/// Data that a starting coordinator needs.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Every job, in the order of submission.
    pub jobs: Vec<JobRow>,
    /// The newest checkpoint of each party.
    pub checkpoints: HashMap<String, Vec<u8>>,
    /// Serial number of the certificate with which each party attached last, in hexadecimal.
    pub certificates: HashMap<String, String>,
    /// Name and version of the software with which each party attached last.
    pub software: HashMap<String, String>,
    /// Every party that ever attached.
    pub parties: BTreeSet<String>,
}

/// A job as stored.
#[derive(Debug, Clone)]
pub(crate) struct JobRow {
    /// The submitted job.
    pub job: SubmittedJob,
    /// `queued` until it has ended.
    pub state: String,
    /// Figures of its run, once it has ended.
    pub run: RunEnd,
    /// Parties, in the job's order.
    pub parties: Vec<PartyRow>,
}

/// A party of a job as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartyRow {
    /// Name.
    pub name: String,
    /// Its public metadata at the first opening.
    pub metadata: Option<PartyMetadata>,
    /// Number of releases, once the job has ended.
    pub queries: u64,
    /// Cost of the releases, in units of 2^-48 of mu squared, once the job has ended.
    pub charge_units: u64,
    /// Time since which the job waits for it, Unix time in milliseconds; `None` if it does not wait.
    pub waiting_since_ms: Option<i64>,
}

pub(super) fn load(connection: &Connection) -> rusqlite::Result<Loaded> {
    let mut loaded = Loaded { jobs: job_rows(connection, "", [])?, ..Loaded::default() };
    let mut parties = connection.prepare("SELECT name, software FROM parties")?;
    let mut heads = connection.prepare("SELECT party, head FROM heads")?;
    loaded.checkpoints = heads.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    loaded.certificates = certificates(connection)?;
    loaded.software = parties.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    loaded.parties = loaded.software.keys().cloned().collect();
    Ok(loaded)
}

/// Reads the parties' certificates; none from a store that no coordinator of this build has opened.
fn certificates(connection: &Connection) -> rusqlite::Result<HashMap<String, String>> {
    let is_there = "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'certificates'";
    if !connection.query_row(is_there, [], |row| row.get(0))? {
        return Ok(HashMap::new());
    }
    let mut found = connection.prepare("SELECT party, serial FROM certificates")?;
    found.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Reads the jobs that a WHERE clause selects, in the order of submission.
pub(super) fn job_rows<P: Params>(connection: &Connection, selected: &str, parameters: P) -> rusqlite::Result<Vec<JobRow>> {
    let waiting = column_or_null(connection, "job_parties", "waiting_since_ms")?;
    let mut jobs = connection.prepare(&format!(
        "SELECT key, id, name, analyst, spec, submitted_ms, state, iterations, draws, acceptance_rate, seconds,
                error_code, error_party, error, result, submission, coalesce(protocol, 1) FROM jobs {selected} ORDER BY key"
    ))?;
    let mut rows = jobs.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let fault = row.get::<_, Option<String>>(13)?.map(|message| {
            let code = row.get::<_, Option<String>>(11).ok().flatten();
            Fault {
                code: code.and_then(|c| ErrorCode::parse(&c)).unwrap_or(ErrorCode::Internal),
                party: row.get(12).ok().flatten(),
                message,
                remedy: None,
            }
        });
        let job = SubmittedJob {
            id: row.get(1)?,
            name: row.get(2)?,
            analyst: row.get(3)?,
            spec: row.get(4)?,
            submitted_ms: row.get(5)?,
            submission: row.get(15)?,
            protocol: row.get(16)?,
        };
        let run = RunEnd {
            iterations: row.get::<_, i64>(7)? as u64,
            draws: row.get::<_, i64>(8)? as u64,
            acceptance_rate: row.get(9)?,
            seconds: row.get(10)?,
            fault,
            result: row.get(14)?,
        };
        found.push(JobRow { job, state: row.get(6)?, run, parties: load_parties(connection, row.get(0)?, waiting)? });
    }
    Ok(found)
}

fn load_parties(connection: &Connection, job: i64, waiting: &str) -> rusqlite::Result<Vec<PartyRow>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT party, queries, charge_units, opened, coalesce(records, persons, 0), records_per_person, add_remove, {waiting}
         FROM job_parties WHERE job = ?1 ORDER BY position"
    ))?;
    let rows = statement.query_map([job], |row| {
        let (opened, count, limit, add_remove): (bool, i64, u32, bool) = (row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
        let adjacency = if add_remove { Adjacency::AddRemove } else { Adjacency::Replace };
        let unit = PrivacyUnit::person(adjacency, limit).unwrap_or(PrivacyUnit::row(adjacency));
        Ok(PartyRow {
            name: row.get(0)?,
            metadata: opened.then(|| PartyMetadata::new(unit, count as u64)),
            queries: row.get::<_, i64>(1)? as u64,
            charge_units: row.get::<_, i64>(2)? as u64,
            waiting_since_ms: row.get(7)?,
        })
    })?;
    rows.collect()
}
