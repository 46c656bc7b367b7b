//! The view of releases, of kinds that the first ledgers did not know: in words, with the places that subsampled releases take.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use conclave_privacy::accounting::{Honest, Priced};
use conclave_privacy::mechanism::{Components, NoiseScale, QueryKind};
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::secagg::{MaskSecret, Member, Roster};
use rusqlite::Connection;

use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::blocks::{RESERVE, asked};
use crate::testing::{JOB, budget, entry, no_sum};

const GRADIENT: QueryKind = QueryKind::SampledGradient { parameters: 2 };

fn settings(folder: &Path) -> LedgerSettings {
    LedgerSettings::beside(&folder.join("ledger.sqlite"), "a", &budget().reserving(RESERVE))
}

fn open(folder: &Path) -> Ledger {
    let mut ledger = Ledger::open_kept(&settings(folder)).unwrap();
    ledger.open_job(&entry(JOB, budget().reserving(RESERVE))).unwrap();
    ledger
}

fn answer(ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) {
    let ChargeOutcome::Granted(grants) = ledger.charge(JOB, iteration, keys).unwrap() else { panic!("refused") };
    let mut noise = Noise::from_os().unwrap();
    for (grant, key) in grants.into_iter().zip(keys) {
        let Grant::Charged(receipt) = grant else { panic!("answered before") };
        let zeros = vec![0; key.priced.kind().length()];
        let sum = LatticeSum::of_components_for_test(Components::new(&zeros).unwrap());
        ledger.record(vec![release(receipt, sum, &mut noise)]).unwrap();
    }
}

/// Kind, noise, block and place of a release.
type Shown = (String, f64, Option<u64>, Option<u64>);

fn viewed(folder: &Path) -> Vec<Shown> {
    let connection = Connection::open(folder.join("ledger.sqlite")).unwrap();
    let mut select = connection.prepare("SELECT kind, noise_sd, block, place FROM releases ORDER BY seq").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Returns the number of the entry that opened each block.
fn blocks(ledger: &Ledger) -> Vec<u64> {
    ledger.state().job(JOB).unwrap().sampled.iter().map(|block| block.seq).collect()
}

#[test]
fn a_subsampled_release_is_shown_with_its_block_and_its_place() {
    for kind in [QueryKind::SampledRatio, GRADIENT] {
        let folder = tempfile::tempdir().unwrap();
        settings(folder.path()).init().unwrap();
        let mut ledger = open(folder.path());
        answer(&mut ledger, 0, &[asked(0, 0, QueryKind::Ratio)]);
        // Five releases in two blocks of three, with an ordinary release between them.
        for (iteration, chains) in [(1, 2), (2, 3)] {
            let keys: Vec<QueryKey> = (0..chains).map(|chain| asked(chain, iteration, kind)).collect();
            answer(&mut ledger, iteration.into(), &keys);
            answer(&mut ledger, 10 + u64::from(iteration), &[asked(0, 10 + iteration, QueryKind::Remainder { parameters: 4 })]);
        }
        let [one, two] = blocks(&ledger)[..] else { panic!("two blocks") };
        ledger.close().unwrap();
        let sd = |kind: QueryKind| kind.noise_sd(NoiseScale::from_units(1 << 33).unwrap());
        let none = |words: &str| (words.to_owned(), 2.0, None, None);
        let in_block = |block, place| (kind.to_string(), sd(kind), Some(block), Some(place));
        let (ratio, remainder) = (none("ratio"), none("remainder of 4 parameters"));
        let all = [
            ratio,
            in_block(one, 0),
            in_block(one, 1),
            remainder.clone(),
            in_block(one, 2),
            in_block(two, 0),
            in_block(two, 1),
            remainder,
        ];
        assert_eq!(viewed(folder.path()), all);
        open(folder.path()).close().unwrap();
    }
}

/// A second moment is named as in the listing, and its noise is in squares of the maximal contribution of one record.
#[test]
fn second_moments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    settings(folder.path()).init().unwrap();
    let mut ledger = open(folder.path());
    answer(&mut ledger, 0, &[asked(0, 1, QueryKind::SecondMoment)]);
    ledger.close().unwrap();
    let sd = QueryKind::SecondMoment.noise_sd(NoiseScale::from_units(1 << 33).unwrap());
    assert_eq!(viewed(folder.path()), [("second moment of ratios".to_owned(), sd, None, None)]);
    open(folder.path()).close().unwrap();
}

