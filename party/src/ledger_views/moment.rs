//! Times of the ledger, as its owner reads them.

use std::path::Path;

use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::schema;
use time::OffsetDateTime;
use time::macros::format_description;

/// Returns the latest time of any entry of a ledger, Unix time in milliseconds. Takes no lock.
///
/// # Errors
/// [`LedgerError::Missing`]; a failure of the database.
pub(crate) fn latest_entry_ms(ledger: &Path) -> Result<i64, LedgerError> {
    const NEWEST: &str = "
SELECT max(t) FROM (SELECT time_ms AS t FROM charges WHERE seq = (SELECT max(seq) FROM charges)
  UNION ALL SELECT time_ms FROM events WHERE seq = (SELECT max(seq) FROM events)
  UNION ALL SELECT time_ms FROM jobs WHERE seq = (SELECT max(seq) FROM jobs))";
    let latest: Option<i64> = schema::connect_read_only(ledger)?.query_row(NEWEST, [], |row| row.get(0))?;
    Ok(latest.unwrap_or(0))
}

/// Calendar date and time of day of a Unix time in milliseconds, UTC.
pub(super) fn to_milliseconds(time_ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000);
    moment.ok().and_then(|moment| moment.format(&format).ok()).unwrap_or_else(|| format!("{time_ms} ms"))
}
