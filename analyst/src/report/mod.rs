//! `conclave report`: a job's result as one HTML file that needs nothing else.

mod command;
mod figures;
mod material;
mod page;
mod plots;
mod posterior;
mod privacy;
mod question;
mod repeat;
mod run_section;

#[cfg(test)]
mod tests;

pub(crate) use command::{ReportArgs, run};
