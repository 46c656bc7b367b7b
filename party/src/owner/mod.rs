//! The content of the owner's commands: jobs with their states and spending, worst cases, warnings, statements.
//!
//! Everything is read without the ledger's lock, so also while the party runs. None of it is sent anywhere automatically.

pub(crate) mod budget;
mod figure;
mod jobs;
pub(crate) mod masked;
mod odds;
pub(crate) mod pending_job;
pub(crate) mod permit;
pub(crate) mod plain;
mod price;
pub(crate) mod questions;
mod samples;
mod scale;
mod statement;
mod text;
mod totals;
mod worst_case;

pub(crate) use figure::figure;
pub(crate) use jobs::{JobView, State, find, jobs};
pub(crate) use plain::Summary;
pub(crate) use scale::Scale;
pub(crate) use statement::{Facts, statement};
pub(crate) use text::unit_of_privacy;
#[cfg(test)]
pub(crate) use totals::job_totals;
pub(crate) use totals::{releases, releases_by_day};
pub(crate) use worst_case::{WorstCase, analyst_remaining, worst_case};
