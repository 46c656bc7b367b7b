//! Findings of the doctors of both daemons, and their table.

mod finding;
mod long_log;
mod table;

pub use finding::{Finding, Outcome, object, verdict};
pub use long_log::long_log;
pub use table::table;
