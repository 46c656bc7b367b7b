//! `conclave rehearse`: a job from start to end in this process, on records that its user holds.

mod command;
mod progress;
mod run;

pub(crate) use command::{RehearseArgs, run};
