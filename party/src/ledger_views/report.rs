//! The budget report for the owner: read without the lock, so that it works while the party runs, and without reading
//! every entry.
//!
//! The figures come from the table of totals, which every start checks against the entries.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use conclave_inference::figures::zcdp;
use conclave_privacy::accounting;
use conclave_privacy::accounting::{Budget, PrivacyFilter, Spent};
use rusqlite::Connection;
use serde::Serialize;

use super::blocks;
use super::job_totals::{JobRow, job_rows};
use super::moment::to_milliseconds;
use super::report_masked::{IfAllCollude, MaskedJob, epsilon_of, if_all_collude, masked_jobs};
use conclave_vault::ledger::delta_reserve::{reserve, written};
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::schema;
use conclave_vault::ledger::schema::genesis;
use conclave_vault::ledger::settings::LedgerSettings;

/// The state of the data's budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub party: String,
    /// Unit of privacy protected by the budget.
    pub unit: String,
    pub epsilon_budget: f64,
    /// The delta of charges in mu²; the budget's delta unless a part of it is reserved.
    pub delta: f64,
    /// Gaussian-DP epsilon of the spent mu², at the budget's delta: a running total, not a separate guarantee.
    pub epsilon_spent: f64,
    /// The largest epsilon that one new job could still get, at the budget's delta. Epsilons of several jobs do not add;
    /// mu² does.
    pub epsilon_new_job: f64,
    /// The same spending by zCDP accounting, about 7% looser.
    pub epsilon_zcdp: f64,
    /// The part of the promised delta reserved for blocks of subsampled releases, in addition to `delta`; 0 without a reserve.
    pub delta_reserve: f64,
    /// The part of the reserve taken by blocks.
    pub delta_reserve_spent: f64,
    pub delta_reserve_remaining: f64,
    /// The total promised delta: `delta` and the reserve.
    pub delta_promised: f64,
    /// mu² that the budget admits, after the slack for discrete noise.
    pub mu_squared_budget: f64,
    /// Spent mu², open blocks included.
    pub mu_squared_spent: f64,
    /// Part of `mu_squared_spent` that is reserved ahead and not used yet.
    pub mu_squared_reserved: f64,
    pub mu_squared_remaining: f64,
    /// Part of `mu_squared_remaining` that the caps of open jobs promise to them; a new job gets the rest unless the policy
    /// over-commits.
    pub mu_squared_promised: f64,
    /// The largest epsilon of one more job beside the open ones, at the budget's delta.
    pub epsilon_room: f64,
    /// Spent share of mu², 0 to 1.
    pub share_spent: f64,
    /// Numbers charged, over all jobs.
    pub queries: u64,
    /// Spent noise draws, forfeited ones and open blocks included.
    pub draws_spent: u64,
    /// Remaining noise draws. They are priced so that the budget ends first.
    pub draws_remaining: u64,
    /// Spent share of the allowance for discrete noise, 0 to 1; priced so that the budget ends first.
    pub slack_share_spent: f64,
    pub jobs: u64,
    /// Creation time of the ledger, UTC.
    pub created: String,
    pub open_jobs: Vec<JobReport>,
    pub analysts: Vec<AnalystReport>,
    /// Spending under full collusion of the other parties of masked jobs; `None` if no job is masked and no limit is set.
    pub if_all_collude: Option<IfAllCollude>,
    pub masked_jobs: Vec<MaskedJob>,
    /// Exact figures of mu², of which the others are roundings.
    #[serde(skip)]
    pub units: Units,
}

/// The budget in units of 2^-48 mu².
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Units {
    /// The whole budget, after the slack for discrete noise.
    pub whole: u64,
    /// The remaining part.
    pub remaining: u64,
    /// The part of it that the caps of open jobs promise to them.
    pub promised: u64,
}

/// The figures of an open job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct JobReport {
    pub job: String,
    pub analyst: String,
    /// Numbers charged.
    pub queries: u64,
    /// mu² spent, its block included.
    pub mu_squared_spent: f64,
    /// mu² admitted by its own cap.
    pub mu_squared_cap: f64,
    /// mu² of one iteration of all its chains, averaged over the latest; 0 before the first.
    pub mu_squared_per_iteration: f64,
    /// Iterations that the caps and the budget still afford at that price; `None` before the first.
    pub iterations_left: Option<u64>,
}

