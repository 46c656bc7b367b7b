//! The owner's view of the jobs submitted to this party: their states and spending.

use std::path::Path;

use conclave_common::job::JobSpec;
use conclave_pages::short_id::{self, NoMatch};
use conclave_pages::waiting;
use conclave_privacy::accounting::{Budget, Spent, gaussian_dp, mu_squared};
use serde::Serialize;

use crate::error::StartError;
use crate::ledger_views::{approvals, settled_ms};
use conclave_ops::Clock;
use conclave_vault::consent::{ConsentError, ConsentStore, Request, Standing};
use conclave_vault::ledger::LedgerError;

use super::permit::{Permit, PermitError};
use super::terms::Terms;
use super::totals::{JobTotals, job_totals};

/// The state of a job, for the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// No decision has been made.
    Awaiting,
    /// Approved, but not started.
    Approved,
    /// Rejected.
    Rejected,
    /// Approved earlier, then withdrawn.
    Revoked,
    /// Approved, under a permit that has ended.
    Expired,
    /// Open: its queries may be answered.
    Running,
    /// Ended by the coordinator; it would have to be reopened, which a masked job never is.
    Closed,
}

/// The coordinator's words for a job that its analyst cancelled, and for one that ended regularly.
const CANCELLED: &str = "cancelled";
const FINISHED: [&str; 2] = ["finished", "done"];

impl State {
    /// Returns the word for a reader; programs get the serialised one.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Awaiting => waiting::FOR_CONSENT,
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Running => "running",
            // The coordinator's word.
            Self::Closed => "finished",
        }
    }

    /// Every state, in the order of a job's course.
    pub(crate) const ALL: [Self; 7] =
        [Self::Awaiting, Self::Approved, Self::Running, Self::Closed, Self::Expired, Self::Rejected, Self::Revoked];
}

/// One job.
#[derive(Debug, Clone)]
pub(crate) struct JobView {
    pub(crate) request: Request,
    /// The parsed job, if this version can read it.
    pub(crate) spec: Option<JobSpec>,
    /// The job's totals in the ledger, once it was opened.
    pub(crate) totals: Option<JobTotals>,
    /// The owner's terms.
    pub(crate) terms: Terms,
    /// The reason for which the permit does not hold now.
    pub(crate) ended: Option<PermitError>,
}

impl JobView {
    /// Builds the view of a request, with its totals if it was opened and without terms from the ledger.
    pub(crate) fn of(request: Request, totals: &[JobTotals]) -> Self {
        Self {
            spec: JobSpec::parse(&request.spec_toml).ok(),
            totals: totals.iter().find(|t| t.job == request.job).cloned(),
            terms: Terms::new(&request, None),
            ended: None,
            request,
        }
    }

    pub(crate) fn state(&self) -> State {
        match (self.request.standing(), &self.totals) {
            (Standing::Awaiting, Some(totals)) if totals.closed.is_some() => State::Closed,
            (Standing::Awaiting, _) => State::Awaiting,
            (Standing::Rejected, _) => State::Rejected,
            (Standing::Revoked, _) => State::Revoked,
            (Standing::Approved, _) if self.ended.is_some() => State::Expired,
            (Standing::Approved, None) => State::Approved,
            (Standing::Approved, Some(totals)) if totals.closed.is_some() => State::Closed,
            (Standing::Approved, Some(_)) => State::Running,
        }
    }

