#![allow(clippy::unwrap_used)]
use std::path::PathBuf;

use conclave_privacy::accounting::{Budget, PrivacyFilter, charge_units};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{JOB, budget, entry, key, no_sum};

struct Fixture {
    folder: TempDir,
    noise: Noise,
}

impl Fixture {
    fn new() -> (Self, Ledger) {
        let fixture = Self { folder: tempfile::tempdir().unwrap(), noise: Noise::from_os().unwrap() };
        Ledger::init(&fixture.path(), "hospital-a", &budget()).unwrap();
        let ledger = fixture.reopen();
        (fixture, ledger)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    /// Opens the ledger and the job.
    fn reopen(&self) -> Ledger {
        let mut ledger = Ledger::open(&self.path(), "hospital-a", &budget()).unwrap();
        ledger.open_job(&entry(JOB, budget())).unwrap();
        ledger
    }

    fn sql(&self, statement: &str) {
        Connection::open(self.path()).unwrap().execute_batch(statement).unwrap();
    }

    /// Charges, releases and records one message; returns the released numbers.
    fn answer(&mut self, ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) -> Vec<i64> {
        let grants = granted(ledger.charge(JOB, iteration, keys).unwrap());
        let mut values = Vec::new();
        for grant in grants {
            match grant {
                Grant::Answered(recorded) => values.push(recorded.integers()[0]),
                Grant::Charged(receipt) => {
                    let one = release(receipt, no_sum(), &mut self.noise);
                    values.extend(ledger.record(vec![one]).unwrap().iter().flat_map(|recorded| recorded.integers().to_vec()));
                }
            }
        }
        values
    }
}

fn granted(outcome: ChargeOutcome) -> Vec<Grant> {
    match outcome {
        ChargeOutcome::Granted(grants) => grants,
        ChargeOutcome::Refused(refusal) => panic!("{refusal}"),
    }
}

fn refused(outcome: ChargeOutcome) -> Refusal {
    match outcome {
        ChargeOutcome::Refused(refusal) => refusal,
        ChargeOutcome::Granted(_) => panic!("granted"),
    }
}

/// A coordinator reports the ends of its jobs whenever a party attaches: each is entered once, and unknown ones are not entered.
#[test]
fn an_end_reported_again_or_late_is_entered_once() {
    let (fixture, ledger) = Fixture::new();
    drop(ledger);
    let mut ledger = Ledger::open(&fixture.path(), "hospital-a", &budget()).unwrap();
    let ends = || -> i64 {
        let sql = "SELECT count(*) FROM events WHERE kind = 'close'";
        Connection::open(fixture.path()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let before = ledger.head().to_bytes();
    ledger.close_job("a-job-that-nobody-knows", "over").unwrap();
    assert_eq!(ledger.head().to_bytes(), before);
    for _ in 0..3 {
        ledger.close_job(JOB, "over").unwrap();
        assert_eq!(ends(), 1);
    }
    let after = ledger.head().to_bytes();
    drop(ledger);
    let mut ledger = Ledger::open(&fixture.path(), "hospital-a", &budget()).unwrap();
    let opened = ledger.head().to_bytes();
    ledger.close_job(JOB, "over").unwrap();
    assert!(ledger.head().to_bytes() == opened && after != before);
}

#[test]
fn a_ledger_is_made_once_and_never_by_accident() {
    let (fixture, ledger) = Fixture::new();
    drop(ledger);
    assert!(matches!(Ledger::init(&fixture.path(), "hospital-a", &budget()), Err(LedgerError::Exists(_))));
    let elsewhere = fixture.folder.path().join("other.sqlite");
    let error = Ledger::open(&elsewhere, "hospital-a", &budget()).unwrap_err();
    assert!(matches!(error, LedgerError::Missing(_)));
    assert!(error.to_string().contains("init"), "{error}");
    assert!(!elsewhere.exists());
    // A part of a moved ledger: its log would be applied to a new one.
    std::fs::write(fixture.folder.path().join("other.sqlite-wal"), "x").unwrap();
    assert!(matches!(Ledger::init(&elsewhere, "hospital-a", &budget()), Err(LedgerError::Foreign { .. })));
    // The ledger is missing, but its newest head exists: a new ledger would mean a new budget for the same data.
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(fixture.folder.path().join(format!("ledger.sqlite{suffix}")));
    }
    let error = Ledger::init(&fixture.path(), "hospital-a", &budget()).unwrap_err();
    assert!(matches!(&error, LedgerError::Earlier { file, .. } if file.ends_with("ledger.sqlite.head")), "{error}");
    assert!(
        error.to_string().contains("backup") && error.to_string().contains("move this file away") && !fixture.path().exists()
    );
    std::fs::remove_file(fixture.folder.path().join("ledger.sqlite.head")).unwrap();
    Ledger::init(&fixture.path(), "hospital-a", &budget()).unwrap();
}

#[test]
fn one_process_holds_it_under_any_name() {
    let (fixture, ledger) = Fixture::new();
    assert!(matches!(Ledger::open(&fixture.path(), "hospital-a", &budget()), Err(LedgerError::Locked(_))));
    #[cfg(unix)]
    {
        let link = fixture.folder.path().join("link.sqlite");
        std::os::unix::fs::symlink(fixture.path(), &link).unwrap();
        assert!(matches!(Ledger::open(&link, "hospital-a", &budget()), Err(LedgerError::Locked(_))));
    }
    #[cfg(unix)]
    {
        // A second name with a lock file of its own.
        let hard = fixture.folder.path().join("hard.sqlite");
        std::fs::hard_link(fixture.path(), &hard).unwrap();
        let error = Ledger::open(&hard, "hospital-a", &budget()).unwrap_err();
        assert!(error.to_string().contains("2 names"), "{error}");
        std::fs::remove_file(&hard).unwrap();
    }
    drop(ledger);
    fixture.reopen();
}

/// Like a bind mount of the file alone: another name, another lock file, the same inode.
#[test]
#[cfg(unix)]
fn the_ledger_itself_is_locked_and_has_one_name() {
    let (fixture, ledger) = Fixture::new();
    drop(ledger);
    let held = std::fs::File::open(fixture.path()).unwrap();
    held.lock().unwrap();
    assert!(matches!(Ledger::open(&fixture.path(), "hospital-a", &budget()), Err(LedgerError::Locked(_))));
    drop(held);
    let hard = fixture.folder.path().join("hard.sqlite");
    std::fs::hard_link(fixture.path(), &hard).unwrap();
    for path in [fixture.path(), hard.clone()] {
        assert!(matches!(Ledger::open(&path, "hospital-a", &budget()), Err(LedgerError::Foreign { .. })));
    }
    std::fs::remove_file(&hard).unwrap();
    let ledger = fixture.reopen();
    assert!(std::fs::File::open(fixture.path()).unwrap().try_lock().is_err());
    drop(ledger);
}

/// The attack: one job closed and reopened for ever, or ever new jobs, each writing to the ledger without paying.
#[test]
fn jobs_without_queries_cannot_make_the_ledger_grow() {
    let (mut fixture, mut ledger) = Fixture::new();
    let reopened = (0..1000).find(|_| {
        ledger.close_job(JOB, "again").unwrap();
        ledger.admit_idle(JOB, "alice").is_err() || ledger.open_job(&entry(JOB, budget())).is_err()
    });
    assert!(reopened.is_some_and(|times| times < 100), "{reopened:?}");
    let names: Vec<String> = (0..1000).map(|n| format!("job-{n}")).collect();
    let entered = names
        .iter()
        .take_while(|name| ledger.admit_idle(name, "alice").is_ok() && ledger.open_job(&entry(name, budget())).is_ok());
    let entered = entered.count();
    assert!(entered < 300, "{entered}");
    assert!(ledger.admit_idle("job-x", "bob").is_ok());
    // A job that pays does not count.
    granted(ledger.charge("job-0", 0, &[key(0, 1, 1000)]).unwrap());
    assert!(ledger.admit_idle("job-x", "alice").is_ok());
    drop(ledger);
    fixture.noise.keep([]);
}

#[test]
fn budget_party_and_file_must_match() {
    let (fixture, ledger) = Fixture::new();
    drop(ledger);
    let other = Budget::new(f64::from_bits(8f64.to_bits() + 1), 1e-6).unwrap();
    let error = Ledger::open(&fixture.path(), "hospital-a", &other).unwrap_err();
    assert!(matches!(error, LedgerError::Budget { .. }));
    assert!(error.to_string().contains("[budget]"), "{error}");
    assert!(matches!(Ledger::open(&fixture.path(), "hospital-b", &budget()), Err(LedgerError::Party { .. })));
    let text = fixture.folder.path().join("text.sqlite");
    std::fs::write(&text, "a text that is long enough to be no empty database at all").unwrap();
    assert!(matches!(Ledger::open(&text, "hospital-a", &budget()), Err(LedgerError::Foreign { .. })));
    let empty = fixture.folder.path().join("empty.sqlite");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(Ledger::open(&empty, "hospital-a", &budget()), Err(LedgerError::Foreign { .. })));
}

#[test]
fn the_same_query_gets_the_same_bytes_at_no_charge() {
    let (mut fixture, mut ledger) = Fixture::new();
    let keys = [key(0, 1, 1000), key(1, 2, 1000)];
    let first = fixture.answer(&mut ledger, 7, &keys);
    let spent = ledger.units();
    assert_eq!(fixture.answer(&mut ledger, 7, &keys), first);
    assert_eq!(fixture.answer(&mut ledger, 7, &keys[1..]), first[1..]);
    drop(ledger);
    let mut ledger = fixture.reopen();
    assert_eq!(fixture.answer(&mut ledger, 7, &keys), first);
    assert_eq!(ledger.units(), spent);
    assert_eq!(spent.0, 2 * charge_units(keys[0].priced.sensitivity(), keys[0].priced.noise()).unwrap());
}

#[test]
fn an_altered_query_under_the_same_id_is_refused() {
    let (mut fixture, mut ledger) = Fixture::new();
    fixture.answer(&mut ledger, 7, &[key(0, 1, 1000)]);
    let spent = ledger.units();
    // The fresh second query of the message is not charged either.
    let outcome = ledger.charge(JOB, 7, &[key(1, 5, 1000), key(0, 2, 1000)]).unwrap();
    assert_eq!(refused(outcome), Refusal::Conflict { chain: 0 });
    // Even with an equal digest, other noise or another sensitivity is refused.
    let outcome = ledger.charge(JOB, 7, &[key(0, 1, 999)]).unwrap();
    assert_eq!(refused(outcome), Refusal::Conflict { chain: 0 });
    let outcome = ledger.charge(JOB, 8, &[key(3, 1, 1000), key(3, 1, 1000)]).unwrap();
    assert_eq!(refused(outcome), Refusal::Conflict { chain: 3 });
    assert_eq!(ledger.units(), spent);
}

#[test]
fn a_charged_query_in_flight_is_not_charged_or_answered_twice() {
    let (mut fixture, mut ledger) = Fixture::new();
    let mut receipts = granted(ledger.charge(JOB, 1, &[key(0, 1, 1000)]).unwrap());
    let outcome = ledger.charge(JOB, 1, &[key(0, 1, 1000)]).unwrap();
    assert_eq!(refused(outcome), Refusal::InFlight { chain: 0 });
    let Some(Grant::Charged(receipt)) = receipts.pop() else { panic!("not charged") };
    let one = release(receipt, no_sum(), &mut fixture.noise);
    let recorded = ledger.record(vec![one]).unwrap();
    assert_eq!(fixture.answer(&mut ledger, 1, &[key(0, 1, 1000)]), [recorded[0].integers()[0]]);
}

#[test]
fn after_a_crash_a_charged_query_is_answered_under_its_charge_once() {
    let (mut fixture, mut ledger) = Fixture::new();
    let answered = fixture.answer(&mut ledger, 1, &[key(0, 1, 1000)]);
    // Charged, then the process dies: the receipt is lost with it.
    let lost = granted(ledger.charge(JOB, 1, &[key(1, 2, 1000)]).unwrap());
    let spent = ledger.units();
    drop(ledger);
    let mut ledger = fixture.reopen();
    // Three queries of one message: answered, charged, fresh.
    let keys = [key(0, 1, 1000), key(1, 2, 1000), key(2, 3, 1000)];
    let all = fixture.answer(&mut ledger, 1, &keys);
    assert_eq!(all[..1], answered);
    assert_eq!(ledger.units().0 - spent.0, charge_units(keys[2].priced.sensitivity(), keys[2].priced.noise()).unwrap());
    assert_eq!(fixture.answer(&mut ledger, 1, &keys), all);
    // A receipt of the dead process is invalid here, and showing it is final.
    let Some(Grant::Charged(receipt)) = lost.into_iter().next() else { panic!("not charged") };
    let ghost = release(receipt, no_sum(), &mut fixture.noise);
    assert!(matches!(ledger.record(vec![ghost]), Err(LedgerError::Halted(_))));
    assert!(matches!(ledger.charge(JOB, 1, &keys), Err(LedgerError::Halted(_))));
    drop(ledger);
    let mut ledger = fixture.reopen();
    assert_eq!(fixture.answer(&mut ledger, 1, &keys), all);
}

#[test]
fn over_budget_is_refused_and_a_message_is_all_or_none() {
    let (mut fixture, mut ledger) = Fixture::new();
    // One charge takes mu² = (2 k)² g² = slightly more than a quarter of the budget.
    let limit = ledger.units().1;
    let k_t = ((limit as f64 / 4.0 / (1u64 << 48) as f64).sqrt() / 2.0 * (1u64 << 32) as f64).ceil() as u64;
    fixture.answer(&mut ledger, 0, &[key(0, 1, k_t), key(1, 1, k_t)]);
    let spent = ledger.units();
    let outcome = ledger.charge(JOB, 1, &[key(0, 2, k_t), key(1, 2, k_t)]).unwrap();
    assert!(matches!(refused(outcome), Refusal::DataBudget(_)));
    assert_eq!(ledger.units(), spent);
    fixture.answer(&mut ledger, 1, &[key(0, 2, k_t)]);
    drop(ledger);
    let mut ledger = fixture.reopen();
    let outcome = ledger.charge(JOB, 1, &[key(1, 2, k_t)]).unwrap();
    assert!(matches!(refused(outcome), Refusal::DataBudget(_)));
    // Queries already in the ledger can still be repeated.
    fixture.answer(&mut ledger, 1, &[key(0, 2, k_t)]);
}

#[test]
fn a_jobs_cap_lies_within_the_datas_budget_and_outlives_a_restart() {
    let (mut fixture, mut ledger) = Fixture::new();
    const SMALL: &str = "job-small";
    let cap = Budget::new(0.5, 1e-6).unwrap();
    ledger.open_job(&entry(SMALL, cap)).unwrap();
    let k_t = 1 << 27;
    let mut granted = 0u8;
    loop {
        match ledger.charge(SMALL, u64::from(granted), &[key(0, granted, k_t)]).unwrap() {
            ChargeOutcome::Granted(_) => granted += 1,
            ChargeOutcome::Refused(refusal) => {
                assert!(matches!(refusal, Refusal::JobBudget(_)), "{refusal}");
                break;
            }
        }
    }
    let cap_units = PrivacyFilter::new(&cap).unwrap().limit_units();
    assert_eq!(
        u64::from(granted),
        cap_units / charge_units(key(0, 0, k_t).priced.sensitivity(), key(0, 0, k_t).priced.noise()).unwrap()
    );
    drop(ledger);
    let mut ledger = fixture.reopen();
    assert_eq!(refused(ledger.charge(SMALL, 99, &[key(0, 0, k_t)]).unwrap()), Refusal::UnknownJob);
    ledger.open_job(&entry(SMALL, cap)).unwrap();
    assert!(matches!(refused(ledger.charge(SMALL, 99, &[key(0, 0, k_t)]).unwrap()), Refusal::JobBudget(_)));
    // Another job continues.
    fixture.answer(&mut ledger, 0, &[key(0, 1, k_t)]);
}

/// The attack: messages of 256 queries at K_t = 1, almost free, to exhaust the ledger for everybody.
#[test]
fn the_cheapest_queries_exhaust_their_own_job_but_not_the_ledger() {
    let (mut fixture, mut ledger) = Fixture::new();
    const SMALL: &str = "job-small";
    ledger.open_job(&entry(SMALL, Budget::new(0.02, 1e-6).unwrap())).unwrap();
    let message: Vec<QueryKey> = (0..256).map(|chain| key(chain, 1, 1)).collect();
    let refusal = (0..100).find_map(|round| match ledger.charge(SMALL, round, &message).unwrap() {
        ChargeOutcome::Granted(_) => None,
        ChargeOutcome::Refused(refusal) => Some(refusal),
    });
    assert!(matches!(refusal, Some(Refusal::JobBudget(_))), "{refusal:?}");
    fixture.answer(&mut ledger, 0, &[key(0, 1, 1 << 27)]);
}

#[test]
fn a_job_id_belongs_to_one_job() {
    let (fixture, mut ledger) = Fixture::new();
    let base = entry(JOB, budget());
    for changed in
        [JobEntry { spec_digest: &[2; 32], ..base }, JobEntry { analyst: "bob", ..base }, JobEntry { records: 6, ..base }]
    {
        assert!(matches!(ledger.open_job(&changed), Err(LedgerError::Job(_))));
    }
    assert_eq!(ledger.halted(), None);
    ledger.close_job(JOB, "finished").unwrap();
    assert_eq!(refused(ledger.charge(JOB, 0, &[key(0, 1, 1)]).unwrap()), Refusal::UnknownJob);
    ledger.open_job(&base).unwrap();
    granted(ledger.charge(JOB, 0, &[key(0, 1, 1)]).unwrap());
    drop(fixture);
}

#[test]
fn sums_are_added_up_again_at_every_start() {
    for damage in [
        "UPDATE charges SET charge = charge + 1 WHERE seq = 4",
        "UPDATE charges SET k_t = 1 WHERE seq = 4",
        "UPDATE charges SET running_total = running_total + 1 WHERE seq = 6",
        "DELETE FROM charges WHERE seq = 4",
        "DELETE FROM charges WHERE seq = 6",
        "UPDATE charges SET time_ms = time_ms + 1 WHERE seq = 4",
        "UPDATE answers SET released = released + 1 WHERE charge = 4",
        "DELETE FROM answers WHERE charge = 4",
        "UPDATE jobs SET analyst = 'bob'",
        "UPDATE jobs SET cap_epsilon = '9.0'",
        "UPDATE totals SET queries = queries - 1",
        "UPDATE events SET body = '{}' WHERE seq = 2",
        "INSERT INTO events SELECT -1, time_ms, kind, job, body, hash FROM events WHERE seq = 2",
        "INSERT INTO answers SELECT 999, 999, released FROM answers LIMIT 1",
        "UPDATE answers SET released = released + 1 WHERE charge = (SELECT max(charge) FROM answers)",
        "DELETE FROM answers WHERE charge = (SELECT max(charge) FROM answers)",
        "UPDATE tail SET seq = seq + 1",
        "UPDATE tail SET seq = seq - 1",
        "UPDATE tail SET hash = (SELECT hash FROM charges LIMIT 1)",
        "DELETE FROM tail",
        "INSERT INTO tail SELECT 2, seq, hash FROM tail",
        "UPDATE tail SET id = 2",
        "ALTER TABLE charges ADD COLUMN more INTEGER",
        "CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM answers; END",
    ] {
        let (mut fixture, mut ledger) = Fixture::new();
        fixture.answer(&mut ledger, 0, &[key(0, 1, 1000), key(1, 1, 1000), key(2, 1, 1000)]);
        drop(ledger);
        fixture.sql(damage);
        let error = Ledger::open(&fixture.path(), "hospital-a", &budget()).unwrap_err();
        assert!(matches!(error, LedgerError::Corrupt { .. }), "{damage}: {error}");
    }
}

#[test]
fn a_failed_write_is_final() {
    let (mut fixture, mut ledger) = Fixture::new();
    fixture.answer(&mut ledger, 0, &[key(0, 1, 1000)]);
    // Another process has written: this process's view of the ledger is invalid.
    fixture.sql("UPDATE events SET time_ms = time_ms + 1 WHERE seq = 1");
    assert!(matches!(ledger.charge(JOB, 1, &[key(0, 2, 1000)]), Err(LedgerError::Halted(_))));
    assert!(matches!(ledger.charge(JOB, 0, &[key(0, 1, 1000)]), Err(LedgerError::Halted(_))));
    assert!(matches!(ledger.record(Vec::new()), Err(LedgerError::Halted(_))));
    assert!(matches!(ledger.open_job(&entry("other", budget())), Err(LedgerError::Halted(_))));
    assert!(ledger.halted().is_some());
}

#[test]
fn an_auditor_reads_all_releases() {
    let (mut fixture, mut ledger) = Fixture::new();
    let values = fixture.answer(&mut ledger, 3, &[key(0, 1, 1 << 29), key(1, 2, 1 << 30)]);
    let reader = schema::connect_read_only(&fixture.path()).unwrap();
    type Row = (i64, String, String, i64, u32, String, u64, f64, u64, i64);
    let columns = "seq, job, analyst, iteration, chain, digest, k_t, noise_sd, running_total, released";
    let mut select = reader.prepare(&format!("SELECT {columns} FROM releases")).unwrap();
    let rows: Vec<Row> = select.query_map([], |r| r.try_into()).unwrap().map(Result::unwrap).collect();
    drop(select);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].0, rows[0].1.as_str(), rows[0].2.as_str(), rows[0].3, rows[0].4), (4, JOB, "alice", 3, 0));
    assert_eq!((rows[1].5.as_str(), rows[1].6, rows[1].7), ("02".repeat(32).as_str(), 1 << 30, 1.0));
    assert_eq!(rows[1].8, ledger.units().0);
    assert_eq!([rows[0].9, rows[1].9], values[..]);
}

