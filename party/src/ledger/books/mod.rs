//! The books: what a ledger's entries add up to, checked entry by entry.
//!
//! The same code adds up a ledger at start, an export on an auditor's desk, and every entry that the party is about to
//! write: an entry that does not follow from those before it is refused in all three places.

mod chain;
mod job;

pub use chain::Books;
pub use job::{Block, JobBooks};
pub(super) use job::{minus, plus};
