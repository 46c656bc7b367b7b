//! Who is asked first where a budget is about to end.
//!
//! A masked message that one party refuses opens nothing, and whoever has answered it has paid for it. So the last messages are put to the party
//! that has the least left of the job's budget, and to the others once it has answered.

use super::members::Members;
use super::spending::Spending;
use crate::clock::Timestamp;

/// The last messages are those of which, at the price of the dearest so far, fewer than this many fit. Charges are added up after the next
/// message has left, so that one of them may not be counted yet.
const LAST: u64 = 3;

impl Spending {
    /// The party that has the least left of the job's budget, `limit_units` in units of 2^-48 of mu², where it is about to end.
    pub(super) fn least_left(&self, limit_units: u64) -> Option<usize> {
        let (least, left) = self.left(limit_units).min_by_key(|(_, left)| *left)?;
        (left < self.dearest().saturating_mul(LAST)).then_some(least)
    }
}

impl Members {
    /// Begins a round with this party alone, where there is one.
    pub(super) fn begin_with(&mut self, party: Option<usize>) {
        self.first = party;
    }

    /// Whether a party may be asked the round: no other comes first, or it has answered.
    pub(super) fn has_its_turn(&self, party: usize) -> bool {
        self.first.is_none_or(|first| first == party || self.answered(first))
    }

    /// Whether all others may be asked from now on, since the party that came first has answered.
    pub(super) fn turn_of_others(&mut self, answered: usize, now: Timestamp) -> bool {
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
