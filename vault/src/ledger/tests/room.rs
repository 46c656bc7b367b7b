//! The budget that open jobs may still spend.
#![allow(clippy::unwrap_used)]

use conclave_privacy::accounting::{Budget, PrivacyFilter};

use crate::ledger::{ChargeOutcome, JobEntry, Ledger, LedgerSettings, Room};
use crate::testing::{budget, entry, key};

fn of(epsilon: f64) -> Budget {
    Budget::new(epsilon, 1e-6).unwrap()
}

fn units(epsilon: f64) -> u64 {
    PrivacyFilter::new(&of(epsilon)).unwrap().limit_units()
}

/// The caps of open jobs are promised to them, under the data's budget and under their analyst's, over restarts, until they are closed.
#[test]
fn the_caps_of_open_jobs_are_promised_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let settings = LedgerSettings {
        analyst_cap: Some(of(4.0)),
        ..LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget())
    };
    settings.init().unwrap();
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    let room = |ledger: &Ledger, job: &str, analyst: &str| ledger.room(job, analyst).unwrap();
    assert_eq!(room(&ledger, "", "alice").free.units, units(4.0));
    ledger.open_job(&entry("a", of(3.0))).unwrap();
    ledger.open_job(&JobEntry { analyst: "bob", ..entry("b", of(3.5)) }).unwrap();
    let promised = |ledger: &Ledger, spent: u64| {
        let (alice, bob, carol) = (room(ledger, "", "alice"), room(ledger, "", "bob"), room(ledger, "", "carol"));
        assert_eq!(alice.free.units, units(4.0) - units(3.0));
        assert_eq!(bob.free.units, units(4.0) - units(3.5));
        assert_eq!(carol.free.units, units(4.0).min(units(8.0) - units(3.0) - units(3.5)));
        assert_eq!((alice.left.units, bob.left.units), (units(4.0) - spent, units(4.0)));
        // The job itself finds its own cap free, and its charges.
        let own = room(ledger, "a", "alice");
        assert_eq!((own.spent.units, own.free.units), (spent, units(4.0) - spent));
    };
    promised(&ledger, 0);
    let ChargeOutcome::Granted(_) = ledger.charge("a", 0, &[key(0, 1, 1 << 30)]).unwrap() else { panic!("within the cap") };
    let spent = ledger.units().0;
    assert!(spent > 0);
    // A charge moves a part of the promise into the charges, and nothing else.
    promised(&ledger, spent);
    drop(ledger);
    // After a restart, no job has been opened again yet.
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    promised(&ledger, spent);
    ledger.open_job(&entry("a", of(3.0))).unwrap();
    promised(&ledger, spent);
    ledger.close_job("a", "done").unwrap();
    let Room { left, free, .. } = room(&ledger, "", "alice");
    assert_eq!((left.units, free.units), (units(4.0) - spent, units(4.0) - spent));
}

/// A job that takes what is free can spend no more than that, and the reserve of delta is promised likewise.
#[test]
fn a_job_with_less_room_than_its_cap_ends_where_its_room_does() {
    let folder = tempfile::tempdir().unwrap();
    let budget = of(3.0).reserving(1 << 40);
    let settings = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget);
    settings.init().unwrap();
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    let cap = of(2.5).reserving(1 << 39);
    ledger.open_job(&entry("a", cap)).unwrap();
    let free = ledger.room("", "alice").unwrap().free;
    assert_eq!(free.units, units(3.0) - units(2.5));
    assert_eq!(free.reserve_units, budget.grantable_reserve_units() - cap.grantable_reserve_units());
    ledger.open_job(&JobEntry { room: Some(free), ..entry("b", of(2.5)) }).unwrap();
    assert_eq!(ledger.room("", "alice").unwrap().free.units, 0);
    let mut charges = 0;
    while let ChargeOutcome::Granted(_) = ledger.charge("b", charges, &[key(0, 1, 1 << 28)]).unwrap() {
        charges += 1;
        assert!(ledger.state().job("b").unwrap().committed().units <= free.units);
    }
    assert!(charges > 0);
    // The first job's cap is still whole.
    assert!(ledger.units().1 - ledger.units().0 >= units(2.5));
}
