//! What the doctors of both daemons find, and the table that it is shown in.

mod finding;
mod table;

pub use finding::{Finding, Outcome};
pub use table::table;
