//! Answers of several integers, from the charge to the next start, and answers of one beside them as they have always been.
#![allow(clippy::unwrap_used)]
use std::path::PathBuf;

use conclave_privacy::accounting::{Honest, LEAST_CHARGE_UNITS, slack_units_of_draw};
use conclave_privacy::mechanism::Components;
use conclave_privacy::pass::LatticeSum;
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::ledger::entry::{AnswerEntry, ChargeEntry, DOMAIN, Entry};
use crate::ledger::lengths::vector;
use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{JOB, budget, entry, key};

struct Fixture {
    folder: TempDir,
    noise: Noise,
    durability: Durability,
}

impl Fixture {
    fn new(durability: Durability) -> (Self, Ledger) {
        let fixture = Self { folder: tempfile::tempdir().unwrap(), noise: Noise::from_os().unwrap(), durability };
        fixture.settings().init().unwrap();
        let ledger = fixture.open().unwrap();
        (fixture, ledger)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    fn settings(&self) -> LedgerSettings {
        LedgerSettings { durability: self.durability, ..LedgerSettings::beside(&self.path(), "hospital-a", &budget()) }
    }

    fn open(&self) -> Result<Ledger, LedgerError> {
        let mut ledger = lengths::open(&self.settings())?;
        let job = entry(JOB, budget());
        // The checker of exports compares a job's digest with its text.
        let digest: [u8; 32] = Sha256::digest(job.spec_toml.as_bytes()).into();
        ledger.open_job(&JobEntry { spec_digest: &digest, ..job })?;
        Ok(ledger)
    }

    fn sql(&self, statement: &str) {
        Connection::open(self.path()).unwrap().execute_batch(statement).unwrap();
    }

    fn tables(&self) -> Vec<String> {
        let connection = Connection::open(self.path()).unwrap();
        let mut select = connection.prepare("SELECT name FROM sqlite_schema WHERE name LIKE '%components'").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Charges and records one message; returns each query's integers.
    fn answer(&mut self, ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) -> Vec<Vec<i64>> {
        let ChargeOutcome::Granted(grants) = ledger.charge(JOB, iteration, keys).unwrap() else { panic!("refused") };
        let (mut releases, mut answers) = (Vec::new(), Vec::new());
        for grant in grants {
            match grant {
                Grant::Answered(recorded) => answers.push(recorded.integers().to_vec()),
                Grant::Charged(receipt) => {
                    let sum = Components::new(&vec![1 << 40; receipt.cover().priced.components() as usize]).unwrap();
                    releases.push(release(receipt, LatticeSum::of_components_for_test(sum), &mut self.noise));
                }
            }
        }
        if !releases.is_empty() {
            answers.extend(ledger.record(releases).unwrap().iter().map(|recorded| recorded.integers().to_vec()));
        }
        answers
    }
}

/// A round of a single integer, of three and of two.
fn keys() -> [QueryKey; 3] {
    [key(0, 1, 1000), vector(1, 2, 3), vector(2, 3, 2)]
}

#[test]
fn a_vector_is_charged_recorded_and_repeated() {
    for durability in [Durability::Strict, Durability::Reserve { block: 16 }] {
        let (mut fixture, mut ledger) = Fixture::new(durability);
        let before = ledger.state().spent();
        let answers = fixture.answer(&mut ledger, 0, &keys());
        assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3, 2]);
        // Every component has noise of its own.
        let distinct: std::collections::HashSet<i64> = answers.iter().flatten().copied().collect();
        assert_eq!(distinct.len(), 6);
        let (spent, slack) = (ledger.state().spent(), slack_units_of_draw(key(0, 1, 1000).priced.noise(), Honest::ALONE));
        assert_eq!((spent.draws - before.draws, spent.slack_units - before.slack_units), (6, 6 * slack));
        assert_eq!(spent.units - before.units, (1 + 3 + 2) * LEAST_CHARGE_UNITS, "the minimal price of six draws");
        let again = keys();
        assert_eq!(fixture.answer(&mut ledger, 0, &again), answers);
        assert_eq!(ledger.state().spent(), spent);
        // The same bytes after a start, free of charge.
        drop(ledger);
        let mut ledger = fixture.open().unwrap();
        assert_eq!(fixture.answer(&mut ledger, 0, &again), answers);
        assert_eq!(ledger.state().spent(), spent);
        let longer = [vector(1, 2, 4)];
        let asked = ledger.charge(JOB, 0, &longer).unwrap();
        let refused = matches!(asked, ChargeOutcome::Refused(Refusal::Conflict { chain: 1 }));
        assert!(refused, "{asked:?}");
    }
}

#[test]
fn a_damaged_vector_is_found_at_the_next_start() {
    for damage in [
        "UPDATE answer_components SET released = released + 1 WHERE component = 2",
        "DELETE FROM answer_components WHERE component = 2",
        "DELETE FROM answer_components",
        "INSERT INTO answer_components SELECT charge, 3, 7 FROM answer_components WHERE component = 2",
        "INSERT INTO answer_components SELECT charge - 1, 1, 7 FROM answer_components WHERE component = 2",
        "INSERT INTO answer_components VALUES (999, 1, 7)",
        "UPDATE charge_components SET components = components + 1",
        "DELETE FROM charge_components",
        "INSERT INTO charge_components VALUES (999, 2)",
        "UPDATE answers SET released = released + 1 WHERE charge IN (SELECT charge FROM answer_components)",
        "DROP TABLE answer_components",
        "DROP TABLE charge_components",
    ] {
        let (mut fixture, mut ledger) = Fixture::new(Durability::Strict);
        fixture.answer(&mut ledger, 0, &keys());
        drop(ledger);
        drop(fixture.open().unwrap());
        fixture.sql(damage);
        let refused = fixture.open();
        assert!(matches!(refused, Err(LedgerError::Corrupt { .. })), "{damage}: {refused:?}");
    }
}

