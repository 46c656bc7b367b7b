//! The data that a ledger knows: the keyed hashes of their columns since the last refresh.

use std::collections::BTreeMap;

use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::Data;
use rusqlite::Connection;

/// Kind of the owner's act that declares other data.
const REFRESH: &str = "refresh";

/// The data, as they were when a job was entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownData {
    /// True if the owner has refreshed them since.
    pub(crate) is_refreshed: bool,
    /// Keyed hash of each column since the refresh before the job, in hexadecimal.
    pub(crate) columns: BTreeMap<String, String>,
}

/// Reads the data of a job with this `seq`.
pub(super) fn known_data(connection: &Connection, job: u64) -> Result<KnownData, LedgerError> {
    let last = |comparison: &str| -> rusqlite::Result<u64> {
        let select = format!("SELECT coalesce(max(seq), 0) FROM events WHERE kind = ?1 AND seq {comparison} ?2");
        connection.query_row(&select, (REFRESH, job), |row| row.get(0))
    };
    let (before, after) = (last("<")?, last(">")?);
    let mut select = connection.prepare("SELECT body FROM events WHERE kind = ?1 AND seq > ?2 ORDER BY seq")?;
    let bodies = select.query_map((Data::KIND, before), |row| row.get::<_, String>(0))?;
    let mut columns = BTreeMap::new();
    for body in bodies {
        // Validated by every start.
        columns.extend(Data::parse(&body?).map(|data| data.columns).unwrap_or_default());
    }
    Ok(KnownData { is_refreshed: after > 0, columns })
}
