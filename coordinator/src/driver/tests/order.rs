//! The others are neither asked nor awaited before the first has answered; the first has the smallest remaining budget, and is
//! chosen only near the end.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use conclave_common::job::JobSpec;
use conclave_common::query::{Opened, PartyMetadata, Phase, Query, Round};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

use super::*;
use crate::driver::deadline::Limits;
use crate::driver::members::PartyUpdate;
use crate::party_event::Message;
use crate::send_queue::send_queue;

const PARTIES: [&str; 3] = ["a", "b", "c"];

fn round() -> Round {
    let noise = NoiseScale::from_units(1 << 30).unwrap();
    let queries = vec![Query { chain: 0, kind: QueryKind::Ratio, from: vec![0.0], to: vec![0.3], noise }];
    Round { iteration: 5, phase: Phase::Sampling, queries, apart: Vec::new(), opened: Opened::EachAnswer }
}

fn members() -> Members {
    let mut members = Members::new(&PARTIES.map(str::to_owned), &[None; 3], Limits::default(), Timestamp::now());
    for party in 0..3 {
        members.attach(party, send_queue().0, Timestamp::now());
        members.hear(party, Message::Opened(PartyMetadata::rows(10), None, None), Timestamp::now()).unwrap();
    }
    members.ask(&round(), Timestamp::now());
    members
}

fn answered(members: &mut Members, party: usize) -> PartyUpdate {
    let answer = Message::Answer { iteration: 5, outcome: Ok(vec![7]), echo: None };
    members.hear(party, answer, Timestamp::now()).unwrap()
}

fn turns(members: &Members) -> Vec<usize> {
    (0..3).filter(|party| members.can_be_asked(*party)).collect()
}

#[test]
fn others_are_asked_once_the_first_has_answered() {
    let mut members = members();
    members.ask_first(Some(1));
    assert_eq!(turns(&members), [1]);
    assert_eq!(
        (0..3).filter(|party| members.is_awaited(*party)).collect::<Vec<_>>(),
        [1],
        "a party that is not asked is not awaited"
    );
    // However long the first takes, no other party is waited for.
    let later = Timestamp { at: Timestamp::now().at + Duration::from_secs(3600), ..Timestamp::now() };
    assert_eq!((0..3).filter(|party| members.wait_reason(*party, Duration::ZERO, later.at).is_some()).collect::<Vec<_>>(), [1]);
    assert!(!members.admit_others(0, later), "one that was not asked has not answered");
    assert_eq!(answered(&mut members, 1), PartyUpdate::Answered);
    assert!(members.admit_others(1, later));
    assert!(!members.admit_others(1, later), "the others are admitted once");
    assert_eq!(turns(&members), [0, 1, 2]);
    // Their time begins when they are asked.
    assert_eq!((0..3).filter(|party| members.wait_reason(*party, Duration::from_secs(1), later.at).is_some()).count(), 0);
    assert_eq!([members.is_awaited(0), members.is_awaited(1), members.is_awaited(2)], [true, false, true]);
    assert_eq!([answered(&mut members, 0), answered(&mut members, 2)], [PartyUpdate::Answered, PartyUpdate::Answered]);
    assert_eq!(members.complete(), Some(5));
}

#[test]
fn without_a_first_all_are_asked_at_once() {
    let mut members = members();
    members.ask_first(None);
    assert_eq!(turns(&members), [0, 1, 2]);
    assert_eq!(answered(&mut members, 2), PartyUpdate::Answered);
    assert!(!members.admit_others(2, Timestamp::now()));
}

/// Persons with up to two records pay four times what rows pay, so their budget is exhausted first.
#[test]
fn who_has_the_least_left_comes_first_and_near_the_end_alone() {
    let spec = JobSpec::parse(
        "name = \"t\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\n\
         y = { min = -10, max = 10 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\nclip = 0.5",
    )
    .unwrap();
    let model = spec.build_model();
    let persons = PrivacyUnit::person(Adjacency::Replace, 2).unwrap();
    let metadata = [PartyMetadata::rows(10), PartyMetadata::new(persons, 10), PartyMetadata::rows(10)];
    let mut spending = Spending::new(&metadata, false);
    assert_eq!(spending.party_with_least_budget(1000), None, "nothing was asked yet");
    spending.add(&round(), model.as_ref(), &spec).unwrap();
    let (_, each) = spending.of(1);
    let others = spending.of(0).1.units;
    assert!(each.units > 2 * others, "{} and {others}", each.units);
    // After one round, the remaining budget fits four more rounds, then three, then fewer.
    assert_eq!(spending.party_with_least_budget(5 * each.units), None);
    assert_eq!(spending.party_with_least_budget(4 * each.units), None);
    assert_eq!(spending.party_with_least_budget(4 * each.units - 1), Some(1));
    assert_eq!(spending.party_with_least_budget(each.units), Some(1));
    assert_eq!(spending.party_with_least_budget(0), Some(0), "any of the parties without remaining budget");
}