/// A charge of a choice that another system's library rounded differently is accepted as it was recorded; no other difference is, and none
/// in a charge that integers determine.
#[test]
fn a_recorded_choice_may_differ_by_a_rounding() {
    use conclave_privacy::accounting::{Honest, Priced, rounding};
    use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};

    use crate::ledger::entry::{ChargeEntry, Entry};
    let (_fixture, ledger) = Fixture::new();
    let appended = |kind: QueryKind, k_t: Sensitivity, s: NoiseScale, moved: i64| {
        let mut state = ledger.state().clone();
        let cost = Priced::new(kind, k_t, s, Honest::ALONE).cost(budget().unit).unwrap();
        let charge = cost.units.checked_add_signed(moved).unwrap();
        let entry = ChargeEntry {
            seq: state.seq() + 1,
            time_ms: 0,
            job: state.job(JOB).unwrap().seq,
            iteration: 0,
            chain: 0,
            attempt: 0,
            block: 0,
            digest: [0; 32],
            theta: [0; 16],
            theta_next: [0; 16],
            kind: kind.code(),
            k_t: k_t.units(),
            s: s.units(),
            charge,
            running_total: charge,
            slack: cost.slack_units,
            components: 1,
            honest: 1,
            alone: charge,
        };
        state.append(&Entry::Charge(entry)).map(|_| assert_eq!(state.spent().units, charge))
    };
    // A range of 6, beyond which tails are taken from the logarithm.
    let (choice, k_t) = (QueryKind::Choice { candidates: 3 }, Sensitivity::from_units(6 << 30).unwrap());
    let margin = rounding(budget().unit.charge_of_kind(choice, k_t, (NoiseScale::OF_A_CHOICE, Honest::ALONE)).unwrap()) as i64;
    assert!((1 << 10..1 << 20).contains(&margin), "{margin}");
    for (moved, fits) in [(0, true), (1, true), (-margin, true), (margin, true), (margin + 1, false), (-margin - 1, false)] {
        let expected = if fits { Ok(()) } else { Err(wrong::Wrong::Charge) };
        assert_eq!(appended(choice, k_t, NoiseScale::OF_A_CHOICE, moved), expected, "{moved}");
    }
    let s = NoiseScale::from_sd(1.0).unwrap();
    assert_eq!([0, 1, -1].map(|moved| appended(QueryKind::Ratio, k_t, s, moved).is_ok()), [true, false, false]);
}
