//! Numbers a ledger's format, by which a file is recognised as a ledger that this version reads.

/// Version of the tables; in SQLite's `user_version`, and in the first entry of a ledger that was made with it.
pub(super) const FORMAT: i32 = 4;

/// The previous version, which a start converts.
pub(super) const FORMER: i32 = 3;

/// SQLite's `application_id`: "CLGR".
pub(super) const APPLICATION: i32 = 0x434c_4752;
