//! What the owner is told: read without the lock, so also while the party runs.

use std::path::Path;

use conclave_common::accounting::{Budget, PrivacyFilter, Spent};
use rusqlite::OptionalExtension;
use serde::Serialize;

use super::{LedgerError, schema};

/// The state of the data's budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The party.
    pub party: String,
    /// The budget's epsilon.
    pub epsilon_budget: f64,
    /// The budget's delta.
    pub delta: f64,
    /// Gaussian-DP epsilon of what is spent, at the budget's delta: a running total to watch, not a guarantee of its own.
    pub epsilon_spent: f64,
    /// The budget's epsilon less the spent one. Epsilons of single jobs do not add; `mu_squared_remaining` does.
    pub epsilon_remaining: f64,
    /// The same spending by zCDP accounting, about 7% looser.
    pub epsilon_zcdp: f64,
    /// mu² that the budget admits, after the slack for discrete noise.
    pub mu_squared_budget: f64,
    /// mu² spent.
    pub mu_squared_spent: f64,
    /// mu² left.
    pub mu_squared_remaining: f64,
    /// Share of mu² spent, 0 to 1.
    pub share_spent: f64,
    /// Numbers charged, over all jobs.
    pub queries: u64,
    /// Jobs entered.
    pub jobs: u64,
    /// When the ledger was made, UTC.
    pub created: String,
}

/// Reads a ledger's totals; takes no lock and writes nothing.
///
/// # Errors
/// [`LedgerError::Missing`], [`LedgerError::Party`], [`LedgerError::Budget`], or a failure of the database.
pub fn report(path: &Path, party: &str, budget: &Budget) -> Result<Report, LedgerError> {
    if !path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
        return Err(LedgerError::Missing(path.to_owned()));
    }
    let connection = schema::connect_read_only(path)?;
    schema::check_meta(&connection, path, party, budget)?;
    // The running total of the last row is the sum; opening for writing verifies it.
    let (units, queries): (u64, u64) = connection
        .query_row("SELECT running_total, seq FROM charges ORDER BY seq DESC LIMIT 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .unwrap_or_default();
    let jobs = connection.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))?;
    let spent = Spent { units, slack_units: 0, draws: queries };
    let filter = PrivacyFilter::resume(budget, spent)?;
    let epsilon_spent = if units == 0 { 0.0 } else { spent.epsilon(budget.delta) };
    Ok(Report {
        party: party.to_owned(),
        epsilon_budget: budget.epsilon,
        delta: budget.delta,
        epsilon_spent,
        epsilon_remaining: (budget.epsilon - epsilon_spent).max(0.0),
        epsilon_zcdp: if units == 0 { 0.0 } else { spent.epsilon_zcdp(budget.delta) },
        mu_squared_budget: conclave_common::accounting::mu_squared(filter.limit_units()),
        mu_squared_spent: spent.mu_squared(),
        mu_squared_remaining: conclave_common::accounting::mu_squared(filter.remaining_units()),
        share_spent: units as f64 / filter.limit_units() as f64,
        queries,
        jobs,
        created: schema::meta(&connection, path, "created")?,
    })
}