    /// Returns the word of the state for a reader. A job that has ended is finished only if it did not end before.
    pub(crate) fn state_words(&self) -> &'static str {
        match self.stated_end() {
            Some(CANCELLED) => CANCELLED,
            _ if self.early_end().is_some() => "ended early",
            _ => self.state().as_str(),
        }
    }

    /// Returns the coordinator's reason for the end of a job that has ended there.
    fn stated_end(&self) -> Option<&str> {
        self.totals.as_ref()?.end.as_deref().filter(|_| self.state() == State::Closed)
    }

    /// Returns the stated reason for which a job ended early.
    pub(crate) fn early_end(&self) -> Option<&str> {
        self.stated_end().filter(|reason| *reason != CANCELLED && !FINISHED.contains(reason))
    }

    /// Returns true if the job uses the records or may do so.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.state(), State::Awaiting | State::Approved | State::Running)
    }

    /// Returns true if the job has ended at the coordinator, which can open it again: the owner's consent stands until it is revoked.
    pub(crate) fn can_be_reopened(&self) -> bool {
        let same_data = self.totals.as_ref().is_some_and(|totals| !totals.is_refreshed);
        self.state() == State::Closed && self.request.standing() == Standing::Approved && same_data && !self.is_masked()
    }

    /// Returns true if the job may still spend a part of the budget.
    pub(crate) fn may_spend(&self) -> bool {
        self.is_live() || self.can_be_reopened()
    }

    /// Returns true if the job's answers are masked: its end is then permanent.
    pub(crate) fn is_masked(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.aggregation.is_secure())
    }

    pub(crate) fn name(&self) -> &str {
        self.spec.as_ref().map_or("(not readable)", |spec| spec.name.as_str())
    }

    /// Returns the owner's terms of the approval, if there are any that this version can read; the stricter, should the ledger have others.
    pub(crate) fn permit(&self) -> Option<Permit> {
        self.terms.permit()
    }

    /// Names the key that signed the job.
    pub(crate) fn signer(&self) -> String {
        let unknown = "not stored: the job was entered by a version that did not keep it";
        self.terms.signer().map_or_else(|| unknown.to_owned(), |key| key.to_string())
    }

    pub(crate) fn spent(&self) -> Spent {
        self.totals.as_ref().map(|t| t.spent).unwrap_or_default()
    }

    /// Returns the Gaussian-DP epsilon spent by the job, at the delta of the data's budget.
    pub(crate) fn epsilon_spent(&self, budget: &Budget) -> f64 {
        match self.spent().units {
            0 => 0.0,
            units => gaussian_dp::epsilon(mu_squared(units).sqrt(), budget.delta),
        }
    }
}

/// Returns all jobs in the order of their submission. Jobs known only to the ledger come first, for instance after the file of
/// decisions was lost.
///
/// # Errors
/// [`LedgerError::Missing`] without a ledger; a failure of either database.
pub(crate) fn jobs(ledger: &Path) -> Result<Vec<JobView>, StartError> {
    let requests = open(ledger)?.requests()?;
    let totals = job_totals(ledger)?;
    let (mut entered, now_ms) = (approvals(ledger)?, settled_ms(ledger)?.max(Clock::Party.now_ms()));
    let ledger_only = totals.iter().filter(|t| !requests.iter().any(|request| request.job == t.job)).map(request_of);
    let all: Vec<Request> = ledger_only.collect::<Vec<_>>().into_iter().chain(requests).collect();
    let view = |request: Request| {
        let terms = Terms::new(&request, entered.remove(&request.job));
        let ended = terms.check(now_ms).err().filter(|_| request.standing() == Standing::Approved);
        JobView { ended, terms, ..JobView::of(request, &totals) }
    };
    Ok(all.into_iter().map(view).collect())
}

/// Finds one job by its id or a prefix of it.
///
/// # Errors
/// As [`jobs`]; no job, or several, with these first characters.
pub(crate) fn find(ledger: &Path, id: &str) -> Result<JobView, StartError> {
    let all = jobs(ledger)?;
    let found = short_id::choose(id, all.iter().map(|job| &*job.request.job));
    match found.map(str::to_owned) {
        Ok(whole) => all.into_iter().find(|job| job.request.job == whole).ok_or_else(|| ConsentError::Unknown(whole).into()),
        Err(NoMatch::Unknown) => Err(ConsentError::Unknown(id.to_owned()).into()),
        Err(NoMatch::Several(which)) => Err(StartError::Input(which)),
    }
}

/// Reconstructs a request from the ledger, without a decision.
fn request_of(totals: &JobTotals) -> Request {
    let JobTotals { job, analyst, digest, spec_toml, opened, .. } = totals.clone();
    Request { job, analyst, digest, spec_toml, asked: opened, decided: None, permit: None, signer: None }
}

