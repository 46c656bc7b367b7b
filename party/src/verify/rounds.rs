//! Replays the rounds of a log through the sampler, one by one.

use conclave_common::job::JobSpec;
use conclave_common::query::{Opened, PartyMetadata, Round};
use conclave_inference::sampler;
use conclave_inference::sampler::{Next, ReplayError, Sampler};
use conclave_proto::log::{RoundPieces, WholeRound, opened_parties};
use conclave_proto::v1::{LogHeader, LogRound};

use super::answers::{Answers, End};
use super::check::{Check, MAX_TEXT};
use super::drawn::Drawn;
use super::replayed::{Claim, Replayed};
use super::sums::Sums;
use crate::error::StartError;
use conclave_vault::text::clip;

/// The replay in progress.
pub(super) struct Rounds {
    spec: JobSpec,
    /// This party's index among the job's parties.
    place: usize,
    /// `None` until every party has opened the job.
    sampler: Option<Box<dyn Sampler>>,
    answers: Answers,
    /// Opened sums, if only the answers' sum is opened.
    sums: Option<Sums>,
    drawn: Drawn,
    pieces: RoundPieces,
    count: u64,
    last: Option<u64>,
    /// The reason why the log can't be replayed further.
    broken: Option<String>,
    claim: Claim,
}

impl Rounds {
    pub(super) fn new(place: usize, spec: JobSpec, header: &LogHeader, answers: Answers) -> Self {
        let (spec, sampler, sums, broken) = match start(&spec, header) {
            Ok(Some(Start { spec, sampler, sums })) => (spec, Some(sampler), sums, None),
            Ok(None) => (spec, None, None, None),
            Err(why) => (spec, None, None, Some(why)),
        };
        Self {
            sums,
            place,
            drawn: Drawn::new(spec.draw_names().len(), spec.sampler.chains as usize),
            sampler,
            answers,
            pieces: RoundPieces::new(spec.parties.len()),
            count: 0,
            last: None,
            broken,
            claim: Claim::of(header),
            spec,
        }
    }

    /// Adds a round, or a part of one.
    pub(super) fn take(&mut self, piece: LogRound) -> Result<(), StartError> {
        if self.broken.is_some() {
            return Ok(());
        }
        let due = self.due();
        // Masked answers end with a mask of zero.
        let length = due.as_ref().map_or(0, |round| round.length() + usize::from(round.opened == Opened::SumAlone));
        match self.pieces.take(piece, length) {
            Ok(None) => Ok(()),
            Ok(Some(WholeRound { iteration, releases })) => self.replay(due, iteration, &releases),
            Err(why) => {
                self.broken = Some(why);
                Ok(())
            }
        }
    }

    /// Returns the round that is due.
    fn due(&mut self) -> Option<Round> {
        let next = self.sampler.as_mut().and_then(|sampler| sampler.next_round().ok());
        next.and_then(Next::round)
    }

    fn replay(&mut self, due: Option<Round>, iteration: u64, releases: &[Vec<i64>]) -> Result<(), StartError> {
        let Some(sampler) = &mut self.sampler else {
            self.broken = Some(format!("round {iteration} was sent before every party had opened the job"));
            return Ok(());
        };
        let replayed = sampler.replay(iteration, releases);
        if let (Some(round), Ok(_) | Err(ReplayError::Releases(_))) = (due, &replayed) {
            self.sums.iter_mut().for_each(|sums| sums.check(&round, releases));
            let own = releases.get(self.place).map(Vec::as_slice).unwrap_or_default();
            self.answers.compare(&round, own)?;
        }
        match replayed {
            Ok(_) => {
                self.drawn.push(sampler.take_draws());
                (self.count, self.last) = (self.count + 1, Some(iteration));
                Ok(())
            }
            Err(why) => {
                if let ReplayError::OutOfPlace { expected: Some(expected), .. } = &why {
                    self.answers.lacks(*expected)?;
                }
                self.broken = Some(why.to_string());
                Ok(())
            }
        }
    }

