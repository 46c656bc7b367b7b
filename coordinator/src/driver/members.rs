//! The parties of one job: who is here, who has opened it, who has answered. No input or output.

use std::time::Duration;

use conclave_common::accounting::PrivacyUnit;
use conclave_common::mechanism::NoiseScale;
use conclave_common::query::QueryTerms;
use conclave_common::sampler::Holding;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::error::{ErrorCode, Fault};
use tokio::time::Instant;

use super::deadline::{Deadline, Limits};
use super::{Ending, Moment};
use crate::hub::Message;
use crate::outbox::Outbox;

/// A party that crashes in every round is not asked for ever.
const MOST_ATTEMPTS: u32 = 1000;

/// One party's part in the job.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    /// Its stream, while it is attached.
    pub(super) outbox: Option<Outbox>,
    /// Whether it has opened the job on this stream.
    pub(super) open: bool,
    /// Whether its owner has yet to decide, as it has said on this stream.
    pub(super) pending: bool,
    /// Why it can't answer until its owner has mended something, as it has said on this stream.
    pub(super) held_up: Option<String>,
    /// How often it has said of this round that a crash may have lost its answer.
    pub(super) attempt: u32,
    /// What it holds, from the first opening on.
    pub(super) holding: Option<Holding>,
    /// When its answers leave, as it told at the newest opening.
    delay: Option<AnswerDelay>,
    /// Its answer to the round being asked.
    answer: Option<Vec<i64>>,
    /// Since when the job could be waiting for it.
    pub(super) since: Moment,
    deadline: Deadline,
}

/// The round that the parties are being asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) iteration: u64,
    pub(super) queries: usize,
}

/// All parties of a job, in the job file's order.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) list: Vec<Member>,
    asked: Option<Asked>,
    /// The round before, to tell an answer sent twice from an answer that changed.
    previous: Option<(u64, Vec<Vec<i64>>)>,
    /// What the round's queries are worth, by what a party protects: it bounds what a party can release.
    questions: Questions,
    /// Parties that have yet to answer the round.
    due: usize,
}

/// For each kind of unit that is protected, a query's constants and its noise, one per query; `None` for a question without a price, which
/// ends the job when its round is booked.
pub(super) type Questions = Vec<(PrivacyUnit, Vec<Option<(QueryTerms, NoiseScale)>>)>;

/// What the driver has to do about something that a party said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing.
    Nothing,
    /// The party has opened the job, holding this, for the first time.
    FirstOpening(Holding),
    /// The party has opened the job again.
    Opening,
    /// The round now has this party's answer.
    Answered,
    /// A crash may have lost the party's answer, and nobody has it: it is to be asked as the next attempt.
    AskAgain,
}

impl Members {
    pub(super) fn new(parties: &[String], holdings: &[Option<Holding>], limits: Limits, now: Moment) -> Self {
        let list = parties.iter().zip(holdings).map(|(name, holding)| Member {
            name: name.clone(),
            outbox: None,
            open: false,
            pending: false,
            held_up: None,
            attempt: 0,
            holding: *holding,
            delay: None,
            answer: None,
            since: now,
            deadline: Deadline::new(limits, now.at),
        });
        Self { list: list.collect(), asked: None, previous: None, questions: Vec::new(), due: 0 }
    }

    /// A stream in place of whatever was before; the job has to be opened on it.
    pub(super) fn attach(&mut self, party: usize, outbox: Outbox, now: Moment) {
        self.forget_stream(party, now);
        let member = &mut self.list[party];
        member.outbox = Some(outbox);
        member.deadline.again(now.at);
    }

    pub(super) fn detach(&mut self, party: usize, now: Moment) {
        self.forget_stream(party, now);
    }

    /// What the job has waited for, it goes on waiting for.
    fn forget_stream(&mut self, party: usize, now: Moment) {
        let owed = self.owes(party);
        let member = &mut self.list[party];
        if !owed {
            member.since = now;
            member.deadline.begin(now.at);
        }
        (member.outbox, member.open, member.pending, member.held_up) = (None, false, false, None);
    }

