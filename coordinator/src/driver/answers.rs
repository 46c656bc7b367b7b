//! Answers to a round: which are accepted, which are repeats, and which no party could give.

use conclave_common::query::{PartyMetadata, Round};
use conclave_inference::sampler::Totals;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::echo::Echo;
use conclave_proto::error::{ErrorCode, Fault};

use super::masking::{NOT_CANCELLED, is_masked, with_check_lane};
use super::members::{CurrentRound, Members, PartyUpdate};
use super::refusal::refusal;
use super::stop::StopReason;
use crate::clock::Timestamp;

/// Maximum number of attempts: a party that crashes in every round is not asked forever.
const MOST_ATTEMPTS: u32 = 1000;

impl Members {
    /// Accepts the releases with which a party answers a round.
    pub(super) fn accept_releases(
        &mut self,
        party: usize,
        iteration: u64,
        (releases, echo): (Vec<i64>, Option<Echo>),
        now: Timestamp,
    ) -> Result<PartyUpdate, StopReason> {
        let changed = format!("two different answers to round {iteration}");
        match (self.current, &self.previous) {
            (Some(asked), _) if asked.iteration == iteration => {
                if let Some(what) = length_fault(asked, releases.len()) {
                    return Err(self.violation(party, &what));
                }
                // Under a mask every number is possible; the sum is checked once it is opened.
                if asked.digest.is_none()
                    && let Some(what) = self.impossible_release(party, iteration, &releases)
                {
                    return Err(self.violation(party, &what));
                }
                let of_message = (iteration, asked.digest);
                let releases = with_check_lane(releases, echo, of_message).map_err(|what| self.violation(party, &what))?;
                let member = &mut self.list[party];
                match &member.answer {
                    None => {
                        member.answer = Some(releases);
                        self.due -= 1;
                        member.deadline.met(now.at);
                        Ok(PartyUpdate::Answered)
                    }
                    Some(before) if *before == releases => Ok(PartyUpdate::Nothing),
                    Some(_) => Err(self.violation(party, &changed)),
                }
            }
            (_, Some((before, answers))) if before.iteration == iteration => {
                match with_check_lane(releases, echo, (iteration, before.digest)) {
                    Ok(releases) if answers[party] == releases => Ok(PartyUpdate::Nothing),
                    _ => Err(self.violation(party, &changed)),
                }
            }
            _ if self.is_ahead(iteration) => {
                Err(self.violation(party, &format!("an answer to round {iteration}, which was not asked yet")))
            }
            _ => Ok(PartyUpdate::Nothing),
        }
    }

    /// Describes a release that no sum of clamped records can equal, whatever the records and the noise.
    fn impossible_release(&self, party: usize, iteration: u64, releases: &[i64]) -> Option<String> {
        let (query, release, most) = self.terms.impossible_release(party, &self.list[party].metadata?, releases)?;
        Some(format!("the impossible number {release} for query {query} of round {iteration}; the limit is {most}"))
    }

    /// Checks the sum that a complete masked round opens.
    ///
    /// # Errors
    /// [`StopReason::Failed`] if the masks do not cancel. The round is not asked again: a second try would cost every owner
    /// another charge.
    pub(super) fn check_sums(&mut self, round: &Round) -> Result<(), StopReason> {
        let Some((asked, answers)) = self.previous.as_ref().filter(|_| is_masked(round)) else { return Ok(()) };
        let garbage = Totals::of(round, answers).map_or(true, |totals| {
            let metadata: Option<Vec<PartyMetadata>> = self.metadata();
            metadata.is_none_or(|metadata| self.terms.has_impossible_sum(&metadata, totals.opened(0)))
        });
        if !garbage {
            return Ok(());
        }
        let message = format!("round {}: {NOT_CANCELLED}", asked.iteration);
        self.reopen_round();
        Err(StopReason::Failed(Fault::new(ErrorCode::Internal, message)))
    }

    /// Handles a party's refusal to answer a round.
    pub(super) fn answer_refused(
        &mut self,
        party: usize,
        iteration: u64,
        status: AnswerStatus,
        now: Timestamp,
    ) -> Result<PartyUpdate, StopReason> {
        if self.current.is_none_or(|asked| asked.iteration != iteration) {
            return match self.is_ahead(iteration) {
                true => Err(self.violation(party, &format!("an answer to round {iteration}, which was not asked yet"))),
                false => Ok(PartyUpdate::Nothing),
            };
        }
        if self.list[party].answer.is_some() && status != AnswerStatus::Attempt {
            return Err(self.violation(party, &format!("two different answers to round {iteration}")));
        }
        match status {
            AnswerStatus::Attempt if self.list[party].answer.is_some() => return Ok(PartyUpdate::Nothing),
            AnswerStatus::Attempt if self.list[party].attempt < MOST_ATTEMPTS => {
                self.list[party].attempt += 1;
                self.list[party].deadline.repeat(now.at);
                return Ok(PartyUpdate::AskAgain);
            }
            // Waiting loses nothing: once repaired and restarted, the party answers this round like one that was killed.
            AnswerStatus::Halted => {
                let reason = "it has stopped answering, because its ledger can't be written or its data can't be read: its owner has to fix \
                              that and start it again";
                self.hold_up(party, reason.into());
                return Ok(PartyUpdate::Nothing);
            }
            AnswerStatus::Behind => {
                self.hold_up(
                    party,
                    "its ledger is behind a checkpoint that it has published: its owner has to restore or unlock it".into(),
                );
                return Ok(PartyUpdate::Nothing);
            }
            _ => {}
        }
        Err(refusal(status, party, &self.list[party].name, iteration))
    }

    fn is_ahead(&self, iteration: u64) -> bool {
        match (self.current, &self.previous) {
            (Some(asked), _) => iteration > asked.iteration,
            (None, Some((before, _))) => iteration > before.iteration,
            (None, None) => true,
        }
    }
}

/// Describes the fault of an answer with a wrong number of integers.
fn length_fault(asked: CurrentRound, numbers: usize) -> Option<String> {
    let CurrentRound { iteration, queries, length, .. } = asked;
    let due = if length == queries { String::new() } else { format!(", which require {length} numbers") };
    (numbers != length).then(|| format!("{numbers} numbers for the {queries} queries of round {iteration}{due}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query's answer may be a vector: integers are counted, not queries.
    #[test]
    fn an_answer_has_as_many_numbers_as_its_queries_have_components() {
        let asked = CurrentRound { iteration: 7, queries: 2, length: 6, digest: None };
        assert_eq!(length_fault(asked, 6), None);
        assert_eq!(length_fault(asked, 2).as_deref(), Some("2 numbers for the 2 queries of round 7, which require 6 numbers"));
        let single = CurrentRound { length: 2, ..asked };
        assert_eq!(length_fault(single, 2), None);
        assert_eq!(length_fault(single, 6).as_deref(), Some("6 numbers for the 2 queries of round 7"));
    }
}
