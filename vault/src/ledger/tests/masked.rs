//! Jobs with masked answers: their entries, their charges, and the masks of their answers.
#![allow(clippy::unwrap_used)]
use std::path::PathBuf;

use conclave_privacy::accounting::{Budget, Honest, Priced, Spent, charge_units, gaussian_dp};
use conclave_privacy::secagg::{MaskPublic, MaskSecret, Member, Roster};
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{JOB, budget, entry, key, no_sum};

/// Sensitivity of the queries here, lattice units: a price of about 2^-11 of the budget.
const K: u64 = 1 << 26;

struct Fixture {
    folder: TempDir,
    noise: Noise,
    durability: Durability,
    all_collude: Option<Budget>,
}

fn public(place: u8) -> MaskPublic {
    MaskSecret::from_bytes([place + 1; 32].into()).public()
}

/// Returns a roster of `members`, of which this party is the first.
fn roster(members: u8, colluders: u32) -> Roster {
    let member = |place: u8| Member { name: format!("p{place}"), identity: [place; 32], public: public(place) };
    Roster::new(JOB, digest(), colluders, (0..members).map(member).collect()).unwrap()
}

fn enter(ledger: &mut Ledger, roster: &Roster) -> Result<(), LedgerError> {
    let known: Vec<(bool, String)> = roster.members().iter().map(|_| (true, "0a".to_owned())).collect();
    ledger.enter_roster(JOB, roster, &known)
}

/// The checker of exports compares a job's digest with its text.
fn digest() -> [u8; 32] {
    Sha256::digest(b"text").into()
}

