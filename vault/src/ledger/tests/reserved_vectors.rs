//! Vectors in reserve mode: charged individually, so that a crash forfeits none of them and loses no round outside a block.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use conclave_privacy::accounting::{Honest, Priced, Spent};
use conclave_privacy::mechanism::{Components, GRADIENT_UNITS, NoiseScale, QueryKind, Sensitivity};
use conclave_privacy::pass::LatticeSum;
use tempfile::TempDir;

use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{JOB, budget, entry, key};

const BLOCK: u32 = 6;
const GRADIENT: QueryKind = QueryKind::Gradient { parameters: 50 };
const CURVATURE: QueryKind = QueryKind::Curvature { parameters: 50 };

struct Party {
    folder: TempDir,
    noise: Noise,
    block: u32,
}

impl Party {
    fn new(block: u32) -> (Self, Ledger) {
        let party = Self { folder: tempfile::tempdir().unwrap(), noise: Noise::from_os().unwrap(), block };
        party.settings().init().unwrap();
        let ledger = party.open();
        (party, ledger)
    }

    fn settings(&self) -> LedgerSettings {
        let durability = Durability::Reserve { block: self.block };
        LedgerSettings { durability, ..LedgerSettings::beside(&self.files()[0], "a", &budget()) }
    }

    fn files(&self) -> [PathBuf; 2] {
        ["ledger.sqlite", "ledger.sqlite-wal"].map(|name| self.folder.path().join(name))
    }

    fn open(&self) -> Ledger {
        let mut ledger = Ledger::open_kept(&self.settings()).unwrap();
        ledger.open_job(&entry(JOB, budget())).unwrap();
        ledger
    }

    /// Returns the current contents of the disk.
    fn image(&self) -> [Option<Vec<u8>>; 2] {
        self.files().map(|file| std::fs::read(file).ok())
    }

    /// Ends the process, and restores the disk to the image.
    fn crash(&self, ledger: Ledger, image: [Option<Vec<u8>>; 2]) -> Ledger {
        drop(ledger);
        let _ = std::fs::remove_file(self.folder.path().join("ledger.sqlite-shm"));
        for (bytes, file) in image.into_iter().zip(self.files()) {
            let _ = std::fs::remove_file(&file);
            bytes.into_iter().for_each(|bytes| std::fs::write(&file, bytes).unwrap());
        }
        self.open()
    }

    /// Returns the integers of each answer.
    fn answer(&mut self, ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) -> Vec<Vec<i64>> {
        let outcome = ledger.charge(JOB, iteration, keys).unwrap();
        let ChargeOutcome::Granted(grants) = outcome else { panic!("{outcome:?}") };
        self.record(ledger, grants)
    }

    fn record(&mut self, ledger: &mut Ledger, grants: Vec<Grant>) -> Vec<Vec<i64>> {
        let each = grants.into_iter().map(|grant| {
            let recorded = match grant {
                Grant::Answered(recorded) => recorded,
                Grant::Charged(receipt) => {
                    let sum = LatticeSum::of_components_for_test(
                        Components::new(&vec![1 << 40; receipt.cover().priced.components() as usize]).unwrap(),
                    );
                    ledger.record(vec![release(receipt, sum, &mut self.noise)]).unwrap().remove(0)
                }
            };
            recorded.integers().to_vec()
        });
        each.collect()
    }
}

/// Returns a vector that costs about a ninth of the budget, like a stage of a job.
fn vector(chain: u32, content: u8, kind: QueryKind) -> QueryKey {
    let sensitivity = Sensitivity::from_units(GRADIENT_UNITS).unwrap();
    let of_scale = |s: u64| Priced::new(kind, sensitivity, NoiseScale::from_units(s).unwrap(), Honest::ALONE);
    let unit = budget().unit;
    let most = conclave_privacy::accounting::PrivacyFilter::new(&budget()).unwrap().limit_units() / 9;
    let priced =
        (20..50).map(|power| of_scale(1 << power)).find(|priced| priced.cost(unit).is_ok_and(|cost| cost.units <= most)).unwrap();
    QueryKey { priced, ..key(chain, content, 1) }
}

fn cost(keys: &[QueryKey]) -> Spent {
    let unit = budget().unit;
    keys.iter().fold(Spent::default(), |sum, key| sum.plus(key.priced.cost(unit).unwrap()).unwrap())
}

