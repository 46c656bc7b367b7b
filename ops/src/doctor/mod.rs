//! Findings of the doctors of both daemons, and their table.

mod finding;
mod table;

pub use finding::{Finding, Outcome, object, verdict};
pub use table::table;