    /// Whether it has yet to open the job, or to answer the round being asked.
    pub(super) fn owes(&self, party: usize) -> bool {
        !self.list[party].open || (self.asked.is_some() && !self.answered(party))
    }

    /// Why the job waits for a party at `now`; `None` where it does not, or for less than `shown`.
    pub(super) fn waits_for(&self, party: usize, shown: Duration, now: Instant) -> Option<String> {
        let member = &self.list[party];
        if member.outbox.is_none() {
            return Some("not connected".to_owned());
        }
        if let Some(reason) = &member.held_up {
            return Some(reason.clone());
        }
        if member.pending {
            return Some("its owner has yet to decide".to_owned());
        }
        if !self.owes(party) || now.duration_since(member.since.at) < shown {
            return None;
        }
        Some(match self.asked.filter(|_| member.open) {
            Some(asked) => format!("connected, but round {} is not answered yet", asked.iteration),
            None => "connected, but the job is not opened yet".to_owned(),
        })
    }

    /// Ends the streams of parties that have owed for too long, so that they dial anew and are asked again.
    pub(super) fn hasten(&mut self, job: &str, now: Moment) {
        for party in 0..self.list.len() {
            let owes = self.owes(party);
            let what = match self.asked.filter(|_| self.list[party].open) {
                Some(asked) => format!("answered round {}", asked.iteration),
                None => "opened it".to_owned(),
            };
            let member = &mut self.list[party];
            let silent = owes && !member.pending && member.held_up.is_none() && member.deadline.has_passed(now.at);
            if silent && let Some(outbox) = member.outbox.take() {
                let waited = member.deadline.extend(now.at).as_secs();
                tracing::warn!(job, party = member.name, waited, "the party is asked again on a new stream");
                let message = format!(
                    "job {job}: {} has not {what} for {waited} s; this stream is ended so that it attaches anew and is asked again",
                    member.name
                );
                outbox.refuse(&Fault::new(ErrorCode::Unreachable, message).at_party(member.name.clone()));
            }
        }
    }

    /// Begins a round: nobody has answered it yet.
    pub(super) fn ask(&mut self, iteration: u64, queries: usize, now: Moment) {
        self.asked = Some(Asked { iteration, queries });
        self.due = self.list.len();
        for member in &mut self.list {
            member.answer = None;
            member.attempt = 0;
            if member.open {
                member.since = now;
                member.deadline.begin(now.at);
            }
        }
    }

    /// For how long a party holds back its answer to the round being asked, where it has told.
    pub(super) fn held_back(&self, party: usize) -> Option<Duration> {
        Some(self.list[party].delay?.of(self.asked?.queries))
    }

    /// Says what the queries of the round being asked are worth.
    pub(super) fn expect(&mut self, questions: Questions) {
        self.questions = questions;
    }

    /// What the parties hold, once every one has opened the job at least once.
    pub(super) fn holdings(&self) -> Option<Vec<Holding>> {
        self.list.iter().map(|m| m.holding).collect()
    }

    pub(super) fn all_open(&self) -> bool {
        self.list.iter().all(|m| m.open)
    }

    pub(super) fn all_answered(&self) -> bool {
        self.asked.is_some() && self.due == 0
    }

    pub(super) fn answered(&self, party: usize) -> bool {
        self.list[party].answer.is_some()
    }

    /// The answers of a complete round, `[party][query]`; the round is over then.
    pub(super) fn take_answers(&mut self) -> Option<(u64, &[Vec<i64>])> {
        if !self.all_answered() {
            return None;
        }
        let asked = self.asked.take()?;
        let answers = self.list.iter_mut().filter_map(|m| m.answer.take()).collect();
        let (iteration, answers) = self.previous.insert((asked.iteration, answers));
        Some((*iteration, answers))
    }

