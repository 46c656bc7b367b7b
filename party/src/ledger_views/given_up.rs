//! Answers that left and whose entries the owner has given up for lost by `unlock`.

use conclave_vault::clock::to_seconds;
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::Unlock;
use rusqlite::{Connection, OptionalExtension};

/// A stretch of a job's rounds whose entries an unlock has given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// First round, and the one after the last.
    pub(crate) rounds: (u64, u64),
    /// Most answers that the given-up entries can have held.
    pub(crate) most: u64,
    /// Time of the unlock, UTC.
    pub(crate) time: String,
    /// Reason, in the owner's words.
    pub(crate) reason: String,
}

/// The last round before an unlock whose answer the ledger holds. A charge without an answer may have been answered in the lost part.
const ANSWERED: &str =
    "SELECT max(c.iteration) FROM charges c JOIN answers a ON a.charge = c.seq WHERE c.job = ?1 AND c.seq <= ?2";

/// Reads a job's stretches. `job` is the number of its entry, if there is one. A job that was entered after an unlock, or never, had
/// answers before it only if it was `asked` of this party by then.
///
/// # Errors
/// A failure of the database.
pub(super) fn given_up(connection: &Connection, job: Option<u64>, asked: &str) -> Result<Vec<GivenUp>, LedgerError> {
    let mut select = connection.prepare("SELECT seq, time_ms, body FROM events WHERE kind = ?1 ORDER BY seq")?;
    let mut events = select.query([Unlock::KIND])?;
    let mut all = Vec::new();
    while let Some(event) = events.next()? {
        // Validated by every start.
        let Ok(unlock) = Unlock::parse(event.get_ref(2)?.as_str().unwrap_or_default()) else { continue };
        let (seq, time_ms): (u64, i64) = (event.get(0)?, event.get(1)?);
        let time = time::OffsetDateTime::from_unix_timestamp(time_ms.div_euclid(1000)).map(to_seconds).unwrap_or_default();
        let is_older = job.is_some_and(|job| job <= unlock.from.seq);
        if !is_older && asked > time.as_str() {
            continue;
        }
        let round = |sql: &str, bound: u64| -> rusqlite::Result<Option<u64>> {
            connection.query_row(sql, (job.unwrap_or(0), bound), |row| row.get(0)).optional().map(Option::flatten)
        };
        let last = round(ANSWERED, unlock.from.seq)?;
        let next = round("SELECT min(iteration) FROM charges WHERE job = ?1 AND seq > ?2", seq)?;
        let (lost, from) = (unlock.lost.seq, unlock.from.seq);
        all.push(GivenUp {
            rounds: (last.map_or(0, |last| last + 1), next.unwrap_or(u64::MAX)),
            most: if lost > from { lost - from } else { lost },
            time,
            reason: unlock.reason,
        });
    }
    Ok(all)
}
