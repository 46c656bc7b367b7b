//! The owner's decision: jobs that wait for it, and jobs from which it is withdrawn while they run.
#![allow(clippy::unwrap_used)]
use std::time::Instant;

use conclave_privacy::accounting::{Adjacency, Budget, PrivacyUnit};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::error::ErrorCode;
use conclave_proto::v1::{self, party_frame::Body};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::answer::answerer::Answerer;
use crate::answer::open::Opening;
use crate::answer::reply::ReplySender;
use crate::answer::tests::{queries_of, state_of};
use crate::config::{Approve, Policy, ReplyDelay};
use crate::consent::{ConsentStore, Decider, Standing};
use crate::data::Shard;
use crate::data::{BadRows, DataConfig};
use crate::ledger::Ledger;
use crate::members::Members;
use crate::noise::Noise;
use crate::testing::{JOB, MEAN_TOML, budget, data, open_policy, open_request, query, write};

struct House {
    folder: TempDir,
    budget: Budget,
    data: DataConfig,
    policy: Policy,
}

impl House {
    fn new(policy: Policy, unit: PrivacyUnit) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rows: String = (0..1000).map(|i| format!("{},p{}\n", 100 + i % 101, i / 3)).collect();
        let path = write(folder.path(), "a.csv", &format!("height,who\n{rows}"));
        let person = unit.records_per_person().map(|_| "who".to_owned());
        let policy = Policy { columns: Some(vec!["height".to_owned()]), ..policy };
        let house =
            Self { folder, budget: budget().of(unit), data: DataConfig { person, unit, ..data(path, BadRows::Stop) }, policy };
        Ledger::init(&house.ledger(), "hospital-a", &house.budget).unwrap();
        house
    }

    fn manual() -> Self {
        Self::new(Policy { approve: Approve::Manual, ..open_policy() }, PrivacyUnit::default())
    }

    fn ledger(&self) -> std::path::PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    fn start(&self) -> Answerer {
        let shard = Shard::load(&self.data, self.policy.columns.as_deref()).unwrap();
        let ledger = Ledger::open(&self.ledger(), "hospital-a", &self.budget).unwrap();
        Answerer::new("hospital-a".into(), self.policy.clone(), self.budget, shard, ledger, Noise::from_os().unwrap())
            .with_members(Members::anyone())
            .with_consent(self.decisions())
    }

    fn decisions(&self) -> ConsentStore {
        ConsentStore::open(&self.ledger()).unwrap()
    }

    fn decide(&self, decision: Standing, reason: &str) {
        self.decisions().decide(JOB, decision, Decider::Owner, reason).unwrap();
    }

    fn queries(&self) -> u64 {
        queries_of(&self.ledger())
    }

    fn mu_squared(&self) -> f64 {
        state_of(&self.ledger()).spent().mu_squared()
    }
}

fn status(answer: &v1::Answer) -> AnswerStatus {
    AnswerStatus::from_wire(answer.status.unwrap()).unwrap()
}

fn said(inbox: &mut mpsc::Receiver<v1::PartyFrame>) -> Body {
    inbox.try_recv().unwrap().body.unwrap()
}

fn refused(body: Body) -> (String, String) {
    let Body::JobRefused(refused) = body else { panic!("{body:?}") };
    (refused.code, refused.reason)
}

fn ask(answerer: &mut Answerer, outbox: &ReplySender) {
    answerer.open_or_wait(open_request(MEAN_TOML), Instant::now(), outbox.clone());
}

