//! `conclave draws`: fetches a job's draws to this machine.

mod command;
mod fetch;

pub(crate) use command::{DrawsArgs, run};
pub(crate) use fetch::{fetch, partial_name};
