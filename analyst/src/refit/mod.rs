//! `conclave refit`: another posterior from what a finished job's parties released.

mod command;
mod releases;

pub(crate) use command::{RefitArgs, run};