/// The total spending of one analyst's jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AnalystReport {
    pub analyst: String,
    pub jobs: u64,
    /// Numbers charged.
    pub queries: u64,
    pub mu_squared_spent: f64,
    /// Gaussian-DP epsilon of that, at the budget's delta.
    pub epsilon_spent: f64,
    /// mu² that the owner allows one analyst, if limited.
    pub mu_squared_cap: Option<f64>,
}

/// Range of sequence numbers, counted back from the latest charge, that determines the price of an iteration.
const LATEST: u64 = 512;

/// Reads the totals of a ledger with key and head beside it; takes no lock and writes nothing.
///
/// # Errors
/// As [`report_kept`].
pub(crate) fn report(path: &Path, party: &str, budget: &Budget) -> Result<Report, LedgerError> {
    report_kept(&LedgerSettings::beside(path, party, budget))
}

/// Reads a ledger's totals; takes no lock and writes nothing.
///
/// # Errors
/// [`LedgerError::Missing`], [`LedgerError::Party`], [`LedgerError::Budget`], or a failure of the database.
pub(crate) fn report_kept(settings: &LedgerSettings) -> Result<Report, LedgerError> {
    let path = &settings.ledger;
    let mut connection = schema::connect_read_only(path)?;
    // A snapshot, regardless of concurrent writes.
    let connection = connection.transaction()?;
    let (created, genesis) = genesis(&connection, path)?;
    let budget = &settings.agreed(path, Some(&genesis))?;
    let rows = job_rows(&connection)?;
    let total = |field: fn(&JobRow) -> u64| rows.iter().map(field).fold(0, u64::saturating_add);
    let reserved = total(|row| row.reserved);
    let spent = Spent {
        units: total(|row| row.charge).saturating_add(reserved),
        slack_units: total(|row| row.slack),
        draws: total(|row| row.draws),
        reserve_units: blocks::reserve_spent(&connection)?,
    };
    let filter = PrivacyFilter::resume(budget, spent)?;
    let remaining = filter.remaining().units;
    let masked_jobs = masked_jobs(&connection, &rows)?;
    let open_jobs = open_jobs(&connection, settings, &rows, remaining)?;
    let promised = promised(settings, &rows)?.min(remaining);
    Ok(Report {
        party: settings.party.clone(),
        unit: budget.unit.to_string(),
        epsilon_budget: budget.epsilon,
        delta: budget.delta,
        epsilon_spent: epsilon(spent.units, budget.delta),
        epsilon_new_job: epsilon(remaining, budget.delta),
        epsilon_zcdp: if spent.units == 0 { 0.0 } else { zcdp::epsilon(0.5 * spent.mu_squared(), budget.delta) },
        delta_reserve: reserve(budget.reserve_units),
        delta_reserve_spent: reserve(spent.reserve_units),
        delta_reserve_remaining: reserve(filter.limit().minus(spent).reserve_units),
        delta_promised: written(budget.promised_delta()),
        mu_squared_budget: accounting::mu_squared(filter.limit_units()),
        mu_squared_spent: spent.mu_squared(),
        mu_squared_reserved: accounting::mu_squared(reserved),
        mu_squared_remaining: accounting::mu_squared(remaining),
        mu_squared_promised: accounting::mu_squared(promised),
        epsilon_room: epsilon(remaining - promised, budget.delta),
        share_spent: spent.units as f64 / filter.limit_units() as f64,
        queries: total(|row| row.queries),
        draws_spent: spent.draws,
        draws_remaining: filter.limit().draws.saturating_sub(spent.draws),
        slack_share_spent: spent.slack_units as f64 / filter.limit().slack_units as f64,
        jobs: rows.len() as u64,
        created: to_milliseconds(created),
        open_jobs,
        analysts: analysts(settings, &rows)?,
        if_all_collude: if_all_collude(&connection, settings, &rows, &masked_jobs)?,
        masked_jobs,
        units: Units { whole: filter.limit_units(), remaining, promised },
    })
}

fn epsilon(units: u64, delta: f64) -> f64 {
    epsilon_of(accounting::mu_squared(units), delta)
}