#[test]
fn a_job_waits_opens_when_approved_and_gets_no_answers_once_revoked() {
    let house = House::manual();
    let mut answerer = house.start();
    let (outbox, mut inbox) = mpsc::channel(8);
    ask(&mut answerer, &outbox);
    assert!(matches!(said(&mut inbox), Body::JobPending(p) if p.job == JOB));
    assert_eq!(status(&answerer.answer(query(0, &[(0, 0.0, 1e-4)]))), AnswerStatus::UnknownJob);
    answerer.consent_changed();
    assert!(inbox.try_recv().is_err(), "nothing was decided");

    house.decide(Standing::Approved, "");
    answerer.consent_changed();
    assert!(matches!(said(&mut inbox), Body::JobOpened(o) if o.records == 1000));
    let first = answerer.answer(query(0, &[(0, 0.0, 1e-4)]));
    assert_eq!((status(&first), house.queries()), (AnswerStatus::Released, 1));

    house.decide(Standing::Revoked, "the study ended");
    answerer.consent_changed();
    let (code, reason) = refused(said(&mut inbox));
    assert_eq!(
        (code.as_str(), &*reason),
        ("revoked", "the consent to this job was revoked by the owner of hospital-a: the study ended")
    );
    // Not even earlier answers are repeated.
    for iteration in [0, 1] {
        assert_eq!(status(&answerer.answer(query(iteration, &[(0, 0.0, 1e-4)]))), AnswerStatus::Policy);
    }
    ask(&mut answerer, &outbox);
    assert_eq!(refused(said(&mut inbox)).0, "revoked");
    assert_eq!(house.queries(), 1);
    // The decisions are also in the ledger's chain, once each, with the owner's reasons.
    let connection = rusqlite::Connection::open(house.ledger()).unwrap();
    let mut acts = connection.prepare("SELECT kind, body FROM events WHERE kind IN ('approve', 'revoke') ORDER BY seq").unwrap();
    let acts: Vec<(String, String)> =
        acts.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(acts.iter().map(|a| a.0.as_str()).collect::<Vec<_>>(), ["approve", "revoke"]);
    assert!(acts[0].1.contains("owner") && acts[1].1.contains("the study ended"), "{acts:?}");
    // A party that starts again remembers.
    drop(answerer);
    let mut answerer = house.start();
    ask(&mut answerer, &outbox);
    assert_eq!(refused(said(&mut inbox)).0, "revoked");
    assert_eq!(status(&answerer.answer(query(0, &[(0, 0.0, 1e-4)]))), AnswerStatus::Policy);
}

/// The owner's terms are hashed into the ledger's chain with the approval.
#[test]
fn the_terms_of_an_approval_are_in_the_ledger() {
    let house = House::manual();
    let mut answerer = house.start();
    let (outbox, mut inbox) = mpsc::channel(8);
    ask(&mut answerer, &outbox);
    said(&mut inbox);
    let terms = r#"{"reference":"EC 17","until":"2027-03-31"}"#;
    house.decisions().decide_under(JOB, Standing::Approved, Decider::Owner, "", Some(terms)).unwrap();
    answerer.consent_changed();
    assert!(matches!(said(&mut inbox), Body::JobOpened(_)));
    drop(answerer);
    let body: String = rusqlite::Connection::open(house.ledger())
        .unwrap()
        .query_row("SELECT body FROM events WHERE kind = 'approve'", [], |row| row.get(0))
        .unwrap();
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&body["permit"]["until"], &body["by"]), (&"2027-03-31".into(), &"owner".into()), "{body}");
    // Every entry verifies.
    house.start();
}

#[test]
fn a_rejected_job_is_refused_with_the_reason_and_never_entered() {
    let house = House::manual();
    let mut answerer = house.start();
    let (outbox, mut inbox) = mpsc::channel(8);
    ask(&mut answerer, &outbox);
    said(&mut inbox);
    house.decide(Standing::Rejected, "too many columns");
    answerer.consent_changed();
    let (code, reason) = refused(said(&mut inbox));
    assert!(code == "policy" && reason.contains("too many columns"), "{reason}");
    assert_eq!(state_of(&house.ledger()).jobs().len(), 0);
}