#[test]
fn a_vector_is_charged_by_itself_and_outlives_a_power_cut() {
    for block in [1, BLOCK, 4096] {
        let (mut party, mut ledger) = Party::new(block);
        // Neither a block of one query nor one of many is written for it, and the longest fits.
        let asked = [vector(0, 1, GRADIENT), vector(1, 2, QueryKind::Curvature { parameters: QueryKind::MAX_ORDER })];
        let answers = party.answer(&mut ledger, 0, &asked);
        assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [50, 128 * 129 / 2]);
        assert_eq!(ledger.state().spent(), cost(&asked));
        assert_eq!((ledger.state().held(), ledger.units().0), (Spent::default(), cost(&asked).units), "blocks of {block}");
        let image = party.image();
        let mut ledger = party.crash(ledger, image);
        assert_eq!(ledger.state().spent(), cost(&asked), "a crash forfeits nothing");
        assert_eq!(party.answer(&mut ledger, 0, &asked), answers, "on the disk before it left");
        assert_eq!(ledger.state().job(JOB).unwrap().least_attempt(1), 0, "no round is lost");
        ledger.close().unwrap();
    }
}

/// A crash between charge and answer: nothing was sent, and the charge still pays for an answer.
#[test]
fn an_unanswered_vector_is_answered_under_its_charge() {
    let (mut party, mut ledger) = Party::new(BLOCK);
    let asked = [vector(0, 1, GRADIENT), vector(1, 2, CURVATURE)];
    let ChargeOutcome::Granted(grants) = ledger.charge(JOB, 0, &asked).unwrap() else { panic!("refused") };
    let image = party.image();
    drop(grants);
    let mut ledger = party.crash(ledger, image);
    assert_eq!(party.answer(&mut ledger, 0, &asked).iter().map(Vec::len).collect::<Vec<_>>(), [50, 50 * 51 / 2]);
    assert_eq!(ledger.state().spent(), cost(&asked));
}

/// With a block beside them, a crash loses as many rounds as it pays for queries, however long the vectors are.
#[test]
fn rounds_that_may_be_lost_are_those_of_the_block() {
    let (mut party, mut ledger) = Party::new(BLOCK);
    party.answer(&mut ledger, 0, &[vector(0, 1, GRADIENT)]);
    let single = [key(0, 3, 1 << 28)];
    party.answer(&mut ledger, 1, &single);
    let image = party.image();
    let held = ledger.state().held();
    assert!(held.units > 0 && held.draws == u64::from(BLOCK) - 1, "{held:?}");
    let ledger = party.crash(ledger, image);
    let lost = |iteration| ledger.state().job(JOB).unwrap().least_attempt(iteration);
    let end = 1 + u64::from(BLOCK);
    assert_eq!([0, 1, end - 1, end, end + 50].map(lost), [0, 1, 1, 0, 0]);
}

/// The remainder of a block is no reason to refuse a vector: it is returned with the vector's charge.
#[test]
fn a_vector_settles_the_jobs_block() {
    let (mut party, mut ledger) = Party::new(BLOCK);
    let limit = ledger.units().1;
    let price = |size: u64| cost(&[key(0, 3, size)]).units;
    // A whole block is more than the vectors leave.
    let size = (20..50).map(|power| 1 << power).find(|size| price(*size) * u64::from(BLOCK) > limit / 2).unwrap();
    let single = [key(0, 3, size)];
    party.answer(&mut ledger, 0, &single);
    assert!(ledger.state().held().units > 0);
    let before = ledger.state().spent();
    let mut rounds = 0;
    loop {
        let vectors = [vector(0, 1, GRADIENT)];
        match ledger.charge(JOB, 1 + rounds, &vectors).unwrap() {
            ChargeOutcome::Granted(grants) => drop(party.record(&mut ledger, grants)),
            ChargeOutcome::Refused(refusal) => {
                assert!(matches!(refusal, Refusal::DataBudget(_)), "{refusal}");
                break;
            }
        }
        rounds += 1;
        assert_eq!(ledger.state().held(), Spent::default());
        assert_eq!(ledger.units().0, ledger.state().spent().units);
    }
    let each = cost(&[vector(0, 1, GRADIENT)]).units;
    assert_eq!(rounds, (limit - before.units) / each, "all rounds that the budget covers");
    ledger.close().unwrap();
    party.open();
}
