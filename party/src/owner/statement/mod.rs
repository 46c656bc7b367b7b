//! The printable statement on one job: its queries and releases, its guarantees and their limits.
//!
//! Written for a data owner's lawyer: every figure can be checked against the ledger.

mod content;
mod facts;
mod front;

pub(crate) use content::statement;
pub(crate) use facts::Facts;

use conclave_pages::document::Block;

use super::jobs::JobView;
use super::papers::Papers;
use super::totals::releases;
use super::worst_case::{analyst_remaining, worst_case};
use crate::config::PartyConfig;
use crate::error::StartError;
use crate::ledger_views::report_kept;

/// Reads the ledger and returns the statement on one job as it is now.
///
/// # Errors
/// Fails if the ledger can't be read.
pub(crate) fn statement_now(config: &PartyConfig, job: &JobView) -> Result<Vec<Block>, StartError> {
    let settings = config.ledger_settings();
    let report = report_kept(&settings)?;
    let remaining = analyst_remaining(&settings, &report, &job.request.analyst).ok().flatten();
    let worst = job.spec.as_ref().and_then(|spec| worst_case(spec, job.spent().units, &report, remaining).ok());
    let (releases, papers) = (releases(&config.ledger, &job.request.job)?, Papers::read(config)?);
    let facts = Facts { report: &report, worst: worst.as_ref(), releases: releases.as_ref(), papers: Some(&papers) };
    Ok(statement(config, job, &facts, &conclave_vault::clock::now()))
}

/// Returns the text at the foot of every printed page of a statement.
pub(crate) fn footer(config: &PartyConfig, job: &JobView) -> String {
    format!("Statement on job {}, {}", job.request.job, config.name)
}

#[cfg(test)]
mod tests;
