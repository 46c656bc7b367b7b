//! The owner's view of every job that was asked of this party: where it stands and what it has spent.

use std::path::Path;

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::{Budget, Spent, gaussian_dp, mu_squared};
use serde::Serialize;

use crate::error::StartError;
use conclave_vault::consent::{ConsentError, ConsentStore, Request, Standing};
use conclave_vault::ledger::LedgerError;

use super::totals::{JobTotals, job_totals};

/// Where a job stands, for the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Nobody has decided.
    Awaiting,
    /// Approved, and not begun.
    Approved,
    /// Rejected.
    Rejected,
    /// Approved once, and withdrawn.
    Revoked,
    /// Open: it may be answered.
    Running,
    /// Ended by the coordinator; it would have to be opened again, which a job whose answers leave masked never is.
    Closed,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Awaiting => "awaiting",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Revoked => "revoked",
            Self::Running => "running",
            Self::Closed => "closed",
        }
    }
}

/// One job.
#[derive(Debug, Clone)]
pub(crate) struct JobView {
    /// As it was asked for.
    pub(crate) request: Request,
    /// The job, where this version reads it.
    pub(crate) spec: Option<JobSpec>,
    /// What the ledger has of it, once it was opened.
    pub(crate) totals: Option<JobTotals>,
}

impl JobView {
    /// Where it stands.
    pub(crate) fn state(&self) -> State {
        match (self.request.standing(), &self.totals) {
            (Standing::Awaiting, Some(totals)) if totals.closed.is_some() => State::Closed,
            (Standing::Awaiting, _) => State::Awaiting,
            (Standing::Rejected, _) => State::Rejected,
            (Standing::Revoked, _) => State::Revoked,
            (Standing::Approved, None) => State::Approved,
            (Standing::Approved, Some(totals)) if totals.closed.is_some() => State::Closed,
            (Standing::Approved, Some(_)) => State::Running,
        }
    }

    /// Whether it uses the records, or is about to.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.state(), State::Awaiting | State::Approved | State::Running)
    }

    /// Whether its answers leave masked: once it is over, it is so for good.
    pub(crate) fn is_masked(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.aggregation.is_secure())
    }

    /// The analyst's name for it.
    pub(crate) fn name(&self) -> &str {
        self.spec.as_ref().map_or("(not readable)", |spec| spec.name.as_str())
    }

    /// What it has spent.
    pub(crate) fn spent(&self) -> Spent {
        self.totals.as_ref().map(|t| t.spent).unwrap_or_default()
    }

    /// Gaussian-DP epsilon of what it has spent, at the delta of the data's budget.
    pub(crate) fn epsilon_spent(&self, budget: &Budget) -> f64 {
        match self.spent().units {
            0 => 0.0,
            units => gaussian_dp::epsilon(mu_squared(units).sqrt(), budget.delta),
        }
    }
}

/// All jobs, in the order in which they were asked for; before them any that only the ledger knows, as when the file of decisions was
/// lost.
///
/// # Errors
/// [`LedgerError::Missing`] where there is no ledger; a failure of either database.
pub(crate) fn jobs(ledger: &Path) -> Result<Vec<JobView>, StartError> {
    let asked = open(ledger)?.requests()?;
    let totals = job_totals(ledger)?;
    let unasked = totals.iter().filter(|t| !asked.iter().any(|request| request.job == t.job)).map(request_of);
    let all: Vec<Request> = unasked.collect::<Vec<_>>().into_iter().chain(asked).collect();
    Ok(all.into_iter().map(|request| view(request, &totals)).collect())
}

/// One job, by its id or the beginning of it.
///
/// # Errors
/// As [`jobs`]; a job that is not there.
pub(crate) fn find(ledger: &Path, id: &str) -> Result<JobView, StartError> {
    let totals = job_totals(ledger)?;
    match open(ledger)?.request(id) {
        Ok(request) => Ok(view(request, &totals)),
        Err(unknown @ ConsentError::Unknown(_)) => {
            let mut found = totals.iter().filter(|t| !id.is_empty() && t.job.starts_with(id));
            match (found.next(), found.next()) {
                (Some(only), None) => Ok(view(request_of(only), &totals)),
                _ => Err(unknown.into()),
            }
        }
        Err(e) => Err(e.into()),
    }
}

/// A job as the ledger has it; what was decided on it is not known.
fn request_of(totals: &JobTotals) -> Request {
    let JobTotals { job, analyst, digest, spec_toml, opened, .. } = totals.clone();
    Request { job, analyst, digest, spec_toml, asked: opened, decided: None }
}

fn open(ledger: &Path) -> Result<ConsentStore, StartError> {
    if !ledger.exists() {
        return Err(LedgerError::Missing(ledger.to_owned()).into());
    }
    Ok(ConsentStore::open(ledger)?)
}

fn view(request: Request, totals: &[JobTotals]) -> JobView {
    JobView {
        spec: JobSpec::parse(&request.spec_toml).ok(),
        totals: totals.iter().find(|t| t.job == request.job).cloned(),
        request,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::ledger::Ledger;
    use conclave_vault::testing::{JOB, budget, entry};

    #[test]
    fn a_job_that_only_the_ledger_knows_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        assert!(jobs(&path).is_err());
        Ledger::init(&path, "hospital-a", &budget()).unwrap();
        let mut ledger = Ledger::open(&path, "hospital-a", &budget()).unwrap();
        ledger.open_job(&entry(JOB, budget())).unwrap();
        ledger.close_job(JOB, "done").unwrap();
        let all = jobs(&path).unwrap();
        assert_eq!((all.len(), all[0].state(), all[0].request.analyst.as_str()), (1, State::Closed, "alice"));
        assert_eq!(find(&path, &JOB[..3]).unwrap().request.job, JOB);
        assert!(find(&path, "x").is_err() && find(&path, "").is_err());
    }
}
