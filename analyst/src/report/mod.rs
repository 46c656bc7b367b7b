//! `conclave report`: a job's result as one self-contained HTML file.

mod command;
mod material;
mod model;
mod page;
mod plots;
mod posterior;
mod privacy;
mod repeat;
mod run_section;
mod sites;
mod survival;

#[cfg(test)]
mod tests;

pub(crate) use command::{ReportArgs, run};
