//! Counts the budget that open jobs may still spend, so that a job is admitted only if its whole cap is free.

use std::collections::HashMap;

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::{AccountingError, Budget, Honest, PrivacyFilter, Spent};
use rusqlite::Connection;

use super::error::LedgerError;
use super::handle::Ledger;
use super::state::{JobState, LedgerState, Masks};

/// The budget available to one job. It follows from queries, grants and the texts of jobs; no record has an influence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Charges of the job itself.
    pub spent: Spent,
    /// The least of the remaining budgets of the data, of the job's analyst, and for the case that all others collude.
    pub left: Spent,
    /// The part of it that no other open job may still spend.
    pub free: Spent,
}

impl Ledger {
    /// Returns the budget available to a job of this analyst, new or known, whose answers the noise of `honest` parties protects.
    ///
    /// Each release of such a job costs at most `honest` times its charge if all others collude, since prices are rounded up.
    ///
    /// # Errors
    /// [`LedgerError::Accounting`].
    pub fn room(&self, job: &str, analyst: &str, honest: Honest) -> Result<Room, LedgerError> {
        let own = match (&self.analyst_cap, self.analysts.get(analyst)) {
            (None, _) => self.filter.clone(),
            (_, Some(filter)) => filter.clone(),
            (Some(cap), None) => PrivacyFilter::resume(cap, self.spent_by(analyst))?,
        };
        let (data, own) = (self.filter.remaining(), own.remaining());
        let mut alone = self.alone.as_ref().map(|filter| filter.remaining().units);
        let within = |spent: Spent, alone: Option<u64>| Spent {
            units: alone.map_or(spent.units, |units| spent.units.min(units / u64::from(honest.get()))),
            ..spent
        };
        let spent = self.state.job(job).map(JobState::committed).unwrap_or_default();
        let mut room = Room { spent, left: within(least(data, own), alone), free: data };
        let mut own_free = own;
        for other in self.state.jobs().iter().filter(|other| other.open && other.id != job) {
            let promised = self.promised(other)?;
            room.free = room.free.minus(promised);
            let if_all_collude = promised.units.saturating_mul(u64::from(self.honest_of(other).get()));
            alone = alone.map(|units| units.saturating_sub(if_all_collude));
            if other.analyst == analyst {
                own_free = own_free.minus(promised);
            }
        }
        room.free = within(least(room.free, own_free), alone);
        Ok(room)
    }

    /// Returns the number of parties whose noise protects an open job's answers: by its roster, and by its text while it has none.
    fn honest_of(&self, job: &JobState) -> Honest {
        let by_roster = job.roster().and_then(|roster| Honest::new(roster.honest));
        let by_text = || self.jobs.get(&job.id).map(|open| open.honest).or(self.before.get(&job.id).copied());
        by_roster.or_else(by_text).unwrap_or_default()
    }

    /// Returns the budget that an open job may still spend; nothing for a job that can no longer be charged.
    fn promised(&self, job: &JobState) -> Result<Spent, AccountingError> {
        // The owner has refreshed the data since: the job is never opened again, and its releases are refused.
        if job.era != self.state.era() {
            return Ok(Spent::default());
        }
        if let Some(open) = self.jobs.get(&job.id) {
            return Ok(open.filter.remaining());
        }
        // An unlock deletes the keys of masks, and with them every masked job before it.
        if job.masks != Masks::None && job.seq <= self.state.given_up() {
            return Ok(Spent::default());
        }
        let number = |text: &str| text.parse().unwrap_or(f64::NAN);
        let cap = Budget::new(number(&job.cap.0), number(&job.cap.1))?.of(self.budget.unit).reserving(job.reserve_cap);
        Ok(PrivacyFilter::resume(&cap, job.committed())?.remaining())
    }
}

/// Reads the texts of the jobs that were open when the ledger was last used and have no roster: each returns the number of parties whose
/// noise will protect the job's answers. A text that cannot be read counts as the largest number, since a later build may open the job.
///
/// # Errors
/// A failure of the database.
pub(super) fn honest_before(connection: &Connection, state: &LedgerState) -> rusqlite::Result<HashMap<String, Honest>> {
    let largest = Honest::new(Honest::MOST).unwrap_or_default();
    let mut select = connection.prepare("SELECT spec_toml FROM jobs WHERE seq = ?1")?;
    let mut may_be_masked = |job: &JobState| -> rusqlite::Result<(String, Honest)> {
        let text: String = select.query_row([job.seq], |row| row.get(0))?;
        Ok((job.id.clone(), JobSpec::parse(&text).map_or(largest, |spec| spec.honest())))
    };
    let without_roster = |job: &&JobState| match job.masks {
        // A job that was charged by itself gets no key.
        Masks::None => job.committed() == Spent::default(),
        Masks::Keyed(_) => true,
        Masks::Under(_) => false,
    };
    state.jobs().iter().filter(|job| job.open).filter(without_roster).map(&mut may_be_masked).collect()
}

fn least(a: Spent, b: Spent) -> Spent {
    a.minus(a.minus(b))
}
