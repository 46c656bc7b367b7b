//! Times of the ledger, as its owner reads them.

use std::path::Path;

use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::schema;
use time::OffsetDateTime;
use time::macros::format_description;

/// Event: the owner confirms that the machine's clock is right, whatever times earlier entries have.
pub(crate) const CLOCK: &str = "clock";

/// Returns the latest time of the jobs, the events and the newest charge of a ledger, Unix time in milliseconds, which is settled: no clock
/// that is behind it is believed. Entries before the owner's last confirmation of the clock do not count. Takes no lock.
///
/// # Errors
/// [`LedgerError::Missing`]; a failure of the database.
pub(crate) fn settled_ms(ledger: &Path) -> Result<i64, LedgerError> {
    const NEWEST: &str = "
WITH confirmed AS (SELECT coalesce(max(seq), 0) AS seq FROM events WHERE kind = 'clock')
SELECT max(t) FROM (SELECT time_ms AS t FROM charges WHERE seq = (SELECT max(seq) FROM charges) AND seq >= (SELECT seq FROM confirmed)
  UNION ALL SELECT time_ms FROM events WHERE seq >= (SELECT seq FROM confirmed)
  UNION ALL SELECT time_ms FROM jobs WHERE seq >= (SELECT seq FROM confirmed))";
    let latest: Option<i64> = schema::connect_read_only(ledger)?.query_row(NEWEST, [], |row| row.get(0))?;
    Ok(latest.unwrap_or(0))
}

/// Calendar date and time of day of a Unix time in milliseconds, UTC.
pub(super) fn to_milliseconds(time_ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000);
    moment.ok().and_then(|moment| moment.format(&format).ok()).unwrap_or_else(|| format!("{time_ms} ms"))
}