    /// Takes in what a party said.
    ///
    /// # Errors
    /// How the job ends of it.
    pub(super) fn hear(&mut self, party: usize, message: Message, now: Moment) -> Result<Told, Ending> {
        match message {
            Message::Opened(holding, delay) => {
                let told = self.opened(party, holding, now);
                // Another opening may tell another delay, as after the party was configured anew: it is no part of what it holds.
                if matches!(told, Ok(Told::FirstOpening(_) | Told::Opening)) {
                    self.list[party].delay = delay;
                }
                told
            }
            Message::Pending => {
                let member = &mut self.list[party];
                member.pending = member.outbox.is_some() && !member.open;
                Ok(Told::Nothing)
            }
            Message::HeldUp(reason) => {
                self.hold_up(party, reason);
                Ok(Told::Nothing)
            }
            Message::Refused(fault) if fault.code == ErrorCode::Budget => Err(Ending::Budget { party, message: fault.message }),
            Message::Refused(fault) if fault.code == ErrorCode::Policy => Err(Ending::Refused(self.lay_at(party, fault))),
            Message::Refused(fault) => Err(Ending::Failed(self.lay_at(party, fault))),
            Message::Malformed(what) => Err(self.broke(party, &what)),
            Message::Answer { iteration, outcome: Ok(releases) } => self.released(party, iteration, releases, now),
            Message::Answer { iteration, outcome: Err(status) } => self.refused(party, iteration, status, now),
        }
    }

    fn opened(&mut self, party: usize, holding: Holding, now: Moment) -> Result<Told, Ending> {
        let member = &mut self.list[party];
        if member.outbox.is_none() || member.open {
            return Ok(Told::Nothing);
        }
        member.pending = false;
        member.held_up = None;
        member.deadline.kept(now.at);
        member.deadline.again(now.at);
        match member.holding {
            None => {
                member.holding = Some(holding);
                member.open = true;
                Ok(Told::FirstOpening(holding))
            }
            Some(before) if before == holding => {
                member.open = true;
                Ok(Told::Opening)
            }
            Some(before) => {
                let fault = Fault::new(
                    ErrorCode::Conflict,
                    format!(
                        "{} now holds {} where this job began with {}: one job must see the same data throughout; put \
                         the data back as they were, or submit the job anew",
                        member.name,
                        in_words(&holding),
                        in_words(&before)
                    ),
                );
                Err(Ending::Failed(self.lay_at(party, fault)))
            }
        }
    }

    fn released(&mut self, party: usize, iteration: u64, releases: Vec<i64>, now: Moment) -> Result<Told, Ending> {
        let changed = format!("two different answers to round {iteration}");
        match (self.asked, &self.previous) {
            (Some(asked), _) if asked.iteration == iteration => {
                if releases.len() != asked.queries {
                    let what = format!("{} numbers for the {} queries of round {iteration}", releases.len(), asked.queries);
                    return Err(self.broke(party, &what));
                }
                if let Some(what) = self.impossible(party, iteration, &releases) {
                    return Err(self.broke(party, &what));
                }
                let member = &mut self.list[party];
                match &member.answer {
                    None => {
                        member.answer = Some(releases);
                        self.due -= 1;
                        member.deadline.kept(now.at);
                        Ok(Told::Answered)
                    }
                    Some(before) if *before == releases => Ok(Told::Nothing),
                    Some(_) => Err(self.broke(party, &changed)),
                }
            }
            (_, Some((before, answers))) if *before == iteration => match answers[party] == releases {
                true => Ok(Told::Nothing),
                false => Err(self.broke(party, &changed)),
            },
            _ if self.is_ahead(iteration) => Err(self.broke(party, &format!("an answer to round {iteration}, not asked yet"))),
            _ => Ok(Told::Nothing),
        }
    }

