//! One masked job whose parties protect different units: one protects persons of several rows each, the others rows.
//!
//! All add noise of the same scale, that of the party that needs most. Each ledger charges by its own owner's unit.

use std::fs;

use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::study;
use serde_json::Value;

use crate::verify::{named, verify};
use crate::{EXE, setup};

/// The second protects persons.
const NAMES: [&str; 4] = ["a", "persons", "c", "d"];
/// Maximal rows of a person.
const ROWS: u64 = 3;
/// Kinds from this number on are vectors; the number also encodes a vector's length, times four, and its kind.
const VECTORS: u64 = 1 << 30;

/// Starts four attached parties, each of which has pinned the others; a job uses three of them.
fn consortium() -> Cluster {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in (0..).zip(NAMES) {
        let data = cluster.path(&format!("{name}.csv"));
        let rows = study::csv(&study::records(600, seed));
        if name == "persons" {
            let of = |at: usize| if at == 0 { "who".to_owned() } else { format!("p{}", at / ROWS as usize) };
            fs::write(&data, rows.lines().enumerate().map(|(at, row)| format!("{row},{}\n", of(at))).collect::<String>())
                .expect("rows");
            let data_extra = &format!("person = \"who\"\nmax_records_per_person = {ROWS}");
            cluster.enrol(&PartySetup { data_extra, budget_extra: "", ..setup(name, &data, 500.0) });
        } else {
            fs::write(&data, rows).expect("rows");
            cluster.enrol(&setup(name, &data, 500.0));
        }
    }
    cluster.pin_all();
    (0..NAMES.len()).for_each(|party| cluster.start_party(party));
    cluster
}

/// The ledger's columns for one release of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    place: (u64, u64),
    kind: u64,
    sensitivity: u64,
    noise: u64,
    integers: u64,
    honest: u64,
    charge: u64,
}

impl Row {
    /// Returns `ceil(Delta² 2^16 / (h j²))` for this party's own Delta, and at least the minimal price of the integers' noise.
    fn price(&self) -> u64 {
        // For ratios, remainders and gradients the ledger has the bound of one unit, and a replacement moves the sum by two; for
        // other kinds it has the whole sensitivity.
        let gradient = self.kind >= VECTORS && self.kind % 4 == 1;
        let remainder = self.kind >= VECTORS / 2 && self.kind < VECTORS;
        let moved = u128::from(self.sensitivity) * if self.kind == 0 || gradient || remainder { 2 } else { 1 };
        let (j, h) = (u128::from(self.noise >> 16), u128::from(self.honest));
        let slack = 8 * (6_u128 << 48).div_ceil(h * j * j);
        let least = u128::from(self.integers) * slack.max(1 << 24);
        u64::try_from(((moved * moved) << 16).div_ceil(h * j * j).max(least)).expect("a price")
    }
}

fn rows(cluster: &Cluster, party: &str, job: &str) -> Vec<Row> {
    let place = NAMES.iter().position(|name| *name == party).expect("a party");
    let ledger = cluster.ledger(place);
    let select = "SELECT c.iteration, c.chain, c.kind, c.k_t, c.s, r.integers, r.honest, r.charge FROM charges c JOIN releases r ON r.seq = c.seq
                  WHERE r.job = ?1 ORDER BY c.iteration, c.chain";
    let mut select = ledger.prepare(select).expect("SQL");
    let row = |row: &rusqlite::Row<'_>| {
        Ok(Row {
            place: (row.get(0)?, row.get(1)?),
            kind: row.get(2)?,
            sensitivity: row.get(3)?,
            noise: row.get(4)?,
            integers: row.get(5)?,
            honest: row.get(6)?,
            charge: row.get(7)?,
        })
    };
    select.query_map([job], row).expect("rows").collect::<Result<_, _>>().expect("rows")
}

fn submit(cluster: &Cluster, parties: [&str; 3], (algorithm, sampler): (&str, &str)) -> (Value, [Vec<Row>; 3]) {
    let text = study::job(&parties, &format!("seed = 4\n{sampler}"), "epsilon = 40\ndelta = 1e-6");
    // A search for a frame asks for the number of records first, where a party protects persons.
    let plain = if algorithm == "noisy-statistics" { "[model]\nweights = \"never\"\n" } else { "[model]\n" };
    let text = text.replace("[model]\n", plain);
    let text = text.replace("\"penalty\"", &format!("{algorithm:?}")) + "\n[aggregation]\nmode = \"secure\"\ncolluders = 1\n";
    let result = cluster.submit(&text);
    let id = result["job"].as_str().expect("an id").to_owned();
    for party in parties {
        let (code, report) = verify(cluster, party, &id);
        assert_eq!((code, named(&report, "fails").len()), (0, 0), "{algorithm} at {party}: {report:#}");
        assert!(named(&report, "holds").contains(&"sums"), "{report:#}");
    }
    (result, parties.map(|party| rows(cluster, party, &id)))
}

/// Checks that every query has one noise scale at all parties and its own price at each, and that the sums were opened.
fn check_prices(what: &str, result: &Value, [first, persons, last]: &[Vec<Row>; 3]) {
    assert!(!first.is_empty() && first.len() == persons.len(), "{what}: {} and {} releases", first.len(), persons.len());
    assert_eq!(first, last, "{what}: parties with the same unit are charged the same");
    for (row, person) in first.iter().zip(persons) {
        let common = |row: &Row| (row.place, row.kind, row.noise, row.integers, row.honest);
        assert_eq!((common(row), row.honest), (common(person), 2), "{what}");
        assert_eq!((row.charge, person.charge), (row.price(), person.price()), "{what}: {row:?}, {person:?}");
        // Clip counts count persons as they count rows.
        assert!(row.kind == 1 || person.sensitivity > row.sensitivity, "{what}: {row:?}, {person:?}");
    }
    let spent = |party: usize| result["parties"][party]["epsilon_spent"].as_f64().expect("a number");
    assert!(spent(1) > spent(0) && spent(0) == spent(2), "{what}: {result:#}");
}

/// Searches by gradients and by ratios, statistics, and chain queries: where one party protects persons, every priced query has
/// the larger noise that this party needs.
#[test]
fn the_noise_is_that_of_the_party_that_needs_most_and_each_is_charged_its_own_price() {
    let cluster = consortium();
    for (algorithm, sampler) in [
        ("penalty", "chains = 2\ndraws = 4\nwarmup = 1\nforce = true\nlocate = \"gradients\""),
        ("penalty", "chains = 2\ndraws = 4\nwarmup = 1\nforce = true"),
        ("noisy-statistics", "draws = 20\nforce = true"),
    ] {
        let what = format!("{algorithm}, {sampler:?}");
        let (result, mixed) = submit(&cluster, ["a", "persons", "c"], (algorithm, sampler));
        check_prices(&what, &result, &mixed);
        // The first query is the same in a job of rows only, with the same share of the same budget.
        let (_, alike) = submit(&cluster, ["a", "d", "c"], (algorithm, sampler));
        let (with, without) = (&mixed[1][0], &alike[1][0]);
        assert_eq!((with.place, with.kind, with.integers), (without.place, without.kind, without.integers), "{what}");
        let (needs, has) = (with.sensitivity as f64 / without.sensitivity as f64, with.noise as f64 / without.noise as f64);
        assert!(
            (has / needs - 1.0).abs() < 2e-3 && has > 1.4,
            "{what}: {has} times the noise, where a person's sensitivity is {needs} times as large"
        );
        assert!((with.charge as f64 / without.charge as f64 - 1.0).abs() < 4e-3, "{what}: {with:?}, {without:?}");
    }
}