/// Checks every kind of [`QueryKind`].
#[test]
fn the_view_has_the_name_and_unit_of_every_kind() {
    let kinds = [
        QueryKind::Ratio,
        QueryKind::ClipCount,
        QueryKind::Statistic { component: QueryKind::MAX_COMPONENTS - 1 },
        QueryKind::Choice { candidates: 1 },
        QueryKind::Choice { candidates: QueryKind::MAX_CANDIDATES },
        QueryKind::SecondMoment,
        QueryKind::SampledRatio,
        QueryKind::SampledGradient { parameters: 1 },
        QueryKind::SampledGradient { parameters: QueryKind::MAX_ORDER },
        QueryKind::Remainder { parameters: 1 },
        QueryKind::Remainder { parameters: QueryKind::MAX_ORDER },
        QueryKind::Moments { order: 3 },
        QueryKind::Gradient { parameters: 5 },
        QueryKind::Curvature { parameters: 2 },
        QueryKind::Table { cells: QueryKind::MAX_COMPONENTS },
    ];
    let connection = Connection::open_in_memory().unwrap();
    schema::TABLES.iter().for_each(|tables| connection.execute_batch(tables).unwrap());
    connection.execute("INSERT INTO jobs VALUES (2, 0, 'j', 'a', x'', '', '1', '1', 0, x'', x'')", []).unwrap();
    let s = NoiseScale::from_units(1 << 40).unwrap();
    for (seq, kind) in (3_u64..).zip(kinds) {
        releases_view::see_to(&connection, kind.code()).unwrap();
        let row = (seq, kind.code(), s.units());
        connection
            .execute("INSERT INTO charges VALUES (?1, 0, 2, 0, 0, 0, 0, x'', x'', x'', ?2, 5, ?3, 0, 0, x'')", row)
            .unwrap();
    }
    let mut select = connection.prepare("SELECT kind, noise_sd FROM releases ORDER BY seq").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let viewed: Vec<(String, f64)> = rows.map(Result::unwrap).collect();
    assert_eq!(viewed, kinds.map(|kind| (kind.to_string(), kind.noise_sd(s))));
}

/// Answers one ratio of a masked job, priced with two parties' noise.
fn answer_masked(ledger: &mut Ledger) {
    let masked = entry("masked", budget());
    ledger.open_job(&masked).unwrap();
    let public = |place: u8| MaskSecret::from_bytes([place + 1; 32].into()).public();
    let member = |place: u8| Member { name: format!("p{place}"), identity: [place; 32], public: public(place) };
    let roster = Roster::new("masked", *masked.spec_digest, 1, (0..3).map(member).collect()).unwrap();
    ledger.enter_mask_key("masked", &public(0)).unwrap();
    ledger.enter_roster("masked", &roster, &vec![(true, "0a".to_owned()); 3]).unwrap();
    let key = asked(0, 7, QueryKind::Ratio);
    let priced = Priced::new(QueryKind::Ratio, key.priced.sensitivity(), key.priced.noise(), Honest::new(2).unwrap());
    let ChargeOutcome::Granted(grants) = ledger.charge("masked", 0, &[QueryKey { priced, ..key }]).unwrap() else {
        panic!("refused")
    };
    let mut noise = Noise::from_os().unwrap();
    for grant in grants {
        let Grant::Charged(receipt) = grant else { panic!("answered before") };
        ledger.record(vec![sample_noise(receipt, &mut noise).release_masked(no_sum(), &[5]).unwrap()]).unwrap();
    }
}

/// Whatever the order in which kinds arrive at a ledger: a masked release keeps the places in the view, and vice versa. A view of
/// another version is replaced at the next start.
#[test]
fn the_view_has_places_beside_masks() {
    for masked_first in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        settings(folder.path()).init().unwrap();
        let mut ledger = open(folder.path());
        let connection = || Connection::open(folder.path().join("ledger.sqlite")).unwrap();
        let mask = |ledger: &mut Ledger| {
            answer_masked(ledger);
        };
        if masked_first {
            mask(&mut ledger);
        }
        answer(&mut ledger, 1, &[asked(0, 1, QueryKind::SampledRatio)]);
        if !masked_first {
            mask(&mut ledger);
        }
        ledger.close().unwrap();
        let row = |kind: &str| -> (Option<u64>, u32) {
            let sql = "SELECT place, honest FROM releases WHERE kind = ?1";
            connection().query_row(sql, [kind], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
        };
        assert_eq!((row("ratio over a sample"), row("ratio")), ((Some(0), 1), (None, 2)), "{masked_first}");
        open(folder.path()).close().unwrap();
        let sql: String =
            connection().query_row("SELECT sql FROM sqlite_schema WHERE name = 'releases'", [], |row| row.get(0)).unwrap();
        let altered = sql.replace("c.charge, coalesce", "c.charge / 2 AS charge, coalesce");
        assert_ne!(altered, sql);
        connection().execute_batch(&format!("DROP VIEW releases; {altered}")).unwrap();
        assert!(Ledger::open_kept(&settings(folder.path())).is_err());
    }
}
