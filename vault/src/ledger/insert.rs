//! Stores entries, totals and the tail as rows of the tables.

use rusqlite::{CachedStatement, Connection};

use super::components;
use super::entry::{AnswerEntry, ChargeEntry, Entry, EventEntry, Hash, JobEntered};
use super::releases_view;
use super::state::{JobState, LedgerState};

/// The sums of these jobs' entries.
pub(super) fn write_totals<'a>(connection: &Connection, jobs: impl IntoIterator<Item = &'a JobState>) -> rusqlite::Result<()> {
    let mut upsert = connection.prepare_cached("INSERT OR REPLACE INTO totals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for job in jobs {
        let all = job.committed();
        let reserved = all.units - job.spent.units;
        upsert.execute((job.seq, job.queries, job.spent.units, reserved, job.last_charge, all.slack_units, all.draws))?;
    }
    Ok(())
}

/// The last entry's number and hash: in the same commit as the entry, whatever its kind.
pub(super) fn write_tail(connection: &Connection, state: &LedgerState) -> rusqlite::Result<()> {
    let mut upsert = connection.prepare_cached("INSERT OR REPLACE INTO tail VALUES (1, ?1, ?2)")?;
    upsert.execute((state.seq(), state.hash())).map(drop)
}

/// Stores an entry, with its hash unless it is an answer.
pub(super) fn insert(connection: &Connection, entry: &Entry<'_>, hash: &Hash) -> rusqlite::Result<()> {
    match entry {
        Entry::Charge(e) => insert_charge(connection, e, hash),
        Entry::Answer(e) => insert_answer(connection, e),
        Entry::Job(e) => insert_job(connection, e, hash),
        Entry::Event(EventEntry { seq, time_ms, kind, job, body }) => connection
            .prepare_cached("INSERT INTO events (seq, time_ms, kind, job, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute((seq, time_ms, kind, job, body, hash))
            .map(drop),
    }
}

fn insert_answer(connection: &Connection, e: &AnswerEntry<'_>) -> rusqlite::Result<()> {
    // The ledger's state accepts no answer without an integer.
    let [first, others @ ..] = e.released else { return Ok(()) };
    let mut insert = connection.prepare_cached("INSERT INTO answers (charge, seq, released) VALUES (?1, ?2, ?3)")?;
    insert.execute((e.charge, e.seq, first))?;
    if others.is_empty() { Ok(()) } else { components::insert_answer(connection, e.charge, others) }
}

fn insert_charge(connection: &Connection, e: &ChargeEntry, hash: &Hash) -> rusqlite::Result<()> {
    if e.components > 1 {
        components::insert_charge(connection, e.seq, e.components)?;
    }
    releases_view::see_to(connection, e.kind)?;
    let charge = rusqlite::params![
        e.seq,
        e.time_ms,
        e.job,
        e.iteration,
        e.chain,
        e.attempt,
        e.block,
        e.digest,
        e.theta,
        e.theta_next,
        e.kind,
        e.k_t,
        e.s,
        e.charge,
        e.running_total,
        hash,
        e.honest,
        e.alone,
    ];
    if e.honest == 1 {
        connection.prepare_cached(CHARGE)?.execute(&charge[..16]).map(drop)
    } else {
        prepare_masked(connection, MASKED_CHARGE)?.execute(charge).map(drop)
    }
}

/// Prepares a statement that writes the columns of masked releases; at the first such charge they are made.
fn prepare_masked<'c>(connection: &'c Connection, sql: &str) -> rusqlite::Result<CachedStatement<'c>> {
    // Where it can be prepared they exist: a look-up before every charge would take as long as the charge.
    if let Ok(prepared) = connection.prepare_cached(sql) {
        return Ok(prepared);
    }
    if !components::are_masked(connection)? {
        let newer = releases_view::is_there(connection)?;
        for batch in [components::TABLES, components::MASKED, components::MASKED_VIEW] {
            connection.execute_batch(batch)?;
        }
        if newer {
            releases_view::put(connection)?;
        }
    }
    connection.prepare_cached(sql)
}

const CHARGE: &str = "
INSERT INTO charges (seq, time_ms, job, iteration, chain, attempt, block, digest, theta, theta_next, kind, k_t, s, charge, running_total, hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

/// For masked releases.
const MASKED_CHARGE: &str = "
INSERT INTO charges (seq, time_ms, job, iteration, chain, attempt, block, digest, theta, theta_next, kind, k_t, s, charge, running_total, hash,
                     honest, alone)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";

fn insert_job(connection: &Connection, e: &JobEntered<'_>, hash: &Hash) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO jobs (seq, time_ms, job, analyst, spec_digest, spec_toml, cap_epsilon, cap_delta, records, fingerprint,
                           hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let (caps, rest) = ((e.cap_epsilon, e.cap_delta), (e.records, e.fingerprint, hash));
    let params = (e.seq, e.time_ms, e.job, e.analyst, e.spec_digest, e.spec_toml, caps.0, caps.1, rest.0, rest.1, rest.2);
    insert.execute(params).map(drop)
}
