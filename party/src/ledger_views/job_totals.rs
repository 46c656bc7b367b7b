//! The jobs of a ledger with their totals.

use std::collections::HashMap;

use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::{MaskKey, Unlock};
use rusqlite::Connection;

pub(crate) struct JobRow {
    pub(crate) seq: u64,
    pub(crate) job: String,
    pub(crate) analyst: String,
    pub(crate) digest: [u8; 32],
    pub(crate) spec_toml: String,
    /// Time when it was first opened, Unix time in milliseconds.
    pub(crate) opened_ms: i64,
    /// Time when it was last closed or, for a masked job, ended by an unlock; `None` while it is open.
    pub(crate) closed_ms: Option<i64>,
    /// The stated reason of that close; `None` for a job that is open or was ended by an unlock.
    pub(crate) end: Option<String>,
    /// True if the owner has refreshed the data since it was entered: it is never charged again.
    pub(crate) is_refreshed: bool,
    pub(crate) cap: (String, String),
    pub(crate) queries: u64,
    pub(crate) charge: u64,
    pub(crate) reserved: u64,
    pub(crate) last_charge: u64,
    pub(crate) slack: u64,
    pub(crate) draws: u64,
}

/// Returns every job, in order of entry.
pub(crate) fn job_rows(connection: &Connection) -> Result<Vec<JobRow>, LedgerError> {
    let ended = ended_by_unlocks(connection)?;
    let mut select = connection.prepare(
        "SELECT j.seq, j.job, j.analyst, j.spec_digest, j.spec_toml, j.time_ms, iif(e.kind = 'close', e.time_ms, NULL), j.cap_epsilon,
                j.cap_delta, t.queries, t.charge, t.reserved, t.last_charge, t.slack, t.draws,
                EXISTS (SELECT 1 FROM events r WHERE r.kind = 'refresh' AND r.seq > j.seq), iif(e.kind = 'close', e.body, NULL)
         FROM jobs j JOIN totals t ON t.job = j.seq
         LEFT JOIN events e ON e.seq = (SELECT max(seq) FROM events WHERE job = j.seq AND kind IN ('open', 'close'))
         ORDER BY j.seq",
    )?;
    let rows = select.query_map([], |row| {
        let (seq, closed_ms): (u64, Option<i64>) = (row.get(0)?, row.get(6)?);
        Ok(JobRow {
            seq,
            job: row.get(1)?,
            analyst: row.get(2)?,
            digest: row.get(3)?,
            spec_toml: row.get(4)?,
            opened_ms: row.get(5)?,
            closed_ms: closed_ms.or_else(|| ended.get(&seq).copied()),
            cap: (row.get(7)?, row.get(8)?),
            queries: row.get(9)?,
            charge: row.get(10)?,
            reserved: row.get(11)?,
            last_charge: row.get(12)?,
            slack: row.get(13)?,
            draws: row.get(14)?,
            is_refreshed: row.get(15)?,
            end: row.get::<_, Option<String>>(16)?.and_then(|body| reason_of(&body)),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the reason in the body of a close.
fn reason_of(body: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    body["reason"].as_str().map(str::to_owned)
}

/// Returns the masked jobs ended by an unlock, with its time: it deletes all mask keys, restored ones are not used, and no job
/// gets a second key. The ledger has no entry that closes these jobs.
fn ended_by_unlocks(connection: &Connection) -> rusqlite::Result<HashMap<u64, i64>> {
    let mut select = connection.prepare("SELECT job, kind, time_ms FROM events WHERE kind IN (?1, ?2) ORDER BY seq")?;
    let mut events = select.query([MaskKey::KIND, Unlock::KIND])?;
    let (mut keyed, mut ended) = (Vec::new(), HashMap::new());
    while let Some(event) = events.next()? {
        if event.get_ref(1)?.as_str().is_ok_and(|kind| kind == Unlock::KIND) {
            let time: i64 = event.get(2)?;
            ended.extend(keyed.drain(..).map(|job| (job, time)));
        } else {
            keyed.push(event.get(0)?);
        }
    }
    Ok(ended)
}
