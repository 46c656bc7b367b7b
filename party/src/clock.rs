//! The party's wall clock, as its ledger stores the time and as people read it. No decision stands on it.

use conclave_ops::Clock;
use time::OffsetDateTime;
use time::macros::format_description;

/// Unix time in milliseconds.
pub(crate) fn now_ms() -> i64 {
    Clock::Party.now_ms()
}

/// The time now, UTC, to the second.
pub(crate) fn now() -> String {
    to_seconds(OffsetDateTime::now_utc())
}

/// A UTC time, to the second.
pub(crate) fn to_seconds(time: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    // The format holds no part that a UTC time lacks, so an error can't occur.
    time.format(&format).unwrap_or_default()
}

/// Calendar date and time of day of a Unix time in milliseconds, UTC.
pub(crate) fn to_milliseconds(time_ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000);
    moment.ok().and_then(|moment| moment.format(&format).ok()).unwrap_or_else(|| format!("{time_ms} ms"))
}
