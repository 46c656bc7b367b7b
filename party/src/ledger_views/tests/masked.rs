//! Jobs whose answers leave masked, in exports and in the owner's report.

use conclave_privacy::accounting::{Budget, Honest, Priced, Spent};
use conclave_privacy::secagg::{MaskPublic, MaskSecret, Member, Roster};
use conclave_vault::ledger::*;
use conclave_vault::testing::{JOB, budget, entry, key, no_sum};

use super::super::{export, report_kept};
use super::{Fixture, digest, seal};
use crate::owner;

/// Sensitivity of the queries here, lattice units: a price of some 2^-11 of the budget.
const K: u64 = 1 << 26;

fn public(place: u8) -> MaskPublic {
    MaskSecret::from_bytes([place + 1; 32].into()).public()
}

/// A roster of `members`, of whom this party is the first.
fn roster(members: u8, colluders: u32) -> Roster {
    let member = |place: u8| Member { name: format!("p{place}"), identity: [place; 32], public: public(place) };
    Roster::new(JOB, digest(), colluders, (0..members).map(member).collect()).unwrap()
}

fn enter(ledger: &mut Ledger, roster: &Roster) {
    let known: Vec<(bool, String)> = roster.members().iter().map(|_| (true, "0a".to_owned())).collect();
    ledger.enter_roster(JOB, roster, &known).unwrap();
}

/// Opens a ledger with a roster of `members` members.
fn opened(fixture: &Fixture, members: u8, colluders: u32) -> Ledger {
    let mut ledger = fixture.open();
    ledger.enter_mask_key(JOB, &public(0)).unwrap();
    enter(&mut ledger, &roster(members, colluders));
    ledger
}

/// Charges one message; none of it is answered yet.
fn charge(ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) -> Vec<Grant> {
    match ledger.charge(JOB, iteration, keys).unwrap() {
        ChargeOutcome::Granted(grants) => grants,
        ChargeOutcome::Refused(refusal) => panic!("{refusal}"),
    }
}

/// Releases and records what was granted under a mask.
fn answer(fixture: &mut Fixture, ledger: &mut Ledger, grants: Vec<Grant>, mask: u64) {
    let releases = grants.into_iter().map(|grant| match grant {
        Grant::Answered(_) => panic!("answered before"),
        Grant::Charged(receipt) => sample_noise(receipt, &mut fixture.noise).release_masked(no_sum(), &[mask]).unwrap(),
    });
    let releases = releases.collect();
    ledger.record(releases).unwrap();
}

fn masked(chain: u32, content: u8, honest: u32) -> QueryKey {
    let key = key(chain, content, K);
    let priced = Priced::new(key.priced.kind(), key.priced.sensitivity(), key.priced.noise(), Honest::new(honest).unwrap());
    QueryKey { priced, ..key }
}

fn price(honest: u32) -> Spent {
    masked(0, 0, honest).priced.cost(budget().unit).unwrap()
}

/// An export and its checker find a masked charge at its part, and beside that as if each answer had been opened by itself.
#[test]
fn a_masked_charge_is_exported_at_its_part_and_whole_beside() {
    let mut fixture = Fixture::new();
    let mut ledger = opened(&fixture, 10, 1);
    for round in 0..3 {
        let grants = charge(&mut ledger, round, &[masked(0, 1, 9), masked(1, 2, 9)]);
        answer(&mut fixture, &mut ledger, grants, 1 << 63);
    }
    let (own, whole) = (price(9), price(1));
    let check = |spent: Spent, alone: Spent| {
        assert_eq!((spent.units, spent.slack_units, spent.draws), (6 * own.units, 6 * own.slack_units, 6));
        assert_eq!((alone.units, alone.slack_units, alone.draws), (6 * whole.units, 6 * whole.slack_units, 6));
    };
    drop(ledger);
    let _ledger = fixture.open();
    let mut lines = Vec::new();
    let (signed, state) = export::write(&fixture.settings, &mut lines).unwrap();
    check(state.spent(), state.alone());
    seal(&mut lines);
    let checked = export::check(lines.as_slice()).unwrap();
    assert_eq!(checked.signed, signed);
    check(checked.state.spent(), checked.state.alone());
    let text = String::from_utf8(lines).unwrap();
    assert!(text.contains("\"honest\":9") && text.contains(&format!("\"alone\":{}", whole.units)));
    // An altered number of honest parties, or an altered price, is found on an auditor's desk.
    for (from, to) in [
        ("\"honest\":9", "\"honest\":8".to_owned()),
        (&*format!("\"alone\":{}", whole.units), format!("\"alone\":{}", whole.units - 1)),
    ] {
        assert!(export::check(text.replacen(from, &to, 1).as_bytes()).is_err(), "{to}");
    }
}

