//! Reading a ledger from its first entry to its last: done at every start, and for every export.
//!
//! One pass over each table in the order of its rows, merged by sequence number; a million charges are hashed and added
//! up again in about a second, so nothing here allocates per row. A hash that is not stored is computed, and the next one that is
//! stored, at the latest the tail's, is compared with what they lead to.

mod chain;
mod tables;

pub(super) use chain::add_up;
pub use chain::{hash_at, read};
pub use tables::Layout;
