//! `conclave report`: a job's result as one self-contained HTML file.

mod command;
mod failed;
mod fold;
mod forest;
mod guarantee;
mod material;
mod methods;
mod model;
mod page;
mod plots;
mod posterior;
mod privacy;
mod records;
mod repeat;
mod result_section;
mod run_section;
mod sites;
mod survival;
mod units;

#[cfg(test)]
mod tests;

pub(crate) use command::{ReportArgs, Source, html, run};
pub(crate) use units::Per;