    /// What no sum of clamped records can be, whatever they hold and whatever the noise.
    fn impossible(&self, party: usize, iteration: u64, releases: &[i64]) -> Option<String> {
        let holding = self.list[party].holding?;
        let (_, questions) = self.questions.iter().find(|(unit, _)| *unit == holding.unit())?;
        let units = holding.records().or(holding.persons());
        let greatest =
            questions.iter().map(|asked| asked.map_or(u64::MAX, |(question, noise)| question.greatest_release(units, noise)));
        let too_great = releases.iter().zip(greatest).enumerate().find(|(_, (release, most))| release.unsigned_abs() > *most);
        too_great.map(|(query, (release, most))| {
            format!("the impossible number {release} for query {query} of round {iteration}, where none is beyond {most}")
        })
    }

    fn hold_up(&mut self, party: usize, reason: String) {
        let member = &mut self.list[party];
        tracing::warn!(party = member.name, reason, "job paused");
        (member.pending, member.held_up) = (false, Some(reason));
    }

    fn refused(&mut self, party: usize, iteration: u64, status: AnswerStatus, now: Moment) -> Result<Told, Ending> {
        let name = &self.list[party].name;
        if self.asked.is_none_or(|asked| asked.iteration != iteration) {
            return match self.is_ahead(iteration) {
                true => Err(self.broke(party, &format!("an answer to round {iteration}, not asked yet"))),
                false => Ok(Told::Nothing),
            };
        }
        if self.list[party].answer.is_some() && status != AnswerStatus::Attempt {
            return Err(self.broke(party, &format!("two different answers to round {iteration}")));
        }
        match status {
            AnswerStatus::Attempt if self.list[party].answer.is_some() => return Ok(Told::Nothing),
            AnswerStatus::Attempt if self.list[party].attempt < MOST_ATTEMPTS => {
                self.list[party].attempt += 1;
                self.list[party].deadline.again(now.at);
                return Ok(Told::AskAgain);
            }
            AnswerStatus::Behind => {
                self.hold_up(party, "its ledger is behind what it has answered: its owner has to restore or unlock it".into());
                return Ok(Told::Nothing);
            }
            _ => {}
        }
        let (code, message) = match status {
            AnswerStatus::Budget => {
                let message = format!("the budget at {name} does not admit round {iteration}");
                return Err(Ending::Budget { party, message });
            }
            AnswerStatus::Invalid => (
                ErrorCode::Internal,
                format!(
                    "{name} holds the queries of round {iteration} for malformed: do coordinator and party run the same version?"
                ),
            ),
            AnswerStatus::Conflict => (
                ErrorCode::Conflict,
                format!(
                    "{name} has answered other queries under the ids of round {iteration}: the coordinator's store is not the one that this job began with"
                ),
            ),
            AnswerStatus::Halted => (
                ErrorCode::Internal,
                format!(
                    "{name} has stopped answering because its ledger could not be written: its owner has to mend the disk and start it again, then submit the job anew"
                ),
            ),
            AnswerStatus::UnknownJob => (ErrorCode::NotFound, format!("{name} does not know this job any more: submit it anew")),
            AnswerStatus::Policy => (
                ErrorCode::Policy,
                format!(
                    "the owner's policy at {name} does not admit the queries of round {iteration}: its owner has withdrawn the consent, or the noise lies below the owner's floor, or the job has made as many rounds as it may"
                ),
            ),
            AnswerStatus::Attempt | AnswerStatus::Behind => {
                (ErrorCode::Internal, format!("{name} can't answer round {iteration}"))
            }
            AnswerStatus::Released => (ErrorCode::Internal, format!("{name} refused round {iteration} without a reason")),
        };
        let fault = Fault::new(code, message).at_party(self.list[party].name.clone());
        Err(if status == AnswerStatus::Policy { Ending::Refused(fault) } else { Ending::Failed(fault) })
    }

    fn is_ahead(&self, iteration: u64) -> bool {
        match (self.asked, &self.previous) {
            (Some(asked), _) => iteration > asked.iteration,
            (None, Some((before, _))) => iteration > *before,
            (None, None) => true,
        }
    }

    fn broke(&self, party: usize, what: &str) -> Ending {
        let name = &self.list[party].name;
        let message = format!("{name} sent {what}: nothing that it sends can be used until its software is mended");
        Ending::Failed(Fault::new(ErrorCode::Internal, message).at_party(name.clone()))
    }