/// The owner's report comes from the tables and equals the fold over the entries, also beside a job without masks.
#[test]
fn the_report_tells_what_is_spent_if_all_collude() {
    let fixture = Fixture::with(|settings| settings.all_collude = Some(Budget { epsilon: 20.0, ..budget() }));
    let mut ledger = fixture.open();
    const OTHER: &str = "22222222-2222-4222-8222-222222222222";
    ledger.open_job(&JobEntry { spec_digest: &digest(), ..entry(OTHER, budget()) }).unwrap();
    let read = || report_kept(&fixture.settings).unwrap();
    let none = read();
    let limit = none.if_all_collude.unwrap();
    assert_eq!((limit.epsilon_spent, limit.epsilon_limit, none.masked_jobs), (0.0, Some(20.0), Vec::new()));
    drop(ledger.charge(OTHER, 0, &[key(0, 1, K)]).unwrap());
    ledger.enter_mask_key(JOB, &public(0)).unwrap();
    enter(&mut ledger, &roster(10, 1));
    for round in 0..3 {
        charge(&mut ledger, round, &[masked(0, 1, 9)]);
    }
    let report = read();
    let (spent, alone) = (ledger.state().spent(), ledger.state().alone());
    let collusion = report.if_all_collude.unwrap();
    assert!(alone.units > 2 * spent.units, "{alone:?} {spent:?}");
    assert!((collusion.mu_squared_spent / alone.mu_squared() - 1.0).abs() < 1e-12, "{collusion:?} {alone:?}");
    assert!((collusion.epsilon_spent / alone.epsilon(budget().delta) - 1.0).abs() < 1e-9);
    let job = &report.masked_jobs[0];
    assert_eq!((job.job.as_str(), job.open, job.honest, job.colluders, job.key_age_days), (JOB, true, Some(9), Some(1), Some(0)));
    assert_eq!((job.members.len(), job.members[3].name.as_str(), job.members[3].pinned), (10, "p3", true));
    assert_eq!(job.members[3].fingerprint, conclave_common::job::KeyFingerprint([3; 32]).to_string());
    ledger.close_job(JOB, "done").unwrap();
    let closed = read().masked_jobs.remove(0);
    assert_eq!((closed.open, closed.key_age_days), (false, None));
}

/// An unlock deletes the keys of all masked jobs: those that had one are over, and are shown so; a job that is not masked, or comes after, is not.
#[test]
fn masked_jobs_that_an_unlock_has_ended_are_shown_as_closed() {
    const LOCAL: &str = "22222222-2222-4222-8222-222222222222";
    const LATER: &str = "33333333-3333-4333-8333-333333333333";
    let fixture = Fixture::new();
    let mut ledger = opened(&fixture, 3, 1);
    ledger.open_job(&JobEntry { spec_digest: &digest(), ..entry(LOCAL, budget()) }).unwrap();
    ledger.close().unwrap();
    let old = std::fs::read(fixture.path()).unwrap();
    let mut ledger = fixture.open();
    charge(&mut ledger, 0, &[masked(0, 1, 2)]);
    ledger.close().unwrap();
    for suffix in ["-wal", "-shm"] {
        drop(std::fs::remove_file(fixture.folder.path().join(format!("ledger.sqlite{suffix}"))));
    }
    std::fs::write(fixture.path(), old).unwrap();
    let shown = || {
        let report = report_kept(&fixture.settings).unwrap();
        let open: Vec<String> = report.open_jobs.into_iter().map(|job| job.job).collect();
        let masked: Vec<_> = report.masked_jobs.into_iter().map(|job| (job.job, job.open, job.key_age_days)).collect();
        let jobs = owner::jobs(&fixture.path()).unwrap();
        let closed: Vec<String> =
            jobs.into_iter().filter(|job| job.totals.as_ref().unwrap().closed.is_some()).map(|job| job.request.job).collect();
        (open, masked, closed)
    };
    let all = |jobs: &[&str]| jobs.iter().map(|job| (*job).to_owned()).collect::<Vec<_>>();
    // Locked, and not ended: the newest ledger may be put back.
    assert_eq!(shown(), (all(&[JOB, LOCAL]), vec![(JOB.to_owned(), true, Some(0))], Vec::new()));
    Ledger::unlock(&fixture.settings, "restored", |_| Ok::<_, LedgerError>(())).unwrap();
    assert_eq!(shown(), (all(&[LOCAL]), vec![(JOB.to_owned(), false, None)], all(&[JOB])));
    let mut ledger = Ledger::open_kept(&fixture.settings).unwrap();
    ledger.open_job(&JobEntry { spec_digest: &digest(), ..entry(LATER, budget()) }).unwrap();
    ledger.enter_mask_key(LATER, &public(5)).unwrap();
    let masked = vec![(JOB.to_owned(), false, None), (LATER.to_owned(), true, Some(0))];
    assert_eq!(shown(), (all(&[LOCAL, LATER]), masked, all(&[JOB])));
}