fn open(ledger: &Path) -> Result<ConsentStore, StartError> {
    if !ledger.exists() {
        return Err(LedgerError::Missing(ledger.to_owned()).into());
    }
    Ok(ConsentStore::open(ledger)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::consent::Decided;
    use conclave_vault::ledger::Ledger;
    use conclave_vault::testing::{JOB, MEAN_TOML, budget, entry, masked_toml};

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
        // The first characters are unique over the decisions and the ledger together.
        let mut store = ConsentStore::open(&path).unwrap();
        let other = format!("{}zz", &JOB[..3]);
        let request = conclave_proto::v1::OpenJob { job: other.clone(), analyst: "bob".to_owned(), ..Default::default() };
        store.ask(&request, &[1; 32]).unwrap();
        assert_eq!(find(&path, &other).unwrap().request.analyst, "bob");
        let several = find(&path, &JOB[..3]).unwrap_err().to_string();
        assert!(
            several.contains("the ids of 2 jobs begin with") && several.contains(JOB) && several.contains(&other),
            "{several}"
        );
    }

    /// A finished job is reopened while its approval stands; a masked or a revoked one, or one on data that were refreshed, is not. An ended
    /// permit makes any approved job expired. Programs read the words of before.
    #[test]
    fn states_have_one_word_each_and_say_what_may_follow() {
        let request = |toml: &str, standing| {
            let decided = Decided { standing, time: String::new(), decider: "owner".into(), reason: String::new() };
            let (job, analyst, asked) = (JOB.to_owned(), "alice".to_owned(), String::new());
            let (digest, spec_toml) = ([1; 32], toml.to_owned());
            Request { job, analyst, digest, spec_toml, asked, decided: Some(decided), permit: None, signer: None }
        };
        let totals = JobTotals {
            job: JOB.to_owned(),
            analyst: "alice".to_owned(),
            digest: [1; 32],
            spec_toml: String::new(),
            opened: "2026-03-02".to_owned(),
            closed: Some("2026-03-03".to_owned()),
            end: Some("finished".to_owned()),
            is_refreshed: false,
            queries: 1,
            spent: Spent::default(),
        };
        let of = |toml: &str, standing, totals: &JobTotals| JobView::of(request(toml, standing), std::slice::from_ref(totals));
        let finished = of(MEAN_TOML, Standing::Approved, &totals);
        assert_eq!((finished.state(), finished.state_words(), finished.early_end()), (State::Closed, "finished", None));
        // A job that was cancelled, or failed, is not said to be finished.
        for (end, words, early) in
            [("cancelled", "cancelled", None), ("policy: withdrawn", "ended early", Some("policy: withdrawn"))]
        {
            let ended = of(MEAN_TOML, Standing::Approved, &JobTotals { end: Some(end.to_owned()), ..totals.clone() });
            assert_eq!((ended.state(), ended.state_words(), ended.early_end()), (State::Closed, words, early));
            let revoked = of(MEAN_TOML, Standing::Revoked, &JobTotals { end: Some(end.to_owned()), ..totals.clone() });
            assert_eq!((revoked.state_words(), revoked.early_end()), ("revoked", None));
        }
        assert_eq!(serde_json::to_string(&finished.state()).unwrap(), "\"closed\"");
        assert!(finished.can_be_reopened() && finished.may_spend() && !finished.is_live());
        let refreshed = JobTotals { is_refreshed: true, ..totals.clone() };
        for over in [
            of(&masked_toml(5, 1), Standing::Approved, &totals),
            of(MEAN_TOML, Standing::Revoked, &totals),
            of(MEAN_TOML, Standing::Approved, &refreshed),
            JobView { ended: Some(PermitError::Unreadable), ..finished.clone() },
        ] {
            assert!(!over.can_be_reopened() && !over.may_spend(), "{over:?}");
        }
        let running = JobTotals { closed: None, end: None, ..totals };
        let expired = JobView { ended: Some(PermitError::Unreadable), ..of(MEAN_TOML, Standing::Approved, &running) };
        assert_eq!((expired.state(), expired.is_live()), (State::Expired, false));
    }
}