    fn lay_at(&self, party: usize, fault: Fault) -> Fault {
        match fault.party {
            Some(_) => fault,
            None => fault.at_party(self.list[party].name.clone()),
        }
    }
}

/// What a party holds, as far as it is public.
fn in_words(holding: &Holding) -> String {
    let unit = holding.unit();
    match (holding.records(), holding.persons()) {
        (Some(records), _) => format!("{records} records"),
        (_, Some(persons)) => format!("{persons} persons ({unit})"),
        _ => format!("an unpublished number of records ({unit})"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::outbox::outbox;

    fn members() -> Members {
        let mut members = Members::new(&["a".to_owned(), "b".to_owned()], &[None, None], Limits::default(), Moment::now());
        for party in 0..2 {
            members.attach(party, outbox().0, Moment::now());
            let holding = Holding::rows(10);
            assert_eq!(hear(&mut members, party, Message::Opened(holding, None)), Ok(Told::FirstOpening(holding)));
        }
        members
    }

    fn hear(members: &mut Members, party: usize, message: Message) -> Result<Told, Ending> {
        members.hear(party, message, Moment::now())
    }

    fn answer(iteration: u64, releases: &[i64]) -> Message {
        Message::Answer { iteration, outcome: Ok(releases.to_vec()) }
    }

    /// One ratio at parties that protect rows, under a clip of 0.5.
    fn questions() -> Questions {
        let spec = conclave_common::job::JobSpec::parse(
            "name = \"t\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\n\
             y = { min = -10, max = 10 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\nclip = 0.5",
        );
        let (spec, unit, kind) = (spec.unwrap(), PrivacyUnit::default(), conclave_common::mechanism::QueryKind::Ratio);
        let model = spec.build_model();
        let question = QueryTerms::new(model.as_ref(), &spec, unit, kind, (&[0.0], &[0.3])).unwrap();
        vec![(unit, vec![Some((question, NoiseScale::from_units(1 << 20).unwrap()))])]
    }

    fn named(ending: Result<Told, Ending>) -> (Option<String>, String) {
        let Err(Ending::Failed(fault)) = ending else { panic!("{ending:?}") };
        (fault.party, fault.message)
    }

    #[test]
    fn a_round_is_complete_when_all_have_answered() {
        let mut members = members();
        members.ask(5, 2, Moment::now());
        assert_eq!(hear(&mut members, 1, answer(5, &[3, 4])), Ok(Told::Answered));
        assert!(members.take_answers().is_none());
        assert_eq!(hear(&mut members, 0, answer(5, &[1, 2])), Ok(Told::Answered));
        assert_eq!(members.take_answers(), Some((5, &[vec![1, 2], vec![3, 4]][..])));
    }

    #[test]
    fn a_silent_party_is_shown_whatever_the_clock_on_the_wall_says() {
        let mut members = members();
        let asked = Moment { ms: i64::MAX, ..Moment::now() };
        members.ask(5, 1, asked);
        let after = |seconds| members.waits_for(0, Duration::from_secs(10), asked.at + Duration::from_secs(seconds));
        assert_eq!(after(9), None);
        assert!(after(10).is_some_and(|why| why.contains("round 5")));
    }

    #[test]
    fn the_same_answer_twice_is_one_answer() {
        let mut members = members();
        members.ask(5, 1, Moment::now());
        hear(&mut members, 0, answer(5, &[1])).unwrap();
        assert_eq!(hear(&mut members, 0, answer(5, &[1])), Ok(Told::Nothing));
        hear(&mut members, 1, answer(5, &[2])).unwrap();
        members.take_answers().unwrap();
        assert_eq!(hear(&mut members, 0, answer(5, &[1])), Ok(Told::Nothing));
        members.ask(6, 1, Moment::now());
        assert_eq!(hear(&mut members, 0, answer(5, &[1])), Ok(Told::Nothing));
        assert_eq!(hear(&mut members, 0, answer(4, &[7])), Ok(Told::Nothing), "too old to compare");
    }

    #[test]
    fn bad_answers_end_the_job_and_name_the_party() {
        type Act = fn(&mut Members) -> Result<Told, Ending>;
        let broken: [Act; 7] = [
            |m| {
                hear(m, 1, answer(5, &[1])).unwrap();
                hear(m, 1, answer(5, &[2]))
            },
            |m| hear(m, 1, answer(5, &[1, 2])),
            |m| hear(m, 1, answer(6, &[1])),
            |m| {
                m.expect(questions());
                // Ten records of at most 0.5, and 64 noise scales.
                let greatest = 10 * (1_i64 << 31) + (64 << 20);
                hear(m, 0, answer(5, &[greatest])).unwrap();
                hear(m, 1, answer(5, &[greatest + 1]))
            },
            |m| {
                m.expect(questions());
                hear(m, 1, answer(5, &[i64::MIN]))
            },
            |m| hear(m, 1, Message::Malformed("an answer without a status".to_owned())),
            |m| {
                hear(m, 0, answer(5, &[1])).unwrap();
                hear(m, 1, answer(5, &[1])).unwrap();
                m.take_answers().unwrap();
                hear(m, 1, answer(5, &[9]))
            },
        ];
        for act in broken {
            let mut members = members();
            members.ask(5, 1, Moment::now());
            let (party, message) = named(act(&mut members));
            assert_eq!(party.as_deref(), Some("b"), "{message}");
        }
    }

    #[test]
    fn refusals() {
        for status in AnswerStatus::ALL {
            let mut members = members();
            members.ask(5, 1, Moment::now());
            let ending = hear(&mut members, 1, Message::Answer { iteration: 5, outcome: Err(status) });
            match status {
                AnswerStatus::Budget => assert!(matches!(ending, Err(Ending::Budget { party: 1, .. }))),
                AnswerStatus::Attempt => assert_eq!((ending, members.list[1].attempt), (Ok(Told::AskAgain), 1)),
                AnswerStatus::Behind => {
                    assert_eq!(ending, Ok(Told::Nothing));
                    assert!(members.list[1].held_up.as_ref().is_some_and(|why| why.contains("unlock")));
                }
                AnswerStatus::Policy => {
                    let Err(Ending::Refused(fault)) = ending else { panic!("{ending:?}") };
                    assert_eq!((fault.code, fault.party.as_deref()), (ErrorCode::Policy, Some("b")));
                }
                _ => assert_eq!(named(ending).0.as_deref(), Some("b")),
            }
        }
    }

    #[test]
    fn another_reply_delay_is_no_change_of_what_a_party_holds() {
        let mut members = members();
        assert_eq!(members.held_back(0), None);
        for (ms, expected) in [(2, Some(4)), (3, Some(6)), (0, None)] {
            members.detach(0, Moment::now());
            members.attach(0, outbox().0, Moment::now());
            let delay = (ms > 0).then(|| AnswerDelay { least: Duration::from_millis(ms), proposals: 4 });
            assert_eq!(hear(&mut members, 0, Message::Opened(Holding::rows(10), delay)), Ok(Told::Opening));
            members.ask(ms, 5, Moment::now());
            assert_eq!(members.held_back(0), expected.map(Duration::from_millis));
        }
        // What is not heard as an opening tells no delay.
        let late = Some(AnswerDelay { least: Duration::from_millis(9), proposals: 4 });
        assert_eq!(hear(&mut members, 0, Message::Opened(Holding::rows(10), late)), Ok(Told::Nothing));
        assert_eq!((members.held_back(0), members.held_back(1)), (None, None));
    }

    #[test]
    fn another_record_count_is_named() {
        let mut members = members();
        members.detach(1, Moment::now());
        members.attach(1, outbox().0, Moment::now());
        let (party, message) = named(hear(&mut members, 1, Message::Opened(Holding::rows(11), None)));
        assert_eq!(party.as_deref(), Some("b"));
        assert!(message.contains("11") && message.contains("10"), "{message}");
    }
}
