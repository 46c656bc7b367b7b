//! `conclave rehearse`: runs a job from start to end in this process, on the user's own records.

mod command;
mod progress;
mod run;

pub(crate) use command::{RehearseArgs, run};
