//! Answers of several integers on an auditor's desk, and answers of one beside them.

use conclave_vault::ledger::lengths::{self, vector};
use conclave_vault::ledger::*;
use conclave_vault::testing::{JOB, budget, entry, key};

use super::super::{JobReader, Listing, export, list};
use super::{Fixture, digest, seal};

fn open(fixture: &Fixture) -> Ledger {
    let mut ledger = lengths::open(&fixture.settings).unwrap();
    ledger.open_job(&JobEntry { spec_digest: &digest(), ..entry(JOB, budget()) }).unwrap();
    ledger
}

/// A round of a single integer, of three and of two.
fn keys() -> [QueryKey; 3] {
    [key(0, 1, 1000), vector(1, 2, 3), vector(2, 3, 2)]
}

#[test]
fn a_vector_is_exported_checked_and_listed_whole() {
    let mut fixture = Fixture::new();
    let mut ledger = open(&fixture);
    let answers = fixture.answer(&mut ledger, 0, &keys());
    let more = fixture.answer(&mut ledger, 1, &[vector(0, 9, 3), key(1, 8, 1000)]);
    let (spent, head) = (ledger.state().spent(), ledger.state().hash());
    drop(ledger);
    let mut file = Vec::new();
    let (_, state) = export::write_as(&fixture.settings, &lengths::layout(), &mut file).unwrap();
    assert_eq!((state.spent(), state.hash() == head), (spent, true));
    seal(&mut file);
    let check = |text: &[u8]| export::check_onto(lengths::state(), text);
    let checked = check(&file).unwrap();
    assert_eq!((checked.state.spent(), checked.state.hash()), (spent, head));
    let text = String::from_utf8(file).unwrap();
    let single = format!("\"released\":{},", answers[0][0]);
    let several = format!("\"released\":[{},{},{}],", answers[1][0], answers[1][1], answers[1][2]);
    assert!(text.contains(&single) && text.contains(&several), "{text}");
    assert_eq!(text.matches("\"components\":").count(), 3, "not written of a single integer");
    // A changed, a missing and a further component don't pass the check.
    for changed in [
        text.replace(&format!(",{}],", answers[1][2]), &format!(",{}],", answers[1][2] ^ 1)),
        text.replace(&format!(",{}],", answers[1][2]), "],"),
        text.replace("\"components\":3,", "\"components\":4,"),
        text.replace("\"components\":2,", ""),
    ] {
        assert!(changed != text && check(changed.as_bytes()).is_err());
    }
    let mut listed = Vec::new();
    list(&fixture.settings, &Listing::default(), |release| {
        listed.push(release.released.unwrap().as_slice().to_vec());
        Ok::<_, LedgerError>(())
    })
    .unwrap();
    let all: Vec<Vec<i64>> = answers.iter().chain(&more).cloned().collect();
    assert_eq!(listed, all);
    let reader = JobReader::open(&fixture.settings, JOB).unwrap();
    let charged: Vec<Vec<i64>> =
        reader.charges(0).unwrap().into_iter().map(|charged| charged.released.unwrap().as_slice().to_vec()).collect();
    assert_eq!(charged, all);
    // And the hash of any entry is found again.
    let connection = schema::connect_read_only(&fixture.path()).unwrap();
    assert_eq!(verify::hash_at(&connection, state.seq()).unwrap(), Some(head));
}

/// Under the lengths of real kinds a charge of another number of integers is refused in an export and on an auditor's
/// desk, though all of its sums and hashes hold.
#[test]
fn a_charge_of_another_length_than_its_kinds_is_refused_in_an_export() {
    let mut fixture = Fixture::new();
    let mut ledger = open(&fixture);
    fixture.answer(&mut ledger, 0, &keys());
    drop(ledger);
    drop(open(&fixture));
    let written = export::write(&fixture.settings, &mut Vec::new()).unwrap_err().to_string();
    let mut file = Vec::new();
    export::write_as(&fixture.settings, &lengths::layout(), &mut file).unwrap();
    let checked = export::check(file.as_slice()).unwrap_err();
    for refused in [written, checked] {
        assert!(refused.contains("pays for 3 integers, and its kind is answered by 1"), "{refused}");
    }
}
