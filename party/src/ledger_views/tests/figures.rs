//! Times of the report on a large ledger and of its export. Printed, not asserted: machines differ.

use std::time::Instant;

use conclave_vault::ledger::write_a_million_releases;

use super::super::{export, report_kept};
use super::Fixture;

#[test]
#[ignore = "writes a ledger of a million releases; run it by name"]
fn views_of_a_million_releases_in_figures() {
    let fixture = Fixture::new();
    let mut ledger = fixture.open();
    write_a_million_releases(&mut ledger);
    ledger.close().unwrap();
    for _ in 0..3 {
        let start = Instant::now();
        let report = report_kept(&fixture.settings).unwrap();
        println!("budget {:.2} ms, {} numbers", start.elapsed().as_secs_f64() * 1e3, report.queries);
    }
    let start = Instant::now();
    let mut export = Vec::new();
    export::write(&fixture.settings, &mut export).unwrap();
    println!("export {:.2} s, {} MB", start.elapsed().as_secs_f64(), export.len() >> 20);
}