#[test]
fn the_digest_that_was_approved_binds() {
    let house = House::manual();
    let mut answerer = house.start();
    let (outbox, mut inbox) = mpsc::channel(8);
    ask(&mut answerer, &outbox);
    said(&mut inbox);
    house.decide(Standing::Approved, "");
    for change in ["max = 201", "noise_sd = 0.5", "sd = 9.0", "epsilon = 4.0", "draws = 11"] {
        let from = match change.split(' ').next().unwrap() {
            "max" => "max = 200",
            "noise_sd" => "noise_sd = 1.0",
            "sd" => "sd = 10.0",
            "epsilon" => "epsilon = 3.0",
            _ => "draws = 10",
        };
        assert!(MEAN_TOML.contains(from));
        answerer.open_or_wait(open_request(&MEAN_TOML.replace(from, change)), Instant::now(), outbox.clone());
        assert_eq!(refused(said(&mut inbox)).0, "conflict", "{change}");
    }
    ask(&mut answerer, &outbox);
    assert!(matches!(said(&mut inbox), Body::JobOpened(_)));
}

#[test]
fn the_policy_decides_for_an_automatic_owner_who_may_still_revoke() {
    let house = House::new(open_policy(), PrivacyUnit::default());
    let mut answerer = house.start();
    let (outbox, mut inbox) = mpsc::channel(8);
    ask(&mut answerer, &outbox);
    assert!(matches!(said(&mut inbox), Body::JobOpened(_)));
    let decided = house.decisions().request(JOB).unwrap().decided.unwrap();
    assert_eq!((&*decided.decider, &*decided.reason), ("policy", "within the limits under [policy] in party.toml"));
    house.decide(Standing::Revoked, "");
    answerer.consent_changed();
    assert_eq!(refused(said(&mut inbox)).0, "revoked");
    ask(&mut answerer, &outbox);
    assert_eq!(refused(said(&mut inbox)).0, "revoked", "the policy does not overrule its owner");
}

#[test]
fn a_job_beyond_the_limits_never_reaches_its_owner() {
    let policy = Policy { approve: Approve::Manual, analysts: Some(vec!["bob".into()]), ..open_policy() };
    let house = House::new(policy, PrivacyUnit::default());
    let mut answerer = house.start();
    let (outbox, mut inbox) = mpsc::channel(8);
    ask(&mut answerer, &outbox);
    assert_eq!(refused(said(&mut inbox)).0, "policy");
    assert!(house.decisions().requests().unwrap().is_empty());
}

#[test]
fn rounds_are_limited() {
    let limit = |rounds| House::new(Policy { max_iterations_per_job: Some(rounds), ..open_policy() }, PrivacyUnit::default());
    // Ten draws take ten rounds at least.
    let fault = limit(9).start().open(&open_request(MEAN_TOML)).unwrap_err();
    assert!(fault.code == ErrorCode::Policy && fault.message.contains("limit of 9 (max_iterations_per_job)"), "{fault}");
    let house = limit(12);
    let mut answerer = house.start();
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    let statuses = [0, 11, 12, 11].map(|iteration| status(&answerer.answer(query(iteration, &[(0, 0.0, 1e-4)]))));
    use AnswerStatus::{Policy as Refused, Released};
    assert_eq!(statuses, [Released, Released, Refused, Released]);
    assert_eq!(house.queries(), 2);
}

#[test]
fn the_column_of_persons_is_never_a_models() {
    let mut house = House::new(open_policy(), PrivacyUnit::person(Adjacency::Replace, 2).unwrap());
    house.policy.columns = None;
    let mut answerer = house.start();
    let fault = answerer.open(&open_request(&MEAN_TOML.replace("height", "who"))).unwrap_err();
    assert!(fault.code == ErrorCode::Policy && fault.message.contains("names persons"), "{fault}");
    assert!(matches!(answerer.open(&open_request(MEAN_TOML)).unwrap(), Opening::Opened(..)));
}

