//! The party's wall clock, for the times that the ledger stores and that people read. No decision depends on it.
//!
//! The ledger hashes the times that it stores, and each reply carries the newest hash. Anyone who knows an entry except for its time can find
//! the time by trying values. So no stored time may depend on how long an answer took to compute. On the answering thread the clock is
//! therefore stopped while a message is handled: it shows the moment at which the message arrived.

use std::cell::Cell;

use conclave_ops::Clock;
use time::OffsetDateTime;
use time::macros::format_description;

thread_local! {
    /// The moment at which this thread's clock is stopped; `None` while it runs.
    static MOMENT: Cell<Option<i64>> = const { Cell::new(None) };
}

/// Stops this thread's clock at a moment, in milliseconds of Unix time; `None` lets it run again.
pub(crate) fn stand_at(moment: Option<i64>) {
    MOMENT.set(moment);
}

/// Returns the Unix time in milliseconds, or the moment at which this thread's clock is stopped.
pub fn now_ms() -> i64 {
    MOMENT.get().unwrap_or_else(|| Clock::Party.now_ms())
}

/// Returns the time of [`now_ms`] in UTC, to the second.
pub fn now() -> String {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(now_ms()) * 1_000_000);
    // Only a test sets the clock beyond the range of the calendar.
    to_seconds(moment.unwrap_or(OffsetDateTime::UNIX_EPOCH))
}

/// Formats a UTC time, to the second.
pub fn to_seconds(time: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    // A UTC time has every part of this format, so formatting cannot fail.
    time.format(&format).unwrap_or_default()
}
