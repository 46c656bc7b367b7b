//! Effects of a party's messages on a round, and the messages that end the job.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use conclave_common::job::JobSpec;
use conclave_common::query::{Opened, PartyMetadata, Phase, Query, Round};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::error::ErrorCode;

use super::*;
use crate::clock::Timestamp;
use crate::driver::round_terms::RoundTerms;
use crate::driver::stop::StopReason;
use crate::party_event::Message;
use crate::send_queue::send_queue;

fn members() -> Members {
    let mut members = Members::new(&["a".to_owned(), "b".to_owned()], &[None, None], Limits::default(), Timestamp::now());
    for party in 0..2 {
        members.attach(party, send_queue().0, Timestamp::now());
        let metadata = PartyMetadata::rows(10);
        assert_eq!(hear(&mut members, party, Message::Opened(metadata, None, None)), Ok(PartyUpdate::FirstOpening(metadata)));
    }
    members
}

fn hear(members: &mut Members, party: usize, message: Message) -> Result<PartyUpdate, StopReason> {
    members.hear(party, message, Timestamp::now())
}

fn answer(iteration: u64, releases: &[i64]) -> Message {
    Message::Answer { iteration, outcome: Ok(releases.to_vec()), echo: None }
}

/// A round of queries whose answers are single integers.
fn asked(iteration: u64, queries: usize) -> Round {
    let noise = NoiseScale::from_units(1 << 20).unwrap();
    let query = |chain| Query { chain, kind: QueryKind::Ratio, from: vec![0.0], to: vec![0.3], noise };
    let queries = (0..).take(queries).map(query).collect();
    Round { iteration, phase: Phase::Sampling, queries, apart: Vec::new(), opened: Opened::EachAnswer }
}

/// The terms of one ratio at parties that protect rows, under a clip of 0.5.
fn terms() -> RoundTerms {
    let spec = JobSpec::parse(
        "name = \"t\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\n\
         y = { min = -10, max = 10 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\nclip = 0.5",
    );
    let spec = spec.unwrap();
    let model = spec.build_model();
    RoundTerms::of(&asked(5, 1), model.as_ref(), &spec, std::iter::once((PrivacyUnit::default(), 0)), &[0; 3])
}

fn named(ending: Result<PartyUpdate, StopReason>) -> (Option<String>, String) {
    let Err(StopReason::Failed(fault)) = ending else { panic!("{ending:?}") };
    (fault.party, fault.message)
}

#[test]
fn a_round_is_complete_when_all_have_answered() {
    let mut members = members();
    members.ask(&asked(5, 2), Timestamp::now());
    assert_eq!(hear(&mut members, 1, answer(5, &[3, 4])), Ok(PartyUpdate::Answered));
    assert!(members.complete().is_none());
    assert_eq!(hear(&mut members, 0, answer(5, &[1, 2])), Ok(PartyUpdate::Answered));
    assert_eq!(members.complete(), Some(5));
    assert_eq!(members.answers(), [vec![1, 2], vec![3, 4]]);
}

#[test]
fn a_silent_party_is_shown_whatever_the_clock_on_the_wall_says() {
    let mut members = members();
    let begun = Timestamp { ms: i64::MAX, ..Timestamp::now() };
    members.ask(&asked(5, 1), begun);
    let after = |seconds| members.wait_reason(0, Duration::from_secs(10), begun.at + Duration::from_secs(seconds));
    assert_eq!(after(9), None);
    assert!(after(10).is_some_and(|why| why.contains("round 5")));
}

#[test]
fn the_same_answer_twice_is_one_answer() {
    let mut members = members();
    members.ask(&asked(5, 1), Timestamp::now());
    hear(&mut members, 0, answer(5, &[1])).unwrap();
    assert_eq!(hear(&mut members, 0, answer(5, &[1])), Ok(PartyUpdate::Nothing));
    hear(&mut members, 1, answer(5, &[2])).unwrap();
    members.complete().unwrap();
    assert_eq!(hear(&mut members, 0, answer(5, &[1])), Ok(PartyUpdate::Nothing));
    members.ask(&asked(6, 1), Timestamp::now());
    assert_eq!(hear(&mut members, 0, answer(5, &[1])), Ok(PartyUpdate::Nothing));
    assert_eq!(hear(&mut members, 0, answer(4, &[7])), Ok(PartyUpdate::Nothing), "too old to compare");
}

