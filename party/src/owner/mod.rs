//! What the owner's commands show: jobs with their standing and spending, worst cases, warnings, statements.
//!
//! Everything is read without the ledger's lock, so also while the party runs. None of it leaves the building by itself.

pub(crate) mod asked;
mod extremes;
mod jobs;
mod statement;
mod totals;
mod words;
mod worst;

pub(crate) use extremes::{extremes, read_off};
pub(crate) use jobs::{JobView, State, find, jobs};
pub(crate) use statement::{Facts, markdown, page, statement};
pub(crate) use totals::{releases, releases_by_day};
pub(crate) use words::{figure, unit_of_privacy};
pub(crate) use worst::{WorstCase, analyst_left, worst_case};
