//! The rounds of a log are put through the sampler again, one by one.

use conclave_common::job::JobSpec;
use conclave_common::sampler::{self, Next, PartyMetadata, ReplayError, Round, Sampler};
use conclave_proto::log::{RoundPieces, WholeRound, opened_parties};
use conclave_proto::v1::{LogHeader, LogRound};

use super::answers::{Answers, End};
use super::check::Check;
use super::drawn::Drawn;
use super::replayed::{Claim, Replayed};
use crate::error::StartError;

/// The replay.
pub(super) struct Rounds {
    spec: JobSpec,
    /// This party's place among the job's.
    place: usize,
    /// `None` as long as not every party has opened the job.
    sampler: Option<Box<dyn Sampler>>,
    answers: Answers,
    drawn: Drawn,
    pieces: RoundPieces,
    count: u64,
    last: Option<u64>,
    /// Why the log can't be replayed further.
    broken: Option<String>,
    claim: Claim,
}

impl Rounds {
    pub(super) fn new(party: &str, spec: JobSpec, header: &LogHeader, answers: Answers) -> Self {
        let (spec, sampler, broken) = match start(&spec, header) {
            Ok(Some((settled, sampler))) => (settled, Some(sampler), None),
            Ok(None) => (spec, None, None),
            Err(why) => (spec, None, Some(why)),
        };
        Self {
            place: spec.parties.iter().position(|name| name == party).unwrap_or(usize::MAX),
            drawn: Drawn::new(spec.dimension(), spec.sampler.chains as usize),
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

    /// Takes in a round, or a part of one.
    pub(super) fn take(&mut self, piece: LogRound) -> Result<(), StartError> {
        if self.broken.is_some() {
            return Ok(());
        }
        let due = self.due();
        match self.pieces.take(piece, due) {
            Ok(None) => Ok(()),
            Ok(Some(WholeRound { iteration, releases })) => self.replay(iteration, &releases),
            Err(why) => {
                self.broken = Some(why);
                Ok(())
            }
        }
    }

    /// How many integers a party releases in the round that is due.
    fn due(&mut self) -> usize {
        let next = self.sampler.as_mut().and_then(|sampler| sampler.next_round().ok());
        next.and_then(Next::round).map_or(0, |round| round.length())
    }

    fn replay(&mut self, iteration: u64, releases: &[Vec<i64>]) -> Result<(), StartError> {
        let Some(sampler) = &mut self.sampler else {
            self.broken = Some(format!("round {iteration} was asked before every party had opened the job"));
            return Ok(());
        };
        match sampler.replay(iteration, releases) {
            Ok(round) => {
                self.drawn.push(sampler.take_draws());
                (self.count, self.last) = (self.count + 1, Some(iteration));
                let own = releases.get(self.place).map(Vec::as_slice).unwrap_or_default();
                self.answers.compare(&round, own)
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

    /// What the log comes to, once its last round is in.
    pub(super) fn end(mut self) -> Result<Replayed, StartError> {
        if let Some(part) = self.pieces.unfinished() {
            self.broken.get_or_insert(format!("round {part} breaks off"));
        }
        let mut note = None;
        if self.broken.is_none() {
            let next = self.next();
            let end = self.claim.end();
            if let (End::Complete, Some(next)) = (end, &next) {
                let next = next.iteration;
                self.broken = Some(format!("the job is said to have made its last draw, and the log ends before round {next}"));
                self.answers.lacks(next)?;
            } else if self.broken.is_none() {
                note = self.answers.beyond(self.last, next.as_ref(), end);
            }
            self.conclude(end);
        }
        let checks = vec![self.answered(note), self.proposed()];
        Ok(Replayed {
            whole: self.broken.is_none(),
            surrogate: self.sampler.as_ref().and_then(|sampler| sampler.fitted_posterior()),
            gradients: self.sampler.as_ref().and_then(|sampler| sampler.gradient_diagnostics()),
            by_budget: self.sampler.as_ref().is_some_and(|sampler| sampler.ended_by_budget()),
            hopeless: self.sampler.as_ref().is_some_and(|sampler| sampler.hopeless().is_some()),
            spec: self.spec,
            drawn: self.drawn,
            count: self.count,
            claim: self.claim,
            checks,
        })
    }

    /// The draws that a run which ended early made of what it had been told by then.
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

    /// The round that would be asked next.
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
            return Check::skipped(NAME, format!("only {matched} answers could be compared, up to where the log breaks"));
        }
        let mut detail = format!("the log has this party's {matched} answers as its ledger has them");
        if lost > 0 {
            detail += &format!("; {lost} more were lost from the ledger in a crash");
        }
        detail.extend(note.map(|note| format!("; {note}")));
        Check::of(NAME, self.answers.wrong.take(), detail)
    }

    fn proposed(&mut self) -> Check {
        let wrong = self.broken.clone().or_else(|| self.answers.asked_else.take());
        let detail = match self.sampler {
            None => "not every party has opened the job yet, so nothing was asked".to_owned(),
            Some(_) => {
                format!("{} rounds follow from the job's seed and the releases, and are what this party was asked", self.count)
            }
        };
        Check::of("proposals", wrong, detail)
    }
}

/// A job with the number of its chains, and its sampler at its start.
type Start = (JobSpec, Box<dyn Sampler>);

/// The job with the number of its chains and its sampler at its start, from what the parties are said to hold.
fn start(spec: &JobSpec, header: &LogHeader) -> Result<Option<Start>, String> {
    let parties = opened_parties(header, &spec.parties)?;
    let build = |parties: Vec<PartyMetadata>| {
        let settled = sampler::settled(spec, &parties).into_owned();
        let sampler = sampler::build(&settled, &parties).map_err(|e| e.to_string())?;
        Ok((settled, sampler))
    };
    parties.map(build).transpose()
}
