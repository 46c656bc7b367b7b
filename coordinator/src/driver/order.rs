//! Order of asking when a budget is nearly exhausted.
//!
//! A masked message that one party refuses opens nothing, yet every party that answered it has paid. So the last messages go to
//! the party with the smallest remaining budget first, and to the others once it has answered.

use super::members::Members;
use super::spending::Spending;
use crate::clock::Timestamp;

/// Messages count as the last if fewer than this many fit into the budget at the highest cost so far. Charges are added after the
/// next message is sent, so one message may not be counted yet.
const LAST: u64 = 3;

impl Spending {
    /// Returns the party with the smallest remaining job budget, if that budget is nearly exhausted. `limit_units` is the budget
    /// in units of 2^-48 of mu².
    pub(super) fn party_with_least_budget(&self, limit_units: u64) -> Option<usize> {
        let (least, remaining) = self.remaining(limit_units).min_by_key(|(_, remaining)| *remaining)?;
        (remaining < self.highest_cost().saturating_mul(LAST)).then_some(least)
    }
}

impl Members {
    /// Asks this party, if given, alone at the start of the round.
    pub(super) fn ask_first(&mut self, party: Option<usize>) {
        self.first = party;
    }

    /// Returns true if a party may be asked the round: no party comes before it, or that party has answered.
    pub(super) fn can_be_asked(&self, party: usize) -> bool {
        self.first.is_none_or(|first| first == party || self.has_answered(first))
    }

    /// Admits all other parties once the first one has answered; returns true if `answered` was that party.
    pub(super) fn admit_others(&mut self, answered: usize, now: Timestamp) -> bool {
        let begins = self.first == Some(answered);
        if begins {
            self.first = None;
            for member in self.list.iter_mut().filter(|member| member.answer.is_none()) {
                member.since = now;
                member.deadline.begin(now.at);
            }
        }
        begins
    }
}

#[cfg(test)]
#[path = "tests/order.rs"]
mod tests;
