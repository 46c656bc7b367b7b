//! `conclave refit`: infers another posterior from a finished job's releases.

mod command;
mod infer;
mod releases;

pub(crate) use command::{RefitArgs, run};
pub(crate) use infer::{Changes, refit};
