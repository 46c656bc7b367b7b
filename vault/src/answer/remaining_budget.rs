//! Compares a job's cap with the budget available to it, and reports an analyst's remaining budget where the owner allows it.
//!
//! Both follow from the policy, from the ledger's totals and from the caps of open jobs; no record enters them.

use conclave_common::job::JobSpec;
use conclave_common::job::budget_words::{Shortage, askable, epsilon_of};
use conclave_privacy::accounting::{Budget, Honest, PrivacyFilter, PrivacyUnit, Spent};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1;

use super::answerer::Answerer;
use super::faults::ledger_fault;
use crate::config::Policy;
use crate::ledger::{LedgerError, Room};

/// The budget that a job asks for, and the budget available to it.
pub(super) struct RoomTerms<'a> {
    analyst: &'a str,
    force: bool,
    policy: &'a Policy,
    cap: Budget,
    /// The part of the job's cap that it has not spent.
    pub(super) cost: Spent,
    room: Room,
}

impl<'a> RoomTerms<'a> {
    /// Compares a job's cap with its room, at an owner who protects `unit`.
    ///
    /// # Errors
    /// The fault of [`ledger_fault`] if the cap or the room cannot be computed.
    pub(super) fn new(
        (analyst, spec): (&'a str, &JobSpec),
        policy: &'a Policy,
        unit: PrivacyUnit,
        room: Result<Room, LedgerError>,
    ) -> Result<Self, Fault> {
        let (room, cap) = (room.map_err(ledger_fault)?, spec.privacy.budget.of(unit));
        let filter = PrivacyFilter::resume(&cap, room.spent).map_err(|e| ledger_fault(e.into()))?;
        Ok(Self { analyst, force: spec.sampler.force, policy, cap, cost: filter.remaining(), room })
    }

    /// Describes the shortage to the analyst, with the largest epsilon that the job may ask for now.
    fn shortage(&self) -> Shortage<'_> {
        let (cap, now) = (&self.cap, available(self.policy, &self.room));
        let askable = self.policy.tell_budget.then(|| askable(now.units, cap));
        Shortage { analyst: self.analyst, cap, askable, beside_others: now.units < self.room.left.units }
    }

    /// Refuses a job that may spend more than its analyst's remaining budget, unless the analyst forces it: such a job would end before
    /// its time, with the remaining budget spent.
    ///
    /// # Errors
    /// [`ErrorCode::Budget`], with the remedy.
    pub(super) fn admit_remaining(&self) -> Result<(), Fault> {
        match self.force || self.cost.units <= self.room.left.units {
            true => Ok(()),
            false => Err(Fault::new(ErrorCode::Budget, self.shortage().refusal())),
        }
    }

    /// Returns the limit on the budget that the job may spend beside its cap, so that no other open job loses a part of its own. A job
    /// that is open in the ledger keeps its cap.
    ///
    /// # Errors
    /// The reason for which the job waits: its cap fits the remaining budget, but not beside those of the open jobs, which may end with less
    /// spent.
    pub(super) fn reserve(&self, is_open: bool) -> Result<Option<Spent>, String> {
        let (free, cost) = (self.room.free, self.cost);
        if self.policy.over_commit || (is_open && !self.force) {
            return Ok(None);
        }
        let lacks = |cost: u64, free: u64| !is_open && free < cost;
        if lacks(cost.reserve_units, free.reserve_units) {
            return Err(Shortage { askable: None, ..self.shortage() }.wait());
        }
        match !self.force && lacks(cost.units, free.units) {
            true => Err(self.shortage().wait()),
            false => Ok(Some(free)),
        }
    }
}

/// Returns the budget for one more job: what no open job may still spend, unless the owner over-commits.
fn available(policy: &Policy, room: &Room) -> Spent {
    if policy.over_commit { room.left } else { room.free }
}

impl Answerer {
    /// Answers an analyst's request for the budget. An analyst whom the policy does not admit learns nothing.
    pub(super) fn budget_told(&self, request: &v1::AskBudget) -> v1::BudgetTold {
        let untold = v1::BudgetTold { number: request.number, ..v1::BudgetTold::default() };
        let admitted = self.policy.analysts.as_ref().is_none_or(|analysts| analysts.contains(&request.analyst));
        if !(self.policy.tell_budget && admitted) {
            return untold;
        }
        let delta = self.budget.delta;
        let reported = || -> Result<v1::BudgetTold, LedgerError> {
            let limit = match self.ledger.analyst_cap() {
                Some(cap) => PrivacyFilter::new(cap)?.limit_units().min(PrivacyFilter::new(&self.budget)?.limit_units()),
                None => PrivacyFilter::new(&self.budget)?.limit_units(),
            };
            let room = self.ledger.room("", &request.analyst, Honest::ALONE)?;
            Ok(v1::BudgetTold {
                told: true, // wire name
                epsilon_limit: askable(limit, &self.budget),
                delta,
                epsilon_spent: epsilon_of(self.ledger.spent_by(&request.analyst).units, delta),
                epsilon_left: askable(available(&self.policy, &room).units, &self.budget),
                ..untold
            })
        };
        reported().unwrap_or(untold)
    }
}
