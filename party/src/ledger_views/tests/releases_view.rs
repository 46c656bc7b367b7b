//! The listing of releases of kinds that the first ledgers lack: as in the view, with the places of subsampled releases.

use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_vault::ledger::*;
use conclave_vault::testing::blocks::{RESERVE, asked};
use conclave_vault::testing::{JOB, budget};
use rusqlite::Connection;

use super::super::{Listing, list};
use super::Fixture;

const GRADIENT: QueryKind = QueryKind::SampledGradient { parameters: 2 };

/// Kind, noise, block and place of a release.
type Shown = (String, f64, Option<u64>, Option<u64>);

fn viewed(fixture: &Fixture) -> Vec<Shown> {
    let connection = Connection::open(fixture.path()).unwrap();
    let mut select = connection.prepare("SELECT kind, noise_sd, block, place FROM releases ORDER BY seq").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn listed(fixture: &Fixture, last: Option<u64>) -> Vec<Shown> {
    let mut listed = Vec::new();
    list(&fixture.settings, &Listing { job: None, last }, |row| {
        listed.push((row.kind, row.sigma, row.block, row.place));
        Ok::<_, LedgerError>(())
    })
    .unwrap();
    listed
}

/// The number of the entry that opened each block.
fn blocks(ledger: &Ledger) -> Vec<u64> {
    ledger.state().job(JOB).unwrap().sampled.iter().map(|block| block.seq).collect()
}

fn reserving() -> Fixture {
    Fixture::with(|settings| settings.budget = budget().reserving(RESERVE))
}

#[test]
fn a_release_over_a_sample_is_listed_with_its_block_and_its_place() {
    for kind in [QueryKind::SampledRatio, GRADIENT] {
        let mut fixture = reserving();
        let mut ledger = fixture.open();
        fixture.answer(&mut ledger, 0, &[asked(0, 0, QueryKind::Ratio)]);
        // Five releases in two blocks of three, with a release that is in none between them.
        for (iteration, chains) in [(1, 2), (2, 3)] {
            let keys: Vec<QueryKey> = (0..chains).map(|chain| asked(chain, iteration, kind)).collect();
            fixture.answer(&mut ledger, iteration.into(), &keys);
            let remainder = asked(0, 10 + iteration, QueryKind::Remainder { parameters: 4 });
            fixture.answer(&mut ledger, 10 + u64::from(iteration), &[remainder]);
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
        assert_eq!(viewed(&fixture), all);
        for last in 0..=all.len() {
            assert_eq!(listed(&fixture, Some(last as u64)), all[all.len() - last..], "the last {last}");
        }
    }
}

#[test]
fn second_moments_are_listed_as_they_are_viewed() {
    let mut fixture = reserving();
    let mut ledger = fixture.open();
    fixture.answer(&mut ledger, 0, &[asked(0, 1, QueryKind::SecondMoment)]);
    ledger.close().unwrap();
    assert_eq!(listed(&fixture, None).len(), 1);
    assert_eq!(listed(&fixture, None), viewed(&fixture));
}
