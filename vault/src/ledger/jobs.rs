//! Enters, opens and closes the ledger's jobs: the analyst, the text and the cap of each.

use conclave_common::job::budget_words::reserve_refusal;
use conclave_privacy::accounting::{Budget, Honest, PrivacyFilter, Spent};

use super::delta_reserve::reserve;
use super::entry::{Entry, JobEntered};
use super::error::LedgerError;
use super::events::{JobReserve, Settle, exact};
use super::handle::{DataStanding, Ledger};
use super::state::{JobState, Masks};
use super::unwritten::OpenJob;

/// A job as the ledger enters it. Job id and spec digest together name a job: no part of it may change later.
#[derive(Debug, Clone, Copy)]
pub struct JobEntry<'a> {
    /// Job id.
    pub job: &'a str,
    /// The analyst.
    pub analyst: &'a str,
    /// SHA-256 of the job's text.
    pub spec_digest: &'a [u8; 32],
    /// The job's text.
    pub spec_toml: &'a str,
    /// The job's cap.
    pub cap: Budget,
    /// Number of units of privacy in the shard where it is public, else 0.
    pub records: u64,
    /// Limit on the budget that the job may spend from now on, below its cap; `None` for the cap alone.
    pub room: Option<Spent>,
    /// Number of parties whose noise its answers are priced by.
    pub honest: Honest,
    /// The owner's decision, a JSON object that is entered with the job; `None` where the party keeps no decisions.
    pub approval: Option<&'a str>,
}

/// Jobs of one analyst in a ledger that never asked a query may exceed those that did by at most this number.
const MOST_IDLE: usize = 256;
/// Times that a job may be opened again without a query in between.
const MOST_REOPENINGS: u32 = 64;

impl Ledger {
    /// Limits free entries: a job that is opened, closed and opened again, or one of many that never ask a query, may not make the ledger
    /// grow without end. Nothing is entered.
    ///
    /// # Errors
    /// [`LedgerError::Job`] where the job, or the analyst's jobs together, have been opened without a query too often.
    pub fn admit_idle(&self, job: &str, analyst: &str) -> Result<(), LedgerError> {
        if let Some(known) = self.state.job(job) {
            return if known.open || known.idle < MOST_REOPENINGS {
                Ok(())
            } else {
                Err(LedgerError::Job(format!("job {job} was opened {MOST_REOPENINGS} times without a query; submit a new job")))
            };
        }
        let theirs = self.state.jobs().iter().filter(|known| known.analyst == analyst);
        let (idle, asked) = theirs.fold((0, 0), |(idle, asked), known| match known.spent.draws {
            0 => (idle + 1, asked),
            _ => (idle, asked + 1),
        });
        if idle >= MOST_IDLE + asked {
            return Err(LedgerError::Job(format!(
                "analyst {analyst} has {idle} jobs in this party's ledger that never asked a query: continue one of those"
            )));
        }
        Ok(())
    }

    /// Opens a job for charging, or opens it again: after a restart, a reconnection or a close. Its earlier charges stay.
    ///
    /// # Errors
    /// [`LedgerError::Behind`] while the ledger is behind a head. [`LedgerError::Data`] where the data have changed without the owner's
    /// confirmation. [`LedgerError::Job`] where the id stands for another job, or the data have changed since the job first opened; the
    /// ledger stays in use. [`LedgerError::Halted`] after any failure of the database.
    pub fn open_job(&mut self, entry: &JobEntry<'_>) -> Result<(), LedgerError> {
        self.alive()?;
        if let Some(behind) = self.behind() {
            return Err(behind);
        }
        match self.try_open(entry) {
            // These concern the job and leave the ledger sound.
            Err(e @ (LedgerError::Job(_) | LedgerError::Accounting(_) | LedgerError::Data(_))) => Err(e),
            result => self.fail_stop(result),
        }
    }

    fn try_open(&mut self, entry: &JobEntry<'_>) -> Result<(), LedgerError> {
        let cap = entry.cap.of(self.budget.unit);
        // A cap that cannot be accounted for is refused before it is entered.
        let filter = PrivacyFilter::new(&cap)?;
        if let DataStanding::Changed(columns) = &self.data {
            return Err(LedgerError::Data(columns.clone()));
        }
        match self.state.job(entry.job) {
            None => {
                self.reserve_left().admit(entry.cap.grantable_reserve_units(), &entry.cap).map_err(LedgerError::Job)?;
                self.enter(entry)?;
            }
            Some(job) => {
                must_be(job, entry)?;
                if job.era != self.state.era() {
                    return Err(LedgerError::Job(format!(
                        "the data have been refreshed since job {} opened; submit a new job",
                        entry.job
                    )));
                }
                let (seq, open) = (job.seq, job.open);
                if !open && job.masks != Masks::None {
                    return Err(LedgerError::Job(format!(
                        "job {} has ended, and the key of its masks is gone with it; submit a new job",
                        entry.job
                    )));
                }
                if !open {
                    self.write(true, |writer| writer.event("open", seq, "{}"))?;
                }
                if self.jobs.contains_key(entry.job) {
                    return Ok(());
                }
            }
        }
        let Some(job) = self.state.job(entry.job) else { return Ok(()) };
        let (seq, spent) = (job.seq, job.committed());
        let filter = entry.room.iter().fold(filter.with_spent(spent), |filter, room| filter.within_room(*room));
        let analyst = entry.analyst.to_owned();
        self.resume_analyst(&analyst)?;
        self.jobs.insert(entry.job.to_owned(), OpenJob { seq, analyst, filter, honest: entry.honest, taken: Spent::default() });
        Ok(())
    }

