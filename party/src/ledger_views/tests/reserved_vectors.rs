//! Vectors in reserve mode: exported, read back by job, and shown by kind.

use conclave_privacy::accounting::{Honest, Priced, PrivacyFilter};
use conclave_privacy::mechanism::{GRADIENT_UNITS, NoiseScale, QueryKind, Sensitivity};
use conclave_vault::ledger::*;
use conclave_vault::testing::{JOB, budget, key};

use super::super::{JobReader, Listing, export, list};
use super::Fixture;
use crate::owner;

const BLOCK: u32 = 6;
const GRADIENT: QueryKind = QueryKind::Gradient { parameters: 50 };

fn reserving(block: u32) -> Fixture {
    Fixture::with(|settings| settings.durability = Durability::Reserve { block })
}

/// The process ends, and the disk is found as it is now.
fn crash(fixture: &Fixture, ledger: Ledger) -> Ledger {
    let files = ["ledger.sqlite", "ledger.sqlite-wal"].map(|name| fixture.folder.path().join(name));
    let image = files.each_ref().map(|file| std::fs::read(file).ok());
    drop(ledger);
    let _ = std::fs::remove_file(fixture.folder.path().join("ledger.sqlite-shm"));
    for (bytes, file) in image.into_iter().zip(files) {
        let _ = std::fs::remove_file(&file);
        bytes.into_iter().for_each(|bytes| std::fs::write(&file, bytes).unwrap());
    }
    fixture.open()
}

/// A vector that costs about a ninth of the budget, as a stage of a job does.
fn vector(chain: u32, content: u8, kind: QueryKind) -> QueryKey {
    let sensitivity = Sensitivity::from_units(GRADIENT_UNITS).unwrap();
    let of_scale = |s: u64| Priced::new(kind, sensitivity, NoiseScale::from_units(s).unwrap(), Honest::ALONE);
    let unit = budget().unit;
    let most = PrivacyFilter::new(&budget()).unwrap().limit_units() / 9;
    let priced =
        (20..50).map(|power| of_scale(1 << power)).find(|priced| priced.cost(unit).is_ok_and(|cost| cost.units <= most)).unwrap();
    QueryKey { priced, ..key(chain, content, 1) }
}

#[test]
fn a_vector_that_outlived_a_power_cut_is_exported() {
    for block in [1, BLOCK, 4096] {
        let mut fixture = reserving(block);
        let mut ledger = fixture.open();
        let asked = [vector(0, 1, GRADIENT), vector(1, 2, QueryKind::Curvature { parameters: QueryKind::MAX_ORDER })];
        let answers = fixture.answer(&mut ledger, 0, &asked);
        let mut ledger = crash(&fixture, ledger);
        assert_eq!(fixture.answer(&mut ledger, 0, &asked), answers, "on the disk before it left");
        ledger.close().unwrap();
        export::write(&fixture.settings, &mut Vec::new()).unwrap();
    }
}

/// A crash loses one round for each query that a block beside vectors pays for, and the report on the job names them.
#[test]
fn rounds_that_may_be_lost_are_read_with_the_job() {
    let mut fixture = reserving(BLOCK);
    let mut ledger = fixture.open();
    fixture.answer(&mut ledger, 0, &[vector(0, 1, GRADIENT)]);
    fixture.answer(&mut ledger, 1, &[key(0, 3, 1 << 28)]);
    let _ledger = crash(&fixture, ledger);
    let reader = JobReader::open(&fixture.settings, JOB).unwrap();
    assert_eq!(reader.entered().unwrap().lost, [(1, 1 + u64::from(BLOCK))]);
}

/// The listing, the view and the owner's totals say the same of every kind.
#[test]
fn releases_are_shown_by_kind_with_their_number_and_their_noise() {
    let mut party = reserving(BLOCK);
    let mut ledger = party.open();
    let of = |chain: u32, kind: QueryKind| {
        let (key, s) = (key(chain, 1 + chain as u8, 1 << 28), NoiseScale::from_units(1 << 40).unwrap());
        QueryKey { priced: Priced::new(kind, key.priced.sensitivity(), s, Honest::ALONE), ..key }
    };
    let kinds = [
        QueryKind::Ratio,
        QueryKind::ClipCount,
        QueryKind::Statistic { component: 3 },
        QueryKind::Moments { order: 3 },
        QueryKind::Gradient { parameters: 5 },
        QueryKind::Curvature { parameters: 2 },
        QueryKind::Table { cells: 7 },
    ];
    let keys: Vec<QueryKey> = (0..).zip(kinds).map(|(chain, kind)| of(chain, kind)).collect();
    // In a ledger of single integers alone the view is as it has always been.
    party.answer(&mut ledger, 0, &keys[..1]);
    let answers = party.answer(&mut ledger, 1, &keys);
    ledger.close().unwrap();
    party.open().close().unwrap();
    let expected: Vec<(String, u64, f64)> = kinds
        .iter()
        .map(|kind| (kind.to_string(), kind.length() as u64, kind.noise_sd(NoiseScale::from_units(1 << 40).unwrap())))
        .collect();
    let mut listed = Vec::new();
    list(&party.settings, &Listing::default(), |row| {
        listed.push((row.shown(3), (row.kind, row.integers as u64, row.sigma)));
        Ok::<_, LedgerError>(())
    })
    .unwrap();
    let (shown, listed): (Vec<String>, Vec<_>) = listed.into_iter().skip(1).unzip();
    assert_eq!(listed, expected);
    let gradient = &answers[4];
    assert_eq!(shown[4], format!("{}, {}, {} and 2 more", gradient[0], gradient[1], gradient[2]));
    assert_eq!(shown[0], answers[0][0].to_string());
    let connection = rusqlite::Connection::open(party.path()).unwrap();
    let mut select =
        connection.prepare("SELECT kind, integers, noise_sd FROM releases WHERE iteration = 1 ORDER BY seq").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let viewed: Vec<(String, u64, f64)> = rows.map(Result::unwrap).collect();
    assert_eq!(viewed, expected);
    let totals = owner::job_totals(&party.path()).unwrap().remove(0);
    assert_eq!((totals.queries, totals.spent.draws), (8, 1 + expected.iter().map(|row| row.1).sum::<u64>()));
    let released = owner::releases(&party.path(), JOB).unwrap().unwrap();
    let mut by_kind: Vec<(u64, u64)> = released.kinds.iter().map(|kind| (kind.queries, kind.integers)).collect();
    by_kind.sort_unstable();
    assert_eq!(by_kind, [(1, 1), (1, 1), (1, 3), (1, 5), (1, 6), (1, 7), (2, 2)]);
}
