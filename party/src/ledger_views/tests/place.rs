//! Readers leave a ledger where it is.

use conclave_vault::testing::{budget, key};

use super::super::report;
use super::Fixture;

/// An auditor's reader, a backup and the ledger's own copying of its log leave it where it is.
#[test]
fn a_ledger_that_is_read_stays_in_its_place() {
    let mut fixture = Fixture::new();
    let mut ledger = fixture.open();
    for round in 0..300 {
        fixture.answer(&mut ledger, round, &[key(0, 1, 1000)]);
        if round % 100 == 0 {
            report(&fixture.path(), "hospital-a", &budget()).unwrap();
            ledger.catch_up().unwrap();
        }
    }
    assert_eq!(ledger.halted(), None);
}