    /// Concludes the replay after the last round.
    pub(super) fn end(mut self) -> Result<Replayed, StartError> {
        if let Some(part) = self.pieces.unfinished() {
            self.broken.get_or_insert(format!("round {part} is incomplete"));
        }
        let mut note = None;
        if self.broken.is_none() {
            let next = self.next();
            let end = self.claim.end();
            if let (End::Complete, Some(next)) = (end, &next) {
                let next = next.iteration;
                self.broken = Some(format!("the job is stated to have made its last draw, but the log ends before round {next}"));
                self.answers.lacks(next)?;
            } else if self.broken.is_none() {
                note = self.answers.beyond(self.last, next.as_ref(), end);
            }
            self.conclude(end);
        }
        let (answered, proposed) = (self.answered(note), self.proposed());
        let summed = self.sums.take().map(Sums::result);
        let checks = [answered].into_iter().chain(summed).chain([proposed]).collect();
        Ok(Replayed {
            whole: self.broken.is_none(),
            report: self.sampler.as_ref().map(|sampler| sampler.report()).unwrap_or_default(),
            by_budget: self.sampler.as_ref().is_some_and(|sampler| sampler.ended_by_budget()),
            futility: self.sampler.as_ref().is_some_and(|sampler| sampler.futility().is_some()),
            spec: self.spec,
            drawn: self.drawn,
            count: self.count,
            claim: self.claim,
            checks,
        })
    }

    /// Makes the draws of a run that ended early from the releases received by then.
    fn conclude(&mut self, end: End) {
        let has_result = self.claim.result["stopped_by"].is_string();
        let Some(sampler) = self.sampler.as_mut().filter(|_| end == End::Early && has_result && self.broken.is_none()) else {
            return;
        };
        match sampler.conclude() {
            Ok(()) => self.drawn.push(sampler.take_draws()),
            Err(why) => self.broken = Some(why.to_string()),
        }
    }

    /// Returns the round that would be sent next.
    fn next(&mut self) -> Option<Round> {
        let sampler = self.sampler.as_mut()?;
        let next = sampler.next_round();
        self.drawn.push(sampler.take_draws());
        next.map(Next::round).unwrap_or_else(|why| {
            self.broken = Some(why.to_string());
            None
        })
    }

    fn answered(&mut self, note: Option<String>) -> Check {
        const NAME: &str = "answers";
        let (matched, lost) = (self.answers.matched(), self.answers.lost);
        if let (None, Some(_)) = (&self.answers.wrong, &self.broken) {
            return Check::skipped(
                NAME,
                format!("only {matched} answers could be compared, up to the point where the log breaks"),
            );
        }
        let mut detail = format!("this party's {matched} answers in the log equal those in its ledger");
        if lost > 0 {
            detail += &format!("; {lost} more were lost from the ledger in a crash");
        }
        for (stretch, count) in self.answers.given_up.iter().filter(|(_, count)| *count > 0) {
            let (time, reason) = (&stretch.time, clip(&stretch.reason, MAX_TEXT));
            detail += &format!(
                "; {count} more can't be compared: their entries were given up by the owner's unlock of {time} ({reason:?})"
            );
        }
        detail.extend(note.map(|note| format!("; {note}")));
        Check::of(NAME, self.answers.wrong.take(), detail)
    }

    fn proposed(&mut self) -> Check {
        const NAME: &str = "proposals";
        if self.broken.is_some() && self.sums.as_ref().is_some_and(Sums::are_wrong) {
            return Check::skipped(NAME, "the log can't be replayed beyond an invalid sum");
        }
        let wrong = self.broken.clone().or_else(|| self.answers.other_query.take());
        let detail = match self.sampler {
            None => "not every party has opened the job yet, so no query was sent".to_owned(),
            Some(_) => {
                format!("{} rounds follow from the job's seed and the releases, and equal this party's queries", self.count)
            }
        };
        Check::of(NAME, wrong, detail)
    }
}

/// The initial state of a replay.
struct Start {
    /// The job, with its number of chains settled.
    spec: JobSpec,
    sampler: Box<dyn Sampler>,
    sums: Option<Sums>,
}

/// Builds the initial state from the parties' stated metadata; `None` until all of them have opened the job.
fn start(spec: &JobSpec, header: &LogHeader) -> Result<Option<Start>, String> {
    let parties = opened_parties(header, &spec.parties)?;
    let build = |parties: Vec<PartyMetadata>| {
        let settled = sampler::settled(spec, &parties).into_owned();
        let sampler = sampler::build(&settled, &parties).map_err(|e| e.to_string())?;
        let sums = settled.aggregation.is_secure().then(|| Sums::new(&settled, parties));
        Ok(Start { spec: settled, sampler, sums })
    };
    parties.map(build).transpose()
}