#[test]
fn bad_answers_end_the_job_and_name_the_party() {
    type Act = fn(&mut Members) -> Result<PartyUpdate, StopReason>;
    let broken: [Act; 7] = [
        |m| {
            hear(m, 1, answer(5, &[1])).unwrap();
            hear(m, 1, answer(5, &[2]))
        },
        |m| hear(m, 1, answer(5, &[1, 2])),
        |m| hear(m, 1, answer(6, &[1])),
        |m| {
            m.set_terms(terms());
            // Ten records of at most 0.5, and 64 noise scales.
            let greatest = 10 * (1_i64 << 31) + (64 << 20);
            hear(m, 0, answer(5, &[greatest])).unwrap();
            hear(m, 1, answer(5, &[greatest + 1]))
        },
        |m| {
            m.set_terms(terms());
            hear(m, 1, answer(5, &[i64::MIN]))
        },
        |m| hear(m, 1, Message::Malformed("an answer without a status".to_owned())),
        |m| {
            hear(m, 0, answer(5, &[1])).unwrap();
            hear(m, 1, answer(5, &[1])).unwrap();
            m.complete().unwrap();
            hear(m, 1, answer(5, &[9]))
        },
    ];
    for act in broken {
        let mut members = members();
        members.ask(&asked(5, 1), Timestamp::now());
        let (party, message) = named(act(&mut members));
        assert_eq!(party.as_deref(), Some("b"), "{message}");
    }
}

#[test]
fn refusals() {
    for status in AnswerStatus::ALL {
        let mut members = members();
        members.ask(&asked(5, 1), Timestamp::now());
        let ending = hear(&mut members, 1, Message::Answer { iteration: 5, outcome: Err(status), echo: None });
        match status {
            AnswerStatus::Budget => assert!(matches!(ending, Err(StopReason::Budget { party: 1, .. }))),
            AnswerStatus::Attempt => assert_eq!((ending, members.list[1].attempt), (Ok(PartyUpdate::AskAgain), 1)),
            AnswerStatus::Behind => {
                assert_eq!(ending, Ok(PartyUpdate::Nothing));
                assert!(members.list[1].held_up.as_ref().is_some_and(|why| why.contains("unlock")));
            }
            AnswerStatus::Halted => {
                assert_eq!(ending, Ok(PartyUpdate::Nothing));
                assert!(members.list[1].held_up.as_ref().is_some_and(|why| why.contains("start it again")));
            }
            AnswerStatus::Policy => {
                let Err(StopReason::Refused(fault)) = ending else { panic!("{ending:?}") };
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
        members.detach(0, Timestamp::now());
        members.attach(0, send_queue().0, Timestamp::now());
        let delay = (ms > 0).then(|| AnswerDelay { least: Duration::from_millis(ms), proposals: 4 });
        assert_eq!(hear(&mut members, 0, Message::Opened(PartyMetadata::rows(10), delay, None)), Ok(PartyUpdate::Opening));
        members.ask(&asked(ms, 5), Timestamp::now());
        assert_eq!(members.held_back(0), expected.map(Duration::from_millis));
    }
    // A message that is not accepted as an opening reports no delay.
    let late = Some(AnswerDelay { least: Duration::from_millis(9), proposals: 4 });
    assert_eq!(hear(&mut members, 0, Message::Opened(PartyMetadata::rows(10), late, None)), Ok(PartyUpdate::Nothing));
    assert_eq!((members.held_back(0), members.held_back(1)), (None, None));
}

#[test]
fn another_record_count_is_named() {
    let mut members = members();
    members.detach(1, Timestamp::now());
    members.attach(1, send_queue().0, Timestamp::now());
    let (party, message) = named(hear(&mut members, 1, Message::Opened(PartyMetadata::rows(11), None, None)));
    assert_eq!(party.as_deref(), Some("b"));
    assert!(message.contains("11") && message.contains("10"), "{message}");
}
