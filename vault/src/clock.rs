//! The party's wall clock, as its ledger stores the time and as people read it. No decision stands on it.
//!
//! What the ledger stores is hashed, and the hash leaves with a reply. So nothing that is written for a message may hold a time that depends on
//! how long its answer, or another's, took to compute: anyone who knows all but the time finds it by trying values. On the answering thread the clock
//! therefore stands, from the first look at a message to the last, at the moment at which the message arrived.

use std::cell::Cell;

use conclave_ops::Clock;
use time::OffsetDateTime;
use time::macros::format_description;

thread_local! {
    /// The moment at which this thread's clock stands.
    static MOMENT: Cell<Option<i64>> = const { Cell::new(None) };
}

/// Lets this thread's clock stand at a moment, in milliseconds of Unix time; or lets it go.
pub(crate) fn stand_at(moment: Option<i64>) {
    MOMENT.set(moment);
}

/// Unix time in milliseconds.
pub fn now_ms() -> i64 {
    MOMENT.get().unwrap_or_else(|| Clock::Party.now_ms())
}

/// The time now, UTC, to the second.
pub fn now() -> String {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(now_ms()) * 1_000_000);
    // A clock beyond the calendar is put wrong by a test.
    to_seconds(moment.unwrap_or(OffsetDateTime::UNIX_EPOCH))
}

/// A UTC time, to the second.
pub fn to_seconds(time: OffsetDateTime) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    // The format holds no part that a UTC time lacks, so an error can't occur.
    time.format(&format).unwrap_or_default()
}
