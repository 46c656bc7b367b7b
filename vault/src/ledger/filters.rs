//! The filters that every charge must pass: the data's, the one for collusion, the analyst's and the job's; and the reasons for a refusal.

use conclave_privacy::accounting::{FilterRefusal, Priced, PrivacyFilter, Spent};

use super::handle::Ledger;

/// Different terms of blocks that a job may ask under before its first one is opened; a regular job asks under one.
pub(super) const MOST_PRICED: usize = 8;

/// The reason for a refusal. A refusal charges nothing, and none depends on a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The data's budget doesn't hold the charge.
    #[error("the data's budget: {0}")]
    DataBudget(FilterRefusal),
    /// The owner's limit for one analyst doesn't hold it.
    #[error("the owner's max_epsilon_per_analyst: {0}")]
    AnalystBudget(FilterRefusal),
    /// The owner's limit in case all other parties collude doesn't hold it.
    #[error("the owner's secure.max_epsilon_if_all_collude: {0}")]
    CollusionBudget(FilterRefusal),
    /// The job's own cap doesn't hold it.
    #[error("the job's own budget: {0}")]
    JobBudget(FilterRefusal),
    /// The id stands for another query.
    #[error("chain {chain} of this iteration was asked before with another content")]
    Conflict {
        /// The chain.
        chain: u32,
    },
    /// The query is being answered.
    #[error("chain {chain} of this iteration is being answered")]
    InFlight {
        /// The chain.
        chain: u32,
    },
    /// A crash may have lost the answer: the query is answered again, under a new charge, when it is asked as the next attempt.
    #[error("chain {chain} of this iteration may have been answered before a crash; ask it as attempt {least}")]
    Attempt {
        /// The chain.
        chain: u32,
        /// The least attempt under which it is answered.
        least: u32,
    },
    /// The job is masked and its roster is not entered; or the message's masks do not match the job's.
    #[error("the job's answers are not asked as its roster says")]
    Roster,
    /// A subsampled query names no possible block, or another kind of query names one.
    #[error("the job's subsampled releases are not those of a block that can be opened")]
    Block,
    /// The job has opened a block of another kind or under other noise.
    #[error("all of a job's blocks are of the kind and under the noise of its first one")]
    OtherBlock,
    /// The job has had too many blocks priced, and opened none.
    #[error("the job asked under {MOST_PRICED} different terms and opened no block under any of them")]
    Priced,
    /// No such job is open.
    #[error("the job is not open")]
    UnknownJob,
    /// The ledger is older than a checkpoint it has already published.
    #[error("the ledger is older than a checkpoint it has already published (possible rollback)")]
    Behind,
}

/// The filters that a charge must pass, innermost last.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    pub(super) data: PrivacyFilter,
    /// The filter for the case that all other parties collude, where the owner limits that.
    pub(super) alone: Option<PrivacyFilter>,
    pub(super) analyst: Option<PrivacyFilter>,
    pub(super) job: PrivacyFilter,
}

impl Filters {
    /// Charges all filters or none, and returns the cost.
    pub(super) fn try_charge(&mut self, releases: &[Priced]) -> Result<Spent, Refusal> {
        // Most owners set no limit for collusion.
        let alone: Vec<Priced> = self.alone.iter().flat_map(|_| releases).map(|release| release.alone()).collect();
        self.try_all(|filter, collude| filter.try_charge(if collude { &alone } else { releases }).map(drop))
    }

    /// Charges the cost of a block to all filters or to none.
    pub(super) fn try_spend(&mut self, cost: Spent) -> Result<(), Refusal> {
        // Each release of a block is opened by itself: it costs the same if all others collude.
        self.try_all(|filter, _| filter.try_spend(cost)).map(drop)
    }

    /// Makes one charge in all filters or in none, and returns the cost; the second argument of `charge` is true for the filter for collusion.
    fn try_all(&mut self, charge: impl Fn(&mut PrivacyFilter, bool) -> Result<(), FilterRefusal>) -> Result<Spent, Refusal> {
        let mut after = self.clone();
        charge(&mut after.data, false).map_err(Refusal::DataBudget)?;
        if let Some(alone) = &mut after.alone {
            charge(alone, true).map_err(Refusal::CollusionBudget)?;
        }
        if let Some(analyst) = &mut after.analyst {
            charge(analyst, false).map_err(Refusal::AnalystBudget)?;
        }
        charge(&mut after.job, false).map_err(Refusal::JobBudget)?;
        let cost = after.data.spent().minus(self.data.spent());
        *self = after;
        Ok(cost)
    }
}

impl Ledger {
    pub(super) fn filters(&self, job: &str) -> Option<Filters> {
        let open = self.jobs.get(job)?;
        let analyst = self.analysts.get(&open.analyst).cloned();
        Some(Filters { data: self.filter.clone(), alone: self.alone.clone(), analyst, job: open.filter.clone() })
    }

    pub(super) fn keep_filters(&mut self, job: &str, filters: Filters) {
        (self.filter, self.alone) = (filters.data, filters.alone);
        if let Some(open) = self.jobs.get_mut(job) {
            if let Some(analyst) = filters.analyst {
                self.analysts.insert(open.analyst.clone(), analyst);
            }
            open.filter = filters.job;
        }
    }
}
