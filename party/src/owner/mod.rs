//! The content of the owner's commands: jobs with their states and spending, worst cases, warnings, statements.
//!
//! Everything is read without the ledger's lock, so also while the party runs. None of it is sent anywhere automatically.

pub(crate) mod budget;
pub(crate) mod dossier;
mod figure;
pub(crate) mod inquiries;
mod jobs;
pub(crate) mod masked;
pub(crate) mod odds;
pub(crate) mod papers;
pub(crate) mod pending_job;
pub(crate) mod plain;
mod price;
mod samples;
mod scale;
pub(crate) mod statement;
pub(crate) mod terms;
mod text;
mod totals;
mod worst_case;

pub(crate) use crate::ledger_views::permit;
pub(crate) use jobs::{JobView, State, find, jobs};
pub(crate) use plain::Summary;
pub(crate) use scale::Scale;
pub(crate) use text::unit_of_privacy;
pub(crate) use totals::releases_by_day;
#[cfg(test)]
pub(crate) use totals::{job_totals, releases};
pub(crate) use worst_case::WorstCase;
