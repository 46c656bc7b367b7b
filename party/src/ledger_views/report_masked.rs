//! The report on masked jobs: their rosters and keys, and the total spending under full collusion.
//!
//! The totals hold the charges. Each masked charge also stores its cost without the other parties' noise, and a job is masked
//! from its first charge to its last or not at all. The total under collusion is therefore the sum of the other jobs' totals and
//! of one pass over the masked charges.

use std::collections::{HashMap, HashSet};

use conclave_privacy::accounting;
use conclave_privacy::accounting::{PrivacyFilter, gaussian_dp};
use rusqlite::Connection;
use serde::Serialize;

use super::job_totals::JobRow;
use super::moment::to_milliseconds;
use conclave_vault::clock::now_ms;
use conclave_vault::ledger::components;
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::{AllCollude, MaskKey, RosterEntered};
use conclave_vault::ledger::settings::LedgerSettings;

/// Spending of the data if all other parties of masked jobs collude.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct IfAllCollude {
    /// Gaussian-DP epsilon, at the budget's delta.
    pub epsilon_spent: f64,
    /// mu², open blocks included: unmasked jobs at their charge, masked ones as if each answer had been opened alone.
    pub mu_squared_spent: f64,
    /// The owner's limit on epsilon (`secure.max_epsilon_if_all_collude`), at the budget's delta.
    pub epsilon_limit: Option<f64>,
    /// mu² admitted by that limit.
    pub mu_squared_limit: Option<f64>,
}

/// A job with masked answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MaskedJob {
    pub job: String,
    /// True if the job is open; once closed it is never reopened.
    pub open: bool,
    /// Creation time of its key, UTC.
    pub key_made: String,
    /// Age in days of the key if it still exists; it is deleted when the job ends.
    pub key_age_days: Option<u64>,
    /// Digest of the roster, once it is entered; the following fields likewise.
    pub roster: Option<String>,
    /// Assumed number of other members that collude with the coordinator.
    pub colluders: Option<u32>,
    /// Number of parties whose noise then protects this one's answers.
    pub honest: Option<u32>,
    pub members: Vec<MaskedMember>,
}

/// A member of an entered roster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MaskedMember {
    pub name: String,
    /// Fingerprint of its identity key, as printed by `conclave-party fingerprint` at that member.
    pub fingerprint: String,
    /// True if the owner had pinned it, or if it is the party itself.
    pub pinned: bool,
}

/// Computes the total spending under full collusion; `None` if no job is masked and no limit is set.
pub(super) fn if_all_collude(
    connection: &Connection,
    settings: &LedgerSettings,
    rows: &[JobRow],
    masked: &[MaskedJob],
) -> Result<Option<IfAllCollude>, LedgerError> {
    let limit = limit(connection, settings)?;
    let stored = components::are_masked(connection)?;
    if masked.is_empty() && limit.is_none() && !stored {
        return Ok(None);
    }
    // In floating point: the total without other parties' noise may exceed 64 bits.
    let alone: f64 = match stored {
        true => connection.query_row("SELECT total(alone) FROM charges", [], |row| row.get(0))?,
        false => 0.0,
    };
    let masked: HashSet<&str> = masked.iter().map(|job| job.job.as_str()).collect();
    let others = rows.iter().filter(|row| !masked.contains(row.job.as_str()));
    let others = others.map(|row| row.charge.saturating_add(row.reserved)).fold(0, u64::saturating_add);
    let mu_squared = accounting::mu_squared(others) + alone * accounting::mu_squared(1);
    let delta = settings.budget.delta;
    Ok(Some(IfAllCollude {
        epsilon_spent: epsilon_of(mu_squared, delta),
        mu_squared_spent: mu_squared,
        epsilon_limit: limit.map(|(epsilon, _)| epsilon),
        mu_squared_limit: limit.map(|(_, mu_squared)| mu_squared),
    }))
}

/// Returns the owner's limit as epsilon and mu²: the ledger's latest, or the configuration's if the party has not started with it
/// yet.
fn limit(connection: &Connection, settings: &LedgerSettings) -> Result<Option<(f64, f64)>, LedgerError> {
    let mut select = connection.prepare("SELECT body FROM events WHERE kind = ?1 ORDER BY seq DESC LIMIT 1")?;
    let mut bodies = select.query_map([AllCollude::KIND], |row| row.get::<_, String>(0))?;
    let entered = bodies.next().transpose()?.and_then(|body| AllCollude::parse(&body).ok()?.budget(settings.budget.unit).ok());
    let Some(limit) = entered.or(settings.all_collude) else { return Ok(None) };
    let units = PrivacyFilter::new(&limit.of(settings.budget.unit))?.limit_units();
    Ok(Some((limit.epsilon, accounting::mu_squared(units))))
}

/// Returns every job that has a mask key, in the order of the keys.
pub(super) fn masked_jobs(connection: &Connection, rows: &[JobRow]) -> Result<Vec<MaskedJob>, LedgerError> {
    let rows: HashMap<u64, &JobRow> = rows.iter().map(|row| (row.seq, row)).collect();
    let mut select = connection.prepare("SELECT job, kind, time_ms, body FROM events WHERE kind IN (?1, ?2) ORDER BY seq")?;
    let mut events = select.query([MaskKey::KIND, RosterEntered::KIND])?;
    let mut jobs: Vec<(u64, MaskedJob)> = Vec::new();
    while let Some(event) = events.next()? {
        let (seq, kind): (u64, String) = (event.get(0)?, event.get(1)?);
        if kind == MaskKey::KIND {
            let made: i64 = event.get(2)?;
            // The key's entry follows that of its job.
            let Some(row) = rows.get(&seq) else { continue };
            let open = row.closed_ms.is_none();
            let age = u64::try_from(now_ms().saturating_sub(made)).unwrap_or(0) / 86_400_000;
            jobs.push((
                seq,
                MaskedJob {
                    job: row.job.clone(),
                    open,
                    key_made: to_milliseconds(made),
                    key_age_days: open.then_some(age),
                    roster: None,
                    colluders: None,
                    honest: None,
                    members: Vec::new(),
                },
            ));
        } else if let (Some((_, job)), Ok(roster)) = (
            jobs.iter_mut().find(|(of, _)| *of == seq),
            // Validated by every start.
            RosterEntered::parse(event.get_ref(3)?.as_str().unwrap_or_default()),
        ) {
            (job.colluders, job.honest) = (Some(roster.colluders), Some(roster.honest));
            job.members = roster
                .members
                .into_iter()
                .map(|m| MaskedMember { name: m.name, fingerprint: format!("sha256:{}", m.identity), pinned: m.pinned })
                .collect();
            job.roster = Some(roster.digest);
        }
    }
    Ok(jobs.into_iter().map(|(_, job)| job).collect())
}

/// Returns the Gaussian-DP epsilon; 0 if nothing is spent.
pub(super) fn epsilon_of(mu_squared: f64, delta: f64) -> f64 {
    if mu_squared > 0.0 { gaussian_dp::epsilon(mu_squared.sqrt(), delta) } else { 0.0 }
}
