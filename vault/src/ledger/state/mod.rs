//! Computes the state of a ledger: the sums of its entries, checked entry by entry.
//!
//! The same code adds up a ledger at start, an export in an audit, and every entry that the party is about to write: an entry that does not
//! follow from those before it is refused in all three places.

mod chain;
mod job;
mod sampled_block;

pub use chain::LedgerState;
pub use job::Masks;
pub(super) use job::{Block, JobState};
pub(super) use sampled_block::fits;
