//! Times of the ledger, as its owner reads them.

use time::OffsetDateTime;
use time::macros::format_description;

/// Calendar date and time of day of a Unix time in milliseconds, UTC.
pub(super) fn to_milliseconds(time_ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000);
    moment.ok().and_then(|moment| moment.format(&format).ok()).unwrap_or_else(|| format!("{time_ms} ms"))
}