#[test]
fn persons_and_adjacency_price_every_query_and_hide_the_count() {
    let row = PrivacyUnit::default();
    let person = PrivacyUnit::person(Adjacency::Replace, 2).unwrap();
    let mut prices = Vec::new();
    for unit in [row, person, PrivacyUnit::row(Adjacency::AddRemove), PrivacyUnit::person(Adjacency::AddRemove, 2).unwrap()] {
        let house = House::new(open_policy(), unit);
        let mut answerer = house.start();
        let (outbox, mut inbox) = mpsc::channel(8);
        ask(&mut answerer, &outbox);
        let Body::JobOpened(opened) = said(&mut inbox) else { panic!() };
        let counts = (opened.records, opened.persons);
        let expected = match (unit.adjacency, unit.records_per_person()) {
            (Adjacency::Replace, None) => (1000, 0),
            // 333 persons of three rows and one of one.
            (Adjacency::Replace, Some(_)) => (0, 334),
            (Adjacency::AddRemove, _) => (0, 0),
        };
        assert_eq!((counts, opened.records_per_person), (expected, unit.records_per_person().unwrap_or(0)));
        assert_eq!(status(&answerer.answer(query(0, &[(0, -5e-5, 5e-5)]))), AnswerStatus::Released);
        prices.push(house.mu_squared());
        drop(answerer);
        // The ledger was created for this unit and accepts no other.
        let other = budget().of(PrivacyUnit::person(Adjacency::Replace, 3).unwrap());
        assert!(Ledger::open(&house.ledger(), "hospital-a", &other).is_err());
    }
    // For a step across 0 the centre, which only rows under replacement have, is 0.
    let times = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    assert!(times(prices[1], 4.0 * prices[0]) && times(prices[2], prices[0] / 4.0) && times(prices[3], prices[0]), "{prices:?}");
}

#[test]
fn a_step_too_wide_for_the_sum_is_refused_alike_whatever_the_number_of_records() {
    let house = House::new(open_policy(), PrivacyUnit::row(Adjacency::AddRemove));
    let mut answerer = house.start();
    // A tiny standard deviation makes a record's bound huge: it would fit for 1000 records, but not for the maximal number.
    let wide = MEAN_TOML.replace("sd = 10.0", "sd = 0.9");
    answerer.open(&open_request(&wide)).unwrap();
    assert_eq!(status(&answerer.answer(query(0, &[(0, 0.0, 0.5)]))), AnswerStatus::Invalid);
    assert_eq!(status(&answerer.answer(query(0, &[(0, 0.0, 1e-4)]))), AnswerStatus::Released);
}

/// The coordinator receives the policy's delay; none where the owner has turned it off. `party/src/reply_delay/tests` has a measured one.
#[test]
fn an_opening_states_the_delay_of_answers() {
    let hears = |reply_delay: ReplyDelay, unit: PrivacyUnit| {
        let house = House::new(Policy { reply_delay, ..open_policy() }, unit);
        let mut answerer = house.start();
        let (outbox, mut inbox) = mpsc::channel(8);
        let mut opening = || {
            ask(&mut answerer, &outbox);
            let Body::JobOpened(opened) = said(&mut inbox) else { panic!() };
            opened
        };
        let first = opening();
        assert_eq!(opening(), v1::JobOpened { head: first.head.clone(), ..opening() }, "a second opening states the same");
        let stated = AnswerDelay::read(&first);
        assert_eq!(stated, answerer.jobs[JOB].delay.map(|delay| delay.answer));
        stated.map(|stated| (stated.least, stated.proposals))
    };
    let row = PrivacyUnit::default();
    let fixed = std::time::Duration::from_micros(1250);
    assert_eq!(hears(ReplyDelay::Off, row), None);
    assert_eq!(hears(ReplyDelay::Fixed(fixed), row), Some((fixed, 2)));
    assert_eq!(hears(ReplyDelay::Fixed(fixed), PrivacyUnit::row(Adjacency::AddRemove)), Some((fixed, 2)));
    assert_eq!(hears(ReplyDelay::Fixed(2 * fixed), row), Some((2 * fixed, 2)));
}
