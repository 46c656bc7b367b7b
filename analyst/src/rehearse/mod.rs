//! `conclave rehearse`: runs a job from start to end in this process, on the user's own records.

mod bound;
mod command;
mod progress;
mod run;
mod table;

pub(crate) use bound::{bound, check_spares_rows, screen};
pub(crate) use command::{RehearseArgs, run};
pub(crate) use run::{RehearsalState, rehearse};
pub use table::{Table, Values};
