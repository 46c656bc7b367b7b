//! `conclave plan`: what a job will buy, before anything is spent.

mod command;
mod known;
mod text;

pub(crate) use command::{PlanArgs, run};
