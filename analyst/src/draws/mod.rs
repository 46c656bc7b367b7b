//! `conclave draws`: a job's draws, fetched to this machine.

mod command;
mod fetch;

pub(crate) use command::{DrawsArgs, run};
pub(crate) use fetch::{fetch, partial_name};