    /// Returns the reserve of delta for blocks of subsampled releases.
    pub fn reserve_left(&self) -> ReserveLeft {
        ReserveLeft { set_aside: self.budget.reserve_units, left: self.filter.remaining().reserve_units }
    }

    fn enter(&mut self, entry: &JobEntry<'_>) -> Result<(), LedgerError> {
        let (epsilon, delta) = (exact(entry.cap.epsilon), exact(entry.cap.delta));
        let fingerprint = self.data_fingerprint();
        self.write(true, |writer| {
            writer.write(&Entry::Job(JobEntered {
                seq: writer.next(),
                time_ms: writer.time_ms(),
                job: entry.job,
                analyst: entry.analyst,
                spec_digest: entry.spec_digest,
                spec_toml: entry.spec_toml,
                cap_epsilon: &epsilon,
                cap_delta: &delta,
                records: entry.records,
                fingerprint: &fingerprint,
            }))?;
            let job = writer.state().seq();
            if entry.cap.reserve_units > 0 {
                writer.event(JobReserve::KIND, job, &JobReserve { reserve: entry.cap.reserve_units }.body())?;
            }
            // In the job's own transaction: no crash leaves a job without its approval.
            entry.approval.map_or(Ok(()), |approval| writer.event("approve", job, approval))
        })
    }

    /// Returns the charges of all jobs of an analyst.
    pub fn spent_by(&self, analyst: &str) -> Spent {
        let theirs = self.state.jobs().iter().filter(|job| job.analyst == analyst);
        theirs.map(JobState::committed).fold(Spent::default(), |a, b| a.plus(b).unwrap_or(a))
    }

    /// Returns the limit on all jobs of an analyst together, where the owner sets one.
    pub fn analyst_cap(&self) -> Option<&Budget> {
        self.analyst_cap.as_ref()
    }

    /// Makes the filter of an analyst's cap from the charges of all of the analyst's jobs.
    fn resume_analyst(&mut self, analyst: &str) -> Result<(), LedgerError> {
        let Some(cap) = &self.analyst_cap else { return Ok(()) };
        if !self.analysts.contains_key(analyst) {
            let filter = PrivacyFilter::resume(cap, self.spent_by(analyst))?;
            self.analysts.insert(analyst.to_owned(), filter);
        }
        Ok(())
    }

    /// Closes a job: it cannot be charged until it is opened again. Closing a job that is not open does nothing.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database.
    pub fn close_job(&mut self, job: &str, reason: &str) -> Result<(), LedgerError> {
        self.alive()?;
        let result = self.try_close_job(job, reason);
        self.fail_stop(result)
    }

    fn try_close_job(&mut self, job: &str, reason: &str) -> Result<(), LedgerError> {
        let settle = self.settle(job, "closed");
        let seq = match (self.jobs.remove(job), self.state.job(job)) {
            (Some(open), _) => open.seq,
            // Opened before this process began, and not since: it ended while the party was away. A ledger that is behind may differ in its
            // newer part.
            (None, Some(known)) if known.open && known.block.is_none() && self.lost.is_none() => known.seq,
            (None, _) => return Ok(()),
        };
        let body = serde_json::json!({ "reason": reason }).to_string();
        self.write(true, |writer| {
            if let Some(settle) = &settle {
                writer.event(Settle::KIND, seq, &settle.body())?;
            }
            writer.event("close", seq, &body)
        })
    }
}

/// The owner's reserve of delta for blocks of subsampled releases, in units of 2^-60.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReserveLeft {
    /// Units that the owner set aside.
    pub set_aside: u64,
    /// Units that no block has taken.
    pub left: u64,
}

impl ReserveLeft {
    /// Checks that the remaining reserve holds the part of delta, in units of 2^-60, that the blocks of a job of this cap may yet take.
    ///
    /// # Errors
    /// A sentence that names the key and the remedy.
    pub fn admit(self, part: u64, cap: &Budget) -> Result<(), String> {
        if part <= self.left {
            return Ok(());
        }
        Err(reserve_refusal(self.set_aside > 0, reserve(cap.reserve_units)))
    }
}

fn must_be(job: &JobState, entry: &JobEntry<'_>) -> Result<(), LedgerError> {
    if job.spec_digest != *entry.spec_digest || job.analyst != entry.analyst {
        return Err(LedgerError::Job(format!("job id {} stands for another job in this ledger", entry.job)));
    }
    if job.reserve_cap != entry.cap.reserve_units {
        return Err(LedgerError::Job(format!("job {} may take another part of the reserve of delta in this ledger", entry.job)));
    }
    if job.records != entry.records {
        return Err(LedgerError::Job(format!(
            "the data have changed since the job opened: {} records then, {} now; submit a new job",
            job.records, entry.records
        )));
    }
    Ok(())
}