/// Returns the units of mu² that the owner allows one analyst, if limited.
fn analyst_limit(settings: &LedgerSettings) -> Result<Option<u64>, LedgerError> {
    Ok(settings.analyst_cap.as_ref().map(PrivacyFilter::new).transpose()?.map(|filter| filter.limit_units()))
}

fn analysts(settings: &LedgerSettings, rows: &[JobRow]) -> Result<Vec<AnalystReport>, LedgerError> {
    let mut sums: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(&row.analyst).or_default();
        *sum = (sum.0 + 1, sum.1 + row.queries, sum.2.saturating_add(row.charge).saturating_add(row.reserved));
    }
    let cap = analyst_limit(settings)?.map(accounting::mu_squared);
    let report = |(analyst, (jobs, queries, units)): (&str, (u64, u64, u64))| AnalystReport {
        analyst: analyst.to_owned(),
        jobs,
        queries,
        mu_squared_spent: accounting::mu_squared(units),
        epsilon_spent: epsilon(units, settings.budget.delta),
        mu_squared_cap: cap,
    };
    Ok(sums.into_iter().map(report).collect())
}

fn open_jobs(
    connection: &Connection,
    settings: &LedgerSettings,
    rows: &[JobRow],
    budget_remaining: u64,
) -> Result<Vec<JobReport>, LedgerError> {
    let limit = analyst_limit(settings)?;
    let mut reports = Vec::new();
    for row in rows.iter().filter(|row| row.closed_ms.is_none()) {
        let cap = cap_units(settings, row)?;
        let spent = row.charge.saturating_add(row.reserved);
        // Its block's reserve is available to the job itself.
        let mut remaining = cap.saturating_sub(spent).min(budget_remaining);
        if let Some(limit) = limit {
            let theirs = rows.iter().filter(|other| other.analyst == row.analyst);
            remaining = remaining.min(limit.saturating_sub(theirs.map(|other| other.charge + other.reserved).sum()));
        }
        let price = price(connection, row)?;
        reports.push(JobReport {
            job: row.job.clone(),
            analyst: row.analyst.clone(),
            queries: row.queries,
            mu_squared_spent: accounting::mu_squared(spent),
            mu_squared_cap: accounting::mu_squared(cap),
            mu_squared_per_iteration: price.map_or(0.0, |units| units * accounting::mu_squared(1)),
            iterations_left: price.map(|units| ((remaining + row.reserved) as f64 / units) as u64),
        });
    }
    Ok(reports)
}

/// Returns the units of mu² that a job's cap admits.
fn cap_units(settings: &LedgerSettings, row: &JobRow) -> Result<u64, LedgerError> {
    let number = |text: &str| text.parse().unwrap_or(f64::NAN);
    let cap = Budget::new(number(&row.cap.0), number(&row.cap.1))?.of(settings.budget.unit);
    Ok(PrivacyFilter::new(&cap)?.limit_units())
}

/// Returns the units of mu² that open jobs may still spend by their caps, as the ledger counts them when it admits a job.
fn promised(settings: &LedgerSettings, rows: &[JobRow]) -> Result<u64, LedgerError> {
    rows.iter().filter(|row| row.closed_ms.is_none() && !row.is_refreshed).try_fold(0_u64, |sum, row| {
        let spent = row.charge.saturating_add(row.reserved);
        Ok(sum.saturating_add(cap_units(settings, row)?.saturating_sub(spent)))
    })
}

/// Returns the units that one iteration of the job costs, averaged over the latest.
fn price(connection: &Connection, row: &JobRow) -> Result<Option<f64>, LedgerError> {
    let mut select =
        connection.prepare_cached("SELECT iteration, charge, block FROM charges WHERE seq BETWEEN ?1 AND ?2 AND job = ?3")?;
    let mut charges = select.query((row.last_charge.saturating_sub(LATEST), row.last_charge, row.seq))?;
    // A release within a block has been paid for by the block.
    let places = blocks::price_of_places(connection, row.seq)?;
    let (mut iterations, mut units) = (HashSet::new(), 0.0);
    while let Some(charge) = charges.next()? {
        iterations.insert(charge.get::<_, u64>(0)?);
        units += charge.get::<_, u64>(1)? as f64 + places.get(&charge.get(2)?).copied().unwrap_or(0.0);
    }
    Ok((!iterations.is_empty()).then(|| units / iterations.len() as f64))
}