impl Fixture {
    fn new() -> Self {
        let durability = Durability::Strict;
        let fixture =
            Self { folder: tempfile::tempdir().unwrap(), noise: Noise::from_os().unwrap(), durability, all_collude: None };
        fixture.settings().init().unwrap();
        fixture
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    fn settings(&self) -> LedgerSettings {
        LedgerSettings {
            durability: self.durability,
            all_collude: self.all_collude,
            ..LedgerSettings::beside(&self.path(), "hospital-a", &budget())
        }
    }

    fn open(&self) -> Ledger {
        let mut ledger = Ledger::open_kept(&self.settings()).unwrap();
        ledger.open_job(&JobEntry { spec_digest: &digest(), ..entry(JOB, budget()) }).unwrap();
        ledger
    }

    /// Opens the job under a roster of this size.
    fn masked(&self, members: u8, colluders: u32) -> Ledger {
        let mut ledger = self.open();
        ledger.enter_mask_key(JOB, &public(0)).unwrap();
        enter(&mut ledger, &roster(members, colluders)).unwrap();
        ledger
    }

    fn sql(&self, statement: &str) {
        Connection::open(self.path()).unwrap().execute_batch(statement).unwrap();
    }

    /// Charges one message without answering it.
    fn charge(ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) -> Vec<Grant> {
        match ledger.charge(JOB, iteration, keys).unwrap() {
            ChargeOutcome::Granted(grants) => grants,
            ChargeOutcome::Refused(refusal) => panic!("{refusal}"),
        }
    }

    /// Releases and records granted queries under a mask; returns the releases.
    fn answer(&mut self, ledger: &mut Ledger, grants: Vec<Grant>, mask: u64) -> Vec<i64> {
        let mut releases = Vec::new();
        let mut values = Vec::new();
        for grant in grants {
            match grant {
                Grant::Answered(recorded) => values.extend(recorded.integers().to_vec()),
                Grant::Charged(receipt) => {
                    releases.push(sample_noise(receipt, &mut self.noise).release_masked(no_sum(), &[mask]).unwrap());
                }
            }
        }
        values.extend(ledger.record(releases).unwrap().iter().flat_map(|recorded| recorded.integers().to_vec()));
        values
    }
}

fn masked(chain: u32, content: u8, honest: u32) -> QueryKey {
    let key = key(chain, content, K);
    let priced = Priced::new(key.priced.kind(), key.priced.sensitivity(), key.priced.noise(), Honest::new(honest).unwrap());
    QueryKey { priced, ..key }
}

fn refused(outcome: ChargeOutcome) -> Refusal {
    match outcome {
        ChargeOutcome::Refused(refusal) => refusal,
        ChargeOutcome::Granted(_) => panic!("granted"),
    }
}

fn price(honest: u32) -> Spent {
    masked(0, 0, honest).priced.cost(budget().unit).unwrap()
}

/// Charged by the noise of all who do not collude, counted beside that as if each answer had been opened by itself; and a start
/// finds the same.
#[test]
fn a_masked_charge_is_a_share_and_is_also_counted_whole() {
    let mut fixture = Fixture::new();
    let mut ledger = fixture.masked(10, 1);
    for round in 0..3 {
        let grants = Fixture::charge(&mut ledger, round, &[masked(0, 1, 9), masked(1, 2, 9)]);
        assert_eq!(fixture.answer(&mut ledger, grants, 1 << 63).len(), 2);
    }
    let (own, whole) = (price(9), price(1));
    assert_eq!(whole.units, charge_units(masked(0, 0, 1).priced.sensitivity(), masked(0, 0, 1).priced.noise()).unwrap());
    let check = |spent: Spent, alone: Spent| {
        assert_eq!((spent.units, spent.slack_units, spent.draws), (6 * own.units, 6 * own.slack_units, 6));
        assert_eq!((alone.units, alone.slack_units, alone.draws), (6 * whole.units, 6 * whole.slack_units, 6));
    };
    assert_eq!(own.units, whole.units.div_ceil(9));
    check(ledger.state().spent(), ledger.state().alone());
    let head = ledger.head();
    drop(ledger);
    // A ledger opens where it closed, and its last entry is the one it published.
    let ledger = fixture.open();
    check(ledger.state().spent(), ledger.state().alone());
    assert!(ledger.head().seq > head.seq);
    drop(ledger);
    let price = format!("honest = 9, alone = {}", whole.units);
    for (change, back) in [
        ("honest = 8", "honest = 9"),
        ("alone = alone + 1", "alone = alone - 1"),
        ("honest = 1", "honest = 9"),
        ("honest = NULL", "honest = 9"),
        ("alone = NULL", &*price),
        ("honest = NULL, alone = NULL", &*price),
    ] {
        fixture.sql(&format!("UPDATE charges SET {change} WHERE seq = (SELECT max(seq) FROM charges)"));
        let opened = Ledger::open_kept(&fixture.settings());
        assert!(matches!(opened, Err(LedgerError::Corrupt { .. })), "{change}");
        fixture.sql(&format!("UPDATE charges SET {back} WHERE seq = (SELECT max(seq) FROM charges)"));
    }
    fixture.open();
}

/// Nothing is charged before there is a roster, nor at another number of honest parties than its; there is one key and one roster for ever.
#[test]
fn a_job_has_one_key_and_one_roster() {
    let fixture = Fixture::new();
    let mut ledger = fixture.open();
    assert_eq!(refused(ledger.charge(JOB, 0, &[masked(0, 1, 2)]).unwrap()), Refusal::Roster, "a job of no masks");
    assert!(matches!(enter(&mut ledger, &roster(3, 1)), Err(LedgerError::Job(_))), "a key comes first");
    ledger.enter_mask_key(JOB, &public(0)).unwrap();
    ledger.enter_mask_key(JOB, &public(0)).unwrap();
    assert!(matches!(ledger.enter_mask_key(JOB, &public(7)), Err(LedgerError::Job(_))));
    for honest in [1, 2] {
        assert_eq!(refused(ledger.charge(JOB, 0, &[masked(0, 1, honest)]).unwrap()), Refusal::Roster);
    }
    // A roster without this party's key, and one of another job's text.
    let others = (1..4).map(|place| Member { name: format!("p{place}"), identity: [place; 32], public: public(place) });
    let without = Roster::new(JOB, digest(), 1, others.collect()).unwrap();
    assert!(matches!(enter(&mut ledger, &without), Err(LedgerError::Job(_))));
    let of_other = Roster::new(JOB, [9; 32], 1, roster(3, 1).members().to_vec()).unwrap();
    assert!(matches!(enter(&mut ledger, &of_other), Err(LedgerError::Job(_))));
    enter(&mut ledger, &roster(3, 1)).unwrap();
    let entries = ledger.state().seq();
    enter(&mut ledger, &roster(3, 1)).unwrap();
    assert_eq!(ledger.state().seq(), entries, "the same again is no entry");
    for other in [roster(4, 1), roster(4, 2)] {
        assert!(matches!(enter(&mut ledger, &other), Err(LedgerError::Job(_))));
    }
    for honest in [1, 3] {
        assert_eq!(refused(ledger.charge(JOB, 0, &[masked(0, 1, honest)]).unwrap()), Refusal::Roster);
    }
    // The roster persists after a start.
    drop(ledger);
    let mut ledger = fixture.open();
    assert!(matches!(ledger.masks(JOB), Some(Masks::Under(entered)) if entered.roster(JOB, &digest()).unwrap() == roster(3, 1)));
    assert!(matches!(enter(&mut ledger, &roster(4, 2)), Err(LedgerError::Job(_))));
    Fixture::charge(&mut ledger, 0, &[masked(0, 1, 2)]);
    // A job charged without masks gets none, and an ended one is never reopened.
    ledger.close_job(JOB, "done").unwrap();
    assert!(matches!(ledger.open_job(&JobEntry { spec_digest: &digest(), ..entry(JOB, budget()) }), Err(LedgerError::Job(_))));
    let local = Fixture::new();
    let mut ledger = local.open();
    Fixture::charge(&mut ledger, 0, &[key(0, 1, K)]);
    assert!(matches!(ledger.enter_mask_key(JOB, &public(0)), Err(LedgerError::Job(_))));
}

/// A message is fresh, or recoverable, or answered, always as a whole. Repeated after a crash it is computed under the old
/// charges; once answered, it gives the same bytes; a part of it combined with another query is a conflict that costs nothing.
#[test]
fn a_message_is_all_or_nothing() {
    for durability in [Durability::Strict, Durability::Reserve { block: 16 }] {
        let mut fixture = Fixture { durability, ..Fixture::new() };
        let mut ledger = fixture.masked(3, 1);
        let message = [masked(0, 1, 2), masked(1, 2, 2)];
        let receipts = Fixture::charge(&mut ledger, 0, &message);
        let spent = ledger.state().spent();
        assert_eq!(spent.draws, 2, "charged by itself, in no block");
        // In flight: no part of it is answered, and nothing may be combined with it.
        assert!(matches!(refused(ledger.charge(JOB, 0, &message).unwrap()), Refusal::InFlight { .. }));
        drop(receipts);
        drop(ledger);
        let mut ledger = fixture.open();
        for part in [&[message[0], masked(2, 3, 2)][..], &[masked(2, 3, 2), message[1]]] {
            assert!(matches!(refused(ledger.charge(JOB, 0, part).unwrap()), Refusal::Conflict { .. }));
        }
        let grants = Fixture::charge(&mut ledger, 0, &message);
        let first = fixture.answer(&mut ledger, grants, 77);
        assert_eq!(ledger.state().spent(), spent, "under the old charges");
        for _ in 0..2 {
            let again = Fixture::charge(&mut ledger, 0, &message);
            assert!(again.iter().all(|grant| matches!(grant, Grant::Answered(_))));
            assert_eq!(fixture.answer(&mut ledger, again, 99), first);
            drop(ledger);
            ledger = fixture.open();
        }
        for part in [&[message[0], masked(2, 3, 2)][..], &[masked(2, 3, 2), message[1]], &[masked(0, 9, 2), message[1]]] {
            assert!(matches!(refused(ledger.charge(JOB, 0, part).unwrap()), Refusal::Conflict { .. }));
        }
        assert_eq!(ledger.state().spent(), spent);
    }
}

/// A value charged as part of a sum over parties is only released under a mask.
#[test]
fn no_masked_charge_is_released_without_a_mask() {
    let mut fixture = Fixture::new();
    let mut ledger = fixture.masked(3, 1);
    let mut receipt = |iteration| match Fixture::charge(&mut ledger, iteration, &[masked(0, 1, 2)]).remove(0) {
        Grant::Charged(receipt) => receipt,
        Grant::Answered(_) => panic!("answered"),
    };
    assert!(sample_noise(receipt(0), &mut fixture.noise).release(no_sum()).is_none());
    for masks in [&[][..], &[1, 2]] {
        assert!(sample_noise(receipt(1 + masks.len() as u64), &mut fixture.noise).release_masked(no_sum(), masks).is_none());
    }
    let local = Fixture::new();
    let mut ledger = local.open();
    let Grant::Charged(receipt) = Fixture::charge(&mut ledger, 0, &[key(0, 1, K)]).remove(0) else { panic!("answered") };
    assert!(sample_noise(receipt, &mut fixture.noise).release_masked(no_sum(), &[1]).is_none());
}

/// The owner's limit on the total loss under full collusion ends a job that its budget still holds. It counts local jobs too, is
/// recorded in the ledger, and every increase of it is visible.
#[test]
fn a_second_limit_holds_if_all_others_collude() {
    let mu = |prices: f64| (prices * price(1).mu_squared()).sqrt();
    let limit = |prices: f64| Budget::new(gaussian_dp::epsilon(mu(prices), 1e-6), 1e-6).unwrap();
    let mut fixture = Fixture { all_collude: Some(limit(4.5)), ..Fixture::new() };
    let mut ledger = fixture.masked(10, 1);
    for round in 0..4 {
        let grants = Fixture::charge(&mut ledger, round, &[masked(0, 1, 9)]);
        fixture.answer(&mut ledger, grants, 5);
    }
    let spent = ledger.state().spent();
    assert!(spent.units <= price(1).units, "at its own price the budget has hardly been touched");
    let beyond = refused(ledger.charge(JOB, 4, &[masked(0, 1, 9)]).unwrap());
    assert!(matches!(beyond, Refusal::CollusionBudget(_)), "{beyond}");
    // An unmasked job counts with its charge.
    let other = "7a1c1a52-6d0e-4b1e-9d55-0d8f0f2b7a01";
    ledger.open_job(&JobEntry { spec_digest: &digest(), ..entry(other, budget()) }).unwrap();
    let outcome = ledger.charge(other, 0, &[key(0, 1, K)]).unwrap();
    assert!(matches!(refused(outcome), Refusal::CollusionBudget(_)));
    drop(ledger);
    let limits = |fixture: &Fixture| -> Vec<String> {
        let connection = Connection::open(fixture.path()).unwrap();
        let mut select = connection.prepare("SELECT body FROM events WHERE kind = 'all-collude' ORDER BY seq").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(limits(&fixture).len(), 1);
    // A start with the same limit enters nothing; another limit is entered and applies.
    drop(fixture.open());
    assert_eq!(limits(&fixture).len(), 1);
    fixture.all_collude = Some(limit(5.5));
    let mut ledger = fixture.open();
    assert_eq!(limits(&fixture).len(), 2);
    Fixture::charge(&mut ledger, 4, &[masked(0, 1, 9)]);
    assert!(matches!(refused(ledger.charge(JOB, 5, &[masked(0, 1, 9)]).unwrap()), Refusal::CollusionBudget(_)));
    drop(ledger);
    // A limit lowered below the amount spent admits no further release.
    fixture.all_collude = Some(limit(1.5));
    let mut ledger = fixture.open();
    assert!(matches!(refused(ledger.charge(JOB, 5, &[masked(0, 1, 9)]).unwrap()), Refusal::CollusionBudget(_)));
}
