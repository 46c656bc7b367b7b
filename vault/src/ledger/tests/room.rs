//! The budget that open jobs may still spend.
#![allow(clippy::unwrap_used)]

use conclave_privacy::accounting::{Budget, Honest, PrivacyFilter};
use conclave_privacy::secagg::MaskSecret;
use sha2::{Digest as _, Sha256};

use crate::ledger::{ChargeOutcome, JobEntry, Ledger, LedgerSettings, Room};
use crate::testing::{budget, entry, key, masked_toml};

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
    let room = |ledger: &Ledger, job: &str, analyst: &str| ledger.room(job, analyst, Honest::ALONE).unwrap();
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

/// A job from before a refresh of the data is never charged again, so nothing is promised to it, although it was never closed.
#[test]
fn a_refresh_frees_the_caps_of_earlier_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let settings = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget());
    settings.init().unwrap();
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    let free = |ledger: &Ledger| ledger.room("", "bob", Honest::ALONE).unwrap().free.units;
    ledger.open_job(&entry("before", of(3.0))).unwrap();
    let ChargeOutcome::Granted(_) = ledger.charge("before", 0, &[key(0, 1, 1 << 30)]).unwrap() else { panic!("within the cap") };
    let spent = ledger.units().0;
    assert_eq!(free(&ledger), units(8.0) - units(3.0));
    drop(ledger);
    Ledger::refresh(&settings, "a new year").unwrap();
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    assert!(ledger.state().job("before").unwrap().open);
    assert_eq!(free(&ledger), units(8.0) - spent);
    // A job of the refreshed data is promised its cap.
    ledger.open_job(&entry("after", of(2.0))).unwrap();
    assert_eq!(free(&ledger), units(8.0) - spent - units(2.0));
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
    let free = ledger.room("", "alice", Honest::ALONE).unwrap().free;
    assert_eq!(free.units, units(3.0) - units(2.5));
    assert_eq!(free.reserve_units, budget.grantable_reserve_units() - cap.grantable_reserve_units());
    ledger.open_job(&JobEntry { room: Some(free), ..entry("b", of(2.5)) }).unwrap();
    assert_eq!(ledger.room("", "alice", Honest::ALONE).unwrap().free.units, 0);
    let mut charges = 0;
    while let ChargeOutcome::Granted(_) = ledger.charge("b", charges, &[key(0, 1, 1 << 28)]).unwrap() {
        charges += 1;
        assert!(ledger.state().job("b").unwrap().committed().units <= free.units);
    }
    assert!(charges > 0);
    // The first job's cap is still whole.
    assert!(ledger.units().1 - ledger.units().0 >= units(2.5));
}

/// Under the owner's limit for the case that all others collude, an open masked job is promised what its cap costs then, over restarts too.
/// Another job finds the rest: the more parties hide its answers, the smaller a part of it.
#[test]
fn the_caps_of_masked_jobs_are_promised_to_them_if_all_others_collude() {
    let folder = tempfile::tempdir().unwrap();
    let settings = LedgerSettings {
        all_collude: Some(of(12.0)),
        ..LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget())
    };
    settings.init().unwrap();
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    let limit = units(12.0);
    let hidden = |parties: u32| Honest::new(parties).unwrap();
    let free = |ledger: &Ledger, parties: u32| ledger.room("", "bob", hidden(parties)).unwrap();
    assert_eq!(free(&ledger, 1).left.units, units(8.0), "the data's budget is the smaller one");
    assert_eq!((free(&ledger, 20).left.units, free(&ledger, 20).free.units), (limit / 20, limit / 20));
    // The job is entered, and has neither a key nor a roster yet.
    let text = masked_toml(9, 1);
    let digest: [u8; 32] = Sha256::digest(&text).into();
    let job = JobEntry { honest: hidden(8), spec_toml: &text, spec_digest: &digest, ..entry("a", of(2.0)) };
    ledger.open_job(&job).unwrap();
    let promised = |ledger: &Ledger, hides: u64| {
        let rest = limit.saturating_sub(hides * units(2.0));
        for parties in [4, 20] {
            let Room { left, free, .. } = free(ledger, parties);
            let own = units(8.0) - units(2.0);
            assert_eq!(
                (left.units, free.units),
                (units(8.0).min(limit / u64::from(parties)), own.min(rest / u64::from(parties)))
            );
        }
    };
    promised(&ledger, 8);
    drop(ledger);
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    promised(&ledger, 8);
    ledger.open_job(&job).unwrap();
    ledger.enter_mask_key("a", &MaskSecret::from_bytes([7; 32].into()).public()).unwrap();
    promised(&ledger, 8);
    drop(ledger);
    // It has a key, and has not been opened again yet.
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    promised(&ledger, 8);
    ledger.open_job(&job).unwrap();
    promised(&ledger, 8);
    // The job itself finds its own cap free, and another one after its end finds all.
    assert_eq!(ledger.room("a", "alice", hidden(8)).unwrap().free.units, units(8.0).min(limit / 8));
    ledger.close_job("a", "done").unwrap();
    assert_eq!(free(&ledger, 20).free.units, limit / 20);
    // A job of an unreadable text is promised whatever any number of parties may cost, until it is charged by itself.
    ledger.open_job(&entry("b", of(2.0))).unwrap();
    drop(ledger);
    let mut ledger = Ledger::open_kept(&settings).unwrap();
    promised(&ledger, u64::from(Honest::MOST));
    ledger.open_job(&entry("b", of(2.0))).unwrap();
    promised(&ledger, 1);
    let ChargeOutcome::Granted(_) = ledger.charge("b", 0, &[key(0, 1, 1 << 28)]).unwrap() else { panic!("within the cap") };
    let spent = ledger.units().0;
    drop(ledger);
    let ledger = Ledger::open_kept(&settings).unwrap();
    assert_eq!(free(&ledger, 4).free.units, (units(8.0) - units(2.0)).min((limit - spent - (units(2.0) - spent)) / 4));
}
