//! `conclave refit`: infers another posterior from a finished job's releases.

mod command;
mod releases;

pub(crate) use command::{RefitArgs, run};