#[test]
fn a_ledger_without_vectors_has_no_table_for_them() {
    let (mut fixture, mut ledger) = Fixture::new(Durability::Strict);
    fixture.answer(&mut ledger, 0, &[key(0, 1, 1000)]);
    assert_eq!(fixture.tables(), [""; 0]);
    fixture.answer(&mut ledger, 1, &[vector(0, 1, 2)]);
    assert_eq!(fixture.tables().len(), 2);
    fixture.answer(&mut ledger, 2, &[key(0, 1, 1000)]);
    drop(ledger);
    assert_eq!(fixture.open().unwrap().state().answers(), 3);
}

/// A charge without an answer is answered under itself after a start, with the number of integers that it pays for.
#[test]
fn an_unanswered_vector_is_recovered() {
    let (mut fixture, mut ledger) = Fixture::new(Durability::Strict);
    let ChargeOutcome::Granted(grants) = ledger.charge(JOB, 0, &keys()).unwrap() else { panic!("refused") };
    drop((grants, ledger));
    let mut ledger = fixture.open().unwrap();
    let spent = ledger.state().spent();
    let answers = fixture.answer(&mut ledger, 0, &keys());
    assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3, 2]);
    assert_eq!(ledger.state().spent(), spent);
}

/// The encoding as in `ledger-schema.md`, written out again: the hashes of single integers' entries never change.
#[test]
fn the_encoding_of_single_integers_is_unchanged() {
    let before = [9; 32];
    let hash = |kind: u8, fields: &[&[u8]]| -> [u8; 32] {
        let start = Sha256::new().chain_update(DOMAIN).chain_update(before).chain_update([kind]);
        fields.iter().fold(start, |hash, field| hash.chain_update(field)).finalize().into()
    };
    let answer = |released: &[i64]| Entry::Answer(AnswerEntry { seq: 7, charge: 5, released }).hash(&before);
    let (seven, five) = (7_u64.to_le_bytes(), 5_u64.to_le_bytes());
    assert_eq!(answer(&[-3]), hash(2, &[&seven, &five, &(-3_i64).to_le_bytes()]));
    let several = [&seven[..], &five, &2_u64.to_le_bytes(), &(-3_i64).to_le_bytes(), &4_i64.to_le_bytes()];
    assert_eq!(answer(&[-3, 4]), hash(6, &several));
    let charge_of = |components, honest| {
        let (digest, theta, theta_next) = ([1; 32], [2; 16], [3; 16]);
        let entry = ChargeEntry {
            seq: 7,
            time_ms: 8,
            job: 9,
            iteration: 10,
            chain: 11,
            attempt: 12,
            block: 13,
            digest,
            theta,
            theta_next,
            kind: 14,
            k_t: 15,
            s: 16,
            charge: 17,
            running_total: 18,
            slack: 19,
            components,
            honest,
            alone: 17 * u64::from(honest),
        };
        Entry::Charge(entry).hash(&before)
    };
    let charge = |components| charge_of(components, 1);
    let (long, short) = (|n: u64| n.to_le_bytes(), |n: u32| n.to_le_bytes());
    let mut bytes: Vec<u8> = [7, 8, 9, 10].map(long).concat();
    bytes.extend([short(11), short(12)].concat());
    bytes.extend(long(13));
    bytes.extend([&[1; 32][..], &[2; 16], &[3; 16]].concat());
    bytes.extend(short(14));
    bytes.extend([15, 16, 17, 18, 19].map(long).concat());
    assert_eq!(charge(1), hash(1, &[&bytes]));
    assert_eq!(charge(6), hash(5, &[&bytes, &short(6)]));
    // Masked answers: integers, honest parties, the price alone, and no share of delta.
    assert_eq!(charge_of(1, 9), hash(7, &[&bytes, &short(1), &short(9), &long(9 * 17), &long(0)]));
    assert_eq!(charge_of(6, 2), hash(7, &[&bytes, &short(6), &short(2), &long(2 * 17), &long(0)]));
}

/// Under the lengths of real kinds a charge of another number of integers is refused before it is written, and at a
/// start, though all of its sums and hashes hold.
#[test]
fn a_charge_pays_for_the_integers_of_its_kind() {
    let (mut fixture, mut ledger) = Fixture::new(Durability::Strict);
    let single = key(0, 1, 1000);
    for components in [0, 2, 3, u32::MAX] {
        let longer = QueryKey { priced: single.priced.of_components_for_test(components), ..single };
        let folder = tempfile::tempdir().unwrap();
        let settings = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget());
        settings.init().unwrap();
        let mut real = Ledger::open_kept(&settings).unwrap();
        real.open_job(&entry(JOB, budget())).unwrap();
        let refused = real.charge(JOB, 0, &[longer]);
        assert!(matches!(refused, Err(LedgerError::Halted(_)) | Ok(ChargeOutcome::Refused(_))), "{components}: {refused:?}");
    }
    fixture.answer(&mut ledger, 0, &keys());
    drop(ledger);
    drop(fixture.open().unwrap());
    let of_a_vector = "pays for 3 integers, and its kind is answered by 1";
    let started = Ledger::open_kept(&fixture.settings()).unwrap_err().to_string();
    assert!(started.contains(of_a_vector), "{started}");
}
