//! Answers to a round: which are taken in, which come twice, and which no party could give.

use conclave_common::query::{PartyMetadata, Round};
use conclave_inference::sampler::Totals;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::echo::Echo;
use conclave_proto::error::{ErrorCode, Fault};

use super::masking::{NOT_CANCELLED, covered, is_masked};
use super::members::{Asked, Members, PartyUpdate};
use super::refusal::refusal;
use super::stop::StopReason;
use crate::clock::Timestamp;

/// A party that crashes in every round is not asked for ever.
const MOST_ATTEMPTS: u32 = 1000;

impl Members {
    /// Takes in the releases with which a party answers a round.
    pub(super) fn released(
        &mut self,
        party: usize,
        iteration: u64,
        (releases, echo): (Vec<i64>, Option<Echo>),
        now: Timestamp,
    ) -> Result<PartyUpdate, StopReason> {
        let changed = format!("two different answers to round {iteration}");
        match (self.asked, &self.previous) {
            (Some(asked), _) if asked.iteration == iteration => {
                if let Some(what) = another_length(asked, releases.len()) {
                    return Err(self.broke(party, &what));
                }
                // Under a mask every number is possible: the sum is looked at once it is opened.
                if asked.digest.is_none()
                    && let Some(what) = self.impossible(party, iteration, &releases)
                {
                    return Err(self.broke(party, &what));
                }
                let of_message = (iteration, asked.digest);
                let releases = covered(releases, echo, of_message).map_err(|what| self.broke(party, &what))?;
                let member = &mut self.list[party];
                match &member.answer {
                    None => {
                        member.answer = Some(releases);
                        self.due -= 1;
                        member.deadline.kept(now.at);
                        Ok(PartyUpdate::Answered)
                    }
                    Some(before) if *before == releases => Ok(PartyUpdate::Nothing),
                    Some(_) => Err(self.broke(party, &changed)),
                }
            }
            (_, Some((before, answers))) if before.iteration == iteration => {
                match covered(releases, echo, (iteration, before.digest)) {
                    Ok(releases) if answers[party] == releases => Ok(PartyUpdate::Nothing),
                    _ => Err(self.broke(party, &changed)),
                }
            }
            _ if self.is_ahead(iteration) => Err(self.broke(party, &format!("an answer to round {iteration}, not asked yet"))),
            _ => Ok(PartyUpdate::Nothing),
        }
    }

    /// The fault of a release that no sum of clamped records can be, whatever they hold and whatever the noise.
    fn impossible(&self, party: usize, iteration: u64, releases: &[i64]) -> Option<String> {
        let (query, release, most) = self.terms.impossible(&self.list[party].metadata?, releases)?;
        Some(format!("the impossible number {release} for query {query} of round {iteration}, where none is beyond {most}"))
    }

    /// Looks at what a complete round opens, where that is the sum alone.
    ///
    /// # Errors
    /// How the job ends of masks that do not cancel. It is not asked again: another try would cost every owner another charge.
    pub(super) fn check_sums(&mut self, round: &Round) -> Result<(), StopReason> {
        let Some((asked, answers)) = self.previous.as_ref().filter(|_| is_masked(round)) else { return Ok(()) };
        let garbage = Totals::of(round, answers).map_or(true, |totals| {
            let metadata: Option<Vec<PartyMetadata>> = self.metadata();
            metadata.is_none_or(|metadata| self.terms.impossible_sums(&metadata, totals.opened(0)))
        });
        if !garbage {
            return Ok(());
        }
        let message = format!("round {}: {NOT_CANCELLED}", asked.iteration);
        self.take_back();
        Err(StopReason::Failed(Fault::new(ErrorCode::Internal, message)))
    }

    /// Takes in that a party does not answer a round.
    pub(super) fn answer_refused(
        &mut self,
        party: usize,
        iteration: u64,
        status: AnswerStatus,
        now: Timestamp,
    ) -> Result<PartyUpdate, StopReason> {
        if self.asked.is_none_or(|asked| asked.iteration != iteration) {
            return match self.is_ahead(iteration) {
                true => Err(self.broke(party, &format!("an answer to round {iteration}, not asked yet"))),
                false => Ok(PartyUpdate::Nothing),
            };
        }
        if self.list[party].answer.is_some() && status != AnswerStatus::Attempt {
            return Err(self.broke(party, &format!("two different answers to round {iteration}")));
        }
        match status {
            AnswerStatus::Attempt if self.list[party].answer.is_some() => return Ok(PartyUpdate::Nothing),
            AnswerStatus::Attempt if self.list[party].attempt < MOST_ATTEMPTS => {
                self.list[party].attempt += 1;
                self.list[party].deadline.again(now.at);
                return Ok(PartyUpdate::AskAgain);
            }
            // Nothing is lost by waiting: mended and started again, it answers this round as one that was killed does.
            AnswerStatus::Halted => {
                let reason = "it has stopped answering, since its ledger can't be written or its data can't be read: its owner has to mend \
                              that and start it again";
                self.hold_up(party, reason.into());
                return Ok(PartyUpdate::Nothing);
            }
            AnswerStatus::Behind => {
                self.hold_up(party, "its ledger is behind what it has answered: its owner has to restore or unlock it".into());
                return Ok(PartyUpdate::Nothing);
            }
            _ => {}
        }
        Err(refusal(status, party, &self.list[party].name, iteration))
    }

    fn is_ahead(&self, iteration: u64) -> bool {
        match (self.asked, &self.previous) {
            (Some(asked), _) => iteration > asked.iteration,
            (None, Some((before, _))) => iteration > before.iteration,
            (None, None) => true,
        }
    }
}

/// The fault of an answer of so many integers, where the round's answer has another number.
fn another_length(asked: Asked, numbers: usize) -> Option<String> {
    let Asked { iteration, queries, length, .. } = asked;
    let due = if length == queries { String::new() } else { format!(", whose answers are {length} numbers") };
    (numbers != length).then(|| format!("{numbers} numbers for the {queries} queries of round {iteration}{due}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query's answer may be a vector: what counts is the round's integers.
    #[test]
    fn an_answer_has_as_many_numbers_as_its_queries_have_components() {
        let asked = Asked { iteration: 7, queries: 2, length: 6, digest: None };
        assert_eq!(another_length(asked, 6), None);
        assert_eq!(
            another_length(asked, 2).as_deref(),
            Some("2 numbers for the 2 queries of round 7, whose answers are 6 numbers")
        );
        let single = Asked { length: 2, ..asked };
        assert_eq!(another_length(single, 2), None);
        assert_eq!(another_length(single, 6).as_deref(), Some("6 numbers for the 2 queries of round 7"));
    }
}
