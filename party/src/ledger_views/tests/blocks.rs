//! Blocks of subsampled releases in exports and in the owner's report.

use conclave_privacy::accounting::{Budget, Spent};
use conclave_vault::ledger::*;
use conclave_vault::testing::blocks::{RESERVE, reserving, sampled, terms};
use conclave_vault::testing::{JOB, entry, key};

use super::super::{export, report_kept};
use super::{Fixture, seal};

/// All totals of a ledger, and what an export of it adds up to, which must be the same.
fn checked(fixture: &Fixture) -> Result<Spent, String> {
    let mut out = Vec::new();
    export::write(&fixture.settings, &mut out).map_err(|e| e.to_string())?;
    seal(&mut out);
    Ok(export::check(&*out).map_err(|e| e.to_string())?.state.spent())
}

#[test]
fn an_export_verifies_and_what_is_altered_in_a_block_is_found() {
    let mut fixture = Fixture::with(|settings| settings.budget = reserving());
    let mut ledger = fixture.open();
    let terms = terms(4, 1 << 30);
    for round in 0..3 {
        fixture.answer(&mut ledger, round.into(), &[sampled(0, round, &terms), key(1, round, 5)]);
    }
    let spent = ledger.state().spent();
    ledger.close().unwrap();
    assert_eq!(checked(&fixture), Ok(spent));
    assert_eq!(report_kept(&fixture.settings).unwrap().delta_reserve_spent, reserve(1 << 30));
    let whole = std::fs::read(fixture.path()).unwrap();
    for alter in [
        "UPDATE events SET body = replace(body, '\"releases\":4', '\"releases\":5') WHERE kind = 'block'",
        "UPDATE events SET body = replace(body, '\"probability\":', '\"probability\":1') WHERE kind = 'block'",
        "UPDATE events SET body = replace(body, '\"reserve\":', '\"reserve\":1') WHERE kind = 'block'",
        "UPDATE events SET body = replace(body, '\"reserve\":', '\"reserve\":1') WHERE kind = 'job-reserve'",
        "UPDATE charges SET block = 0 WHERE charge = 0",
        "UPDATE charges SET charge = 1 WHERE charge = 0",
        "UPDATE charges SET block = block + 1 WHERE charge = 0",
    ] {
        fixture.sql(alter);
        assert!(Ledger::open_kept(&fixture.settings).is_err() && checked(&fixture).is_err(), "{alter}");
        std::fs::write(fixture.path(), &whole).unwrap();
    }
    assert_eq!(checked(&fixture), Ok(spent));
}

/// A reserve that came on top is in the report as the ledger has it.
#[test]
fn a_reserve_on_top_is_reported_beside_the_delta_that_was_promised() {
    let fixture = Fixture::new();
    let old = &fixture.settings;
    Ledger::add_reserve(old, RESERVE, "jobs over samples").unwrap();
    let rounded = Budget::new(8.0, 1.1e-6 - 1e-7).unwrap().reserving(RESERVE + 1);
    let mut ledger = Ledger::open_kept(&LedgerSettings { budget: rounded, ..old.clone() }).unwrap();
    ledger.open_job(&entry(JOB, reserving())).unwrap();
    let report = report_kept(&LedgerSettings { budget: reserving(), ..old.clone() }).unwrap();
    assert_eq!((report.delta_promised, report.delta_reserve, report.delta), (1.1e-6, 1e-7, 1e-6));
}
