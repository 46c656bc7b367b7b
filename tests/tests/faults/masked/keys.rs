//! The life of a job's mask key: created once, kept over restarts, and deleted with the job, however the job ends.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use conclave_proto::convert::AnswerStatus;
use conclave_proto::identity::Role;
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::party_frame::Body as Said;
use conclave_tests::recorder::signed_job;
use conclave_vault::ledger::{Ledger, LedgerError};
use rusqlite::Connection;
use tokio::sync::mpsc;

use super::lab::{LANES, Lab, Seat, identity, name, released};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("a file").path();
        let there = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &there);
        } else {
            std::fs::copy(&path, there).expect("a copy");
        }
    }
}

/// A copy of a party's disk, without its keys.
struct Backup(PathBuf);

impl Backup {
    fn of(seat: &mut Seat, folder: &Path) -> Self {
        seat.kill();
        copy(seat.ledger.parent().expect("a folder"), folder);
        seat.start();
        Self(folder.to_owned())
    }

    /// Restores the ledger's folder without any newer file.
    fn restore(&self, seat: &mut Seat) {
        seat.kill();
        let folder = seat.ledger.parent().expect("a folder");
        std::fs::remove_dir_all(folder).expect("a folder");
        copy(&self.0, folder);
    }
}

/// Records a decision of an owner in another process.
pub(super) fn decide(seat: &Seat, job: &str, decision: &str) {
    let store = Connection::open(seat.ledger.with_file_name("ledger.sqlite.consent")).expect("decisions");
    let insert = "INSERT INTO decisions (job, time, decision, decider, reason) VALUES (?1, '2030-01-01T00:00:00Z', ?2, 'owner', 'no more')";
    store.execute(insert, (job, decision)).expect("SQL");
}

fn close(lab: &mut Lab, place: usize) {
    let job = lab.job.job.clone();
    lab.seats[place].say(Body::CloseJob(v1::CloseJob { job, reason: "finished".into(), waits: false }));
}

/// Checks that the job is over at a party, also after a restart: no key, no answer, no opening.
fn check_over(lab: &mut Lab, place: usize, code: &str) {
    for _ in 0..2 {
        let seat = &lab.seats[place];
        assert!(!seat.key_file(&lab.job.job).exists());
        let charges = seat.charges();
        let (found, reason) = lab.open(place).expect_err("a job that is over");
        assert_eq!(found, code, "{reason}");
        let query = lab.query(0);
        assert!(released(&lab.ask(place, &query)).is_err());
        assert_eq!(lab.seats[place].charges(), charges);
        lab.seats[place].restart();
    }
}

#[test]
fn a_closed_job_is_never_opened_again() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let query = lab.query(0);
    lab.ask(1, &query);
    close(&mut lab, 1);
    assert_eq!(lab.seats[1].events("close"), 1);
    check_over(&mut lab, 1, "conflict");
    lab.seats[1].verify();
}

#[test]
fn a_withdrawal_ends_a_job_while_it_runs_and_while_the_party_is_down() {
    for how in ["while it runs", "before it is opened again", "while the party is down"] {
        let mut lab = Lab::masked(3, 1);
        lab.begin();
        let job = lab.job.job.clone();
        match how {
            "while it runs" => {
                decide(&lab.seats[1], &job, "revoked");
                lab.seats[1].process.as_mut().expect("a party").consent_changed();
            }
            "before it is opened again" => {
                lab.seats[1].restart();
                decide(&lab.seats[1], &job, "revoked");
                lab.seats[1].process.as_mut().expect("a party").consent_changed();
            }
            _ => {
                lab.seats[1].kill();
                decide(&lab.seats[1], &job, "revoked");
                lab.seats[1].start();
                assert!(lab.open(1).is_err());
            }
        }
        assert!(!lab.seats[1].key_file(&job).exists(), "{how}");
        assert_eq!(lab.seats[1].events("close"), 1, "{how}");
        check_over(&mut lab, 1, "revoked");
        lab.seats[1].verify();
    }
}

/// A party without room for the job says so and deletes nothing; once there is room, the job continues under the same key.
#[test]
fn a_job_that_finds_no_room_keeps_its_key() {
    let mut lab = Lab::masked(3, 1);
    let entries = lab.begin();
    let query = lab.query(0);
    let answered = lab.ask(1, &query);
    lab.seats[1].restart();
    let alice = lab.folder.path().join("alice");
    let local = lab.job.spec_toml.split("[aggregation]").next().expect("a job file").to_owned();
    let others: Vec<v1::OpenJob> = (0..64).map(|_| signed_job(&alice, &local)).collect();
    for other in &others {
        let said = lab.seats[1].say(Body::OpenJob(other.clone()));
        assert!(matches!(said.as_slice(), [Said::JobOpened(_)]), "{said:?}");
    }
    assert_eq!(lab.open(1).expect_err("no room").0, "pending");
    assert!(lab.seats[1].key_file(&lab.job.job).exists());
    let closed = v1::CloseJob { job: others[0].job.clone(), reason: "finished".into(), waits: false };
    lab.seats[1].say(Body::CloseJob(closed));
    assert_eq!(lab.open(1).expect("room"), entries[1].key);
    assert_eq!(lab.ask(1, &query).releases, answered.releases);
}

/// Memory used by other jobs is no reason for a deletion either: once they have ended, the job continues under the same key.
#[test]
fn a_job_that_finds_no_memory_keeps_its_key() {
    let mut lab = Lab::masked(3, 1);
    // Enough records that a mebibyte holds one job's copy of them, but not two.
    let seat = &mut lab.seats[1];
    seat.kill();
    std::fs::write(&seat.rows, format!("height\n{}", "150\n".repeat(100_000))).expect("records");
    std::fs::remove_dir_all(seat.ledger.parent().expect("a folder")).expect("a folder");
    std::fs::create_dir(seat.ledger.parent().expect("a folder")).expect("a folder");
    for file in ["ledger-secret.key", "ledger-head"] {
        std::fs::remove_file(seat.identity.join(file)).expect("a file");
    }
    seat.keeping().init().expect("a ledger");
    seat.memory_mib = Some(1);
    seat.start();
    let entries = lab.begin();
    let query = lab.query(0);
    let answered = lab.ask(1, &query);
    let file = lab.seats[1].key_file(&lab.job.job);
    let local = lab.job.spec_toml.split("[aggregation]").next().expect("a job file").to_owned();
    let other = signed_job(&lab.folder.path().join("alice"), &local);
    lab.seats[1].restart();
    let said = lab.seats[1].say(Body::OpenJob(other.clone()));
    assert!(matches!(said.as_slice(), [Said::JobOpened(_)]), "{said:?}");
    for restarted in [false, true] {
        if restarted {
            lab.seats[1].restart();
            lab.seats[1].say(Body::OpenJob(other.clone()));
        }
        let (code, reason) = lab.open(1).expect_err("no memory");
        assert!(code == "pending" && reason.contains("max_memory_mib of 1"), "{code}: {reason}");
        assert!(file.exists());
        assert_eq!((lab.seats[1].events("mask-key"), lab.seats[1].events("close")), (1, 0));
        assert_eq!(released(&lab.ask(1, &query)), Err(AnswerStatus::UnknownJob.to_wire()));
    }
    let charges = lab.seats[1].charges();
    lab.seats[1].say(Body::CloseJob(v1::CloseJob { job: other.job, reason: "finished".into(), waits: false }));
    assert_eq!(lab.open(1).expect("memory"), entries[1].key);
    assert_eq!(lab.ask(1, &query).releases, answered.releases);
    assert_eq!((lab.seats[1].charges(), lab.seats[1].events("mask-key")), (charges, 1));
    lab.seats[1].verify();
}

/// A crash after any step of an opening leads to one key that is ever sent, or to none.
#[test]
fn a_crash_between_any_two_steps_of_an_opening_leads_to_one_key_or_none() {
    let mut lab = Lab::masked(3, 1);
    let scratch = lab.folder.path().join("states");
    let job = lab.job.job.clone();
    // The job is entered without a key, since the identity cannot sign.
    let (key, aside) = (lab.seats[1].identity.join("key.pem"), lab.seats[1].identity.join("aside"));
    std::fs::rename(&key, &aside).expect("a file");
    assert_eq!(lab.open(1).expect_err("no identity").0, "pending");
    assert_eq!((lab.seats[1].events("mask-key"), lab.seats[1].key_file(&job).exists()), (0, false));
    std::fs::rename(&aside, &key).expect("a file");
    let entered = Backup::of(&mut lab.seats[1], &scratch.join("entered"));
    // Key and event exist, but the reply was lost.
    let first = lab.open(1).expect("a job that opens").expect("a key");
    lab.seats[1].restart();
    assert_eq!(lab.open(1).expect("a job that opens"), Some(first.clone()), "the same bytes, signature and all");
    assert_eq!(lab.seats[1].events("mask-key"), 1);
    // The file exists without its event: the key was never sent, so another one is created.
    std::fs::remove_file(lab.seats[1].identity.join("ledger-head")).expect("a head");
    entered.restore(&mut lab.seats[1]);
    let draft = lab.seats[1].key_file(&format!("{job}.new"));
    std::fs::write(&draft, "half of a key").expect("a file");
    lab.seats[1].start();
    assert!(!draft.exists() && !lab.seats[1].key_file(&job).exists(), "swept");
    let second = lab.open(1).expect("a job that opens").expect("a key");
    assert_ne!(second.public, first.public);
    // The roster is entered, but the reply was lost.
    let mut entries = lab.open_all();
    assert_eq!(entries[1].key, Some(second));
    let accepted = lab.show(1, &entries).expect("a roster");
    lab.seats[1].restart();
    lab.open(1).expect("a job that opens");
    assert_eq!(lab.show(1, &entries).expect("the roster"), accepted);
    assert_eq!((lab.seats[1].events("mask-key"), lab.seats[1].events("roster")), (1, 1));
    // The event exists, but the file is missing, different or damaged: a second key is never created.
    let file = lab.seats[1].key_file(&job);
    let whole = std::fs::read(&file).expect("a key");
    let mut damaged = whole.clone();
    damaged[60] ^= 1;
    for bytes in [None, Some(damaged), Some(Vec::new())] {
        match &bytes {
            None => std::fs::remove_file(&file).expect("a key"),
            Some(bytes) => std::fs::write(&file, bytes).expect("a key"),
        }
        lab.seats[1].restart();
        let (code, reason) = lab.open(1).expect_err("a job whose key is gone");
        assert!(code == "conflict" && reason.contains("no second one is made"), "{reason}");
        assert_eq!(lab.seats[1].events("mask-key"), 1);
    }
    std::fs::write(&file, &whole).expect("a key");
    entries[1].key = lab.open(1).expect("the key is back");
    assert_eq!(lab.show(1, &entries).expect("the roster"), accepted);
    lab.seats[1].verify();
}

/// The end is entered before the key is deleted: a party killed in between deletes the key as it starts. Keys of unknown jobs are
/// deleted, too, but not those of running jobs.
#[test]
fn keys_of_jobs_that_are_not_open_are_deleted_at_start() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let file = lab.seats[1].key_file(&lab.job.job);
    let key = std::fs::read(&file).expect("a key");
    let unknown = file.with_file_name("nobodys-job");
    std::fs::write(&unknown, &key).expect("a file");
    lab.seats[1].restart();
    assert!(file.exists() && !unknown.exists());
    lab.open(1).expect("a job that opens");
    close(&mut lab, 1);
    lab.seats[1].kill();
    std::fs::write(&file, &key).expect("a key");
    lab.seats[1].start();
    assert!(!file.exists());
    check_over(&mut lab, 1, "conflict");
}

/// An owner who restores an old ledger and its head file still has today's keys, which know that the ledger was further.
#[test]
fn a_rolled_back_ledger_answers_nothing_under_todays_keys() {
    let mut lab = Lab::masked(3, 1);
    let entries = lab.begin();
    let query = lab.query(0);
    let old_head = std::fs::read(lab.seats[1].identity.join("ledger-head")).expect("a head");
    let (old, new) = (lab.folder.path().join("old"), lab.folder.path().join("new"));
    let old = Backup::of(&mut lab.seats[1], &old);
    lab.open(1).expect("a job that opens");
    let answered = lab.ask(1, &query);
    lab.seats[1].restart();
    // The key was used with a ledger that holds the answer.
    lab.open(1).expect("a job that opens");
    let new_head = std::fs::read(lab.seats[1].identity.join("ledger-head")).expect("a head");
    let new = Backup::of(&mut lab.seats[1], &new);
    old.restore(&mut lab.seats[1]);
    std::fs::write(lab.seats[1].identity.join("ledger-head"), old_head).expect("a head");
    lab.seats[1].start();
    let (code, reason) = lab.open(1).expect_err("a ledger that was set back");
    assert!(code == "pending" && reason.contains("behind"), "{reason}");
    assert!(released(&lab.ask(1, &query)).is_err());
    assert_eq!(lab.seats[1].charges(), 0);
    assert!(lab.seats[1].key_file(&lab.job.job).exists());
    // The newest ledger, restored, continues.
    new.restore(&mut lab.seats[1]);
    std::fs::write(lab.seats[1].identity.join("ledger-head"), new_head).expect("a head");
    lab.seats[1].start();
    assert_eq!(lab.open(1).expect("a job that opens"), entries[1].key);
    lab.show(1, &entries).expect("the roster");
    assert_eq!(lab.ask(1, &query).releases, answered.releases);
}

/// An unlocked ledger has no keys: they are deleted before the unlock is entered. A party killed in between is still locked.
#[test]
fn a_ledger_is_unlocked_without_keys() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let old = lab.folder.path().join("old");
    let old = Backup::of(&mut lab.seats[1], &old);
    lab.open(1).expect("a job that opens");
    let query = lab.query(0);
    lab.ask(1, &query);
    old.restore(&mut lab.seats[1]);
    lab.seats[1].start();
    let (code, _) = lab.open(1).expect_err("a ledger that is behind");
    assert_eq!(code, "pending");
    lab.seats[1].kill();
    let (keeping, keys) = (lab.seats[1].keeping(), lab.seats[1].keys());
    let file = lab.seats[1].key_file(&lab.job.job);
    // Keys that cannot be deleted prevent the unlock.
    let failed = Ledger::unlock(&keeping, "restored", |_| Err(LedgerError::Missing(PathBuf::new())));
    assert!(failed.is_err() && file.exists() && lab.seats[1].events("unlock") == 0);
    // A kill after their deletion leaves neither an unlock nor a key.
    let killed = Ledger::unlock(&keeping, "restored", |_| {
        keys.delete_all().expect("keys that go");
        Err(LedgerError::Missing(PathBuf::new()))
    });
    assert!(killed.is_err() && !file.exists() && lab.seats[1].events("unlock") == 0);
    let forget = |_: &_| keys.delete_all().map_err(|_| LedgerError::Missing(PathBuf::new()));
    Ledger::unlock(&keeping, "restored", forget).expect("an unlocked ledger");
    lab.seats[1].start();
    check_over(&mut lab, 1, "conflict");
    lab.seats[1].verify();
}

/// A deleted key that is restored after an unlock is useless: the job is over, and nothing is answered twice.
#[test]
fn a_key_restored_after_an_unlock_is_useless() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let old = lab.folder.path().join("old");
    let old = Backup::of(&mut lab.seats[1], &old);
    lab.open(1).expect("a job that opens");
    let query = lab.query(0);
    lab.ask(1, &query);
    let file = lab.seats[1].key_file(&lab.job.job);
    let key = std::fs::read(&file).expect("a key");
    old.restore(&mut lab.seats[1]);
    let (keeping, keys) = (lab.seats[1].keeping(), lab.seats[1].keys());
    let forget = |_: &_| keys.delete_all().map_err(|_| LedgerError::Missing(PathBuf::new()));
    Ledger::unlock(&keeping, "restored", forget).expect("an unlocked ledger");
    std::fs::write(&file, &key).expect("a key");
    lab.seats[1].start();
    let (code, reason) = lab.open(1).expect_err("a key of lost entries");
    assert_eq!(code, "conflict", "{reason}");
    check_over(&mut lab, 1, "conflict");
    assert_eq!(lab.seats[1].charges(), 0);
}

/// Without its head file, a rollback of a ledger cannot be detected: no key is used with it.
#[test]
fn no_key_is_kept_with_a_ledger_without_its_head_file() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let query = lab.query(0);
    lab.ask(1, &query);
    let file = lab.seats[1].key_file(&lab.job.job);
    lab.seats[1].kill();
    std::fs::remove_file(lab.seats[1].identity.join("ledger-head")).expect("a head");
    lab.seats[1].start();
    assert!(!file.exists());
    check_over(&mut lab, 1, "conflict");
}

/// A party started once with an old copy of its ledger keeps the keys of jobs that the copy does not know.
#[test]
fn a_ledger_that_is_behind_deletes_no_key() {
    let mut lab = Lab::masked(3, 1);
    let (before, after) = (lab.folder.path().join("before"), lab.folder.path().join("after"));
    lab.seats[1].kill();
    let before = Backup::of(&mut lab.seats[1], &before);
    let entries = lab.begin();
    let query = lab.query(0);
    let answered = lab.ask(1, &query);
    let head = std::fs::read(lab.seats[1].identity.join("ledger-head")).expect("a head");
    let after = Backup::of(&mut lab.seats[1], &after);
    before.restore(&mut lab.seats[1]);
    lab.seats[1].start();
    assert!(lab.seats[1].key_file(&lab.job.job).exists());
    after.restore(&mut lab.seats[1]);
    std::fs::write(lab.seats[1].identity.join("ledger-head"), head).expect("a head");
    lab.seats[1].start();
    lab.open(1).expect("a job that opens");
    lab.show(1, &entries).expect("the roster");
    assert_eq!(lab.ask(1, &query).releases, answered.releases);
}

/// A coordinator that sets a job aside and reopens it repeatedly without new queries keeps no key alive.
#[test]
fn openings_keep_no_key_alive() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let query = lab.query(0);
    lab.ask(1, &query);
    let file = lab.seats[1].key_file(&lab.job.job);
    let aged = |days: u64| {
        let at = SystemTime::now() - Duration::from_secs(days * 86_400);
        std::fs::File::options().write(true).open(&file).expect("a key").set_modified(at).expect("a time");
    };
    for days in [10, 29] {
        lab.seats[1].kill();
        aged(days);
        lab.seats[1].start();
        lab.open(1).expect("a job that opens");
        let written = file.metadata().and_then(|found| found.modified()).expect("a time");
        assert!(written.elapsed().expect("a time") >= Duration::from_secs(days * 86_400), "{days}");
    }
    // Opened and idle for two more days: it is over.
    lab.seats[1].process.as_mut().expect("a party that runs").pass(Duration::from_secs(2 * 86_400));
    assert!(!file.exists());
    check_over(&mut lab, 1, "conflict");
}

/// A coordinator may never report that a job has ended.
#[test]
fn a_key_unused_for_a_month_is_deleted_and_its_job_closed() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    lab.seats[1].kill();
    let file = lab.seats[1].key_file(&lab.job.job);
    let written = |days: u64| {
        let at = SystemTime::now() - Duration::from_secs(days * 86_400);
        std::fs::File::options().write(true).open(&file).expect("a key").set_modified(at).expect("a time");
    };
    for (days, stays) in [(29, true), (31, false)] {
        written(days);
        lab.seats[1].start();
        // Any frame.
        lab.seats[1].say(Body::AskBudget(v1::AskBudget::default()));
        assert_eq!(file.exists(), stays, "{days} days");
        lab.seats[1].kill();
    }
    assert_eq!(lab.seats[1].events("close"), 1);
    lab.seats[1].start();
    check_over(&mut lab, 1, "conflict");
}

/// A clock that disagrees with the coordinator's closes no job, which would be for ever; it closes those that were not used for a month of
/// this process's own time. Once the clocks agree, the wall clock counts.
#[test]
fn a_wrong_clock_closes_no_secure_job() {
    let day = Duration::from_secs(86_400);
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let query = lab.query(0);
    lab.ask(1, &query);
    let file = lab.seats[1].key_file(&lab.job.job);
    let aged = |days: u32| {
        let at = SystemTime::now() - days * day;
        std::fs::File::options().write(true).open(&file).expect("a key").set_modified(at).expect("a time");
    };
    // By this machine's clock the key is 400 days old; by the coordinator's, or by none, nothing is known.
    for (coordinators, days) in [(Some(SystemTime::now() - 400 * day), 400), (None, 400)] {
        lab.seats[1].kill();
        aged(days);
        lab.seats[1].start();
        let party = lab.seats[1].process.as_mut().expect("a party that runs");
        party.meet_clock(coordinators);
        lab.seats[1].say(Body::AskBudget(v1::AskBudget::default()));
        assert!(file.exists());
        // The job opens and is asked, and no note of its use moves the time of the file.
        lab.open(1).expect("a job that opens");
        lab.ask(1, &query);
        lab.seats[1].process.as_mut().expect("a party that runs").pass(2 * day);
        assert!(file.exists());
        let used = file.metadata().and_then(|found| found.modified()).expect("a time");
        assert!(used.elapsed().expect("a time") > 399 * day);
    }
    // Thirty days of the process itself are no matter of any clock.
    lab.seats[1].kill();
    lab.seats[1].start();
    let party = lab.seats[1].process.as_mut().expect("a party that runs");
    party.meet_clock(None);
    party.pass(29 * day);
    assert!(file.exists());
    // The clocks agree: by them the key is old.
    party.meet_clock(Some(SystemTime::now()));
    party.pass(29 * day);
    assert!(!file.exists());
}

/// The last use counts, not the opening; refused and repeated queries are not uses.
#[test]
fn a_key_that_is_used_stays_however_long_ago_its_job_was_opened() {
    let day = Duration::from_secs(86_400);
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let file = lab.seats[1].key_file(&lab.job.job);
    let pass = |lab: &mut Lab, time| lab.seats[1].process.as_mut().expect("a party that runs").pass(time);
    let query = lab.query(0);
    lab.ask(1, &query);
    // Opened long ago, used now.
    let long_ago = SystemTime::now() - 40 * day;
    std::fs::File::options().write(true).open(&file).expect("a key").set_modified(long_ago).expect("a time");
    pass(&mut lab, day);
    lab.seats[1].restart();
    lab.seats[1].say(Body::AskBudget(v1::AskBudget::default()));
    assert!(file.exists());
    lab.open(1).expect("a job that opens");
    // Time passes for everything except repeated and refused queries.
    let mut gone = Duration::ZERO;
    while file.exists() {
        lab.ask(1, &query);
        let refused = v1::Query { attempt: 1, ..lab.query(1) };
        assert!(released(&lab.ask(1, &refused)).is_err());
        gone += day;
        pass(&mut lab, gone);
    }
    // A day had passed before the job was reopened, which is not a use.
    assert_eq!(gone, 29 * day);
    check_over(&mut lab, 1, "conflict");
}

/// A job that waits for room elsewhere is set aside, and continues later under the same key; so does a job that a coordinator
/// forgets.
#[test]
fn a_job_that_is_set_aside_is_opened_again_under_the_same_key() {
    let mut lab = Lab::masked(3, 1);
    let entries = lab.begin();
    let query = lab.query(0);
    let answered = lab.ask(1, &query);
    for forgotten in [false, true] {
        if forgotten {
            lab.seats[1].say(Body::Welcome(v1::Welcome { protocol: conclave_proto::PROTOCOL, ..v1::Welcome::default() }));
            lab.seats[1].process.as_mut().expect("a party that runs").pass(Duration::from_secs(400));
        } else {
            let job = lab.job.job.clone();
            lab.seats[1].say(Body::CloseJob(v1::CloseJob { job, reason: "it waits for its turn".into(), waits: true }));
        }
        assert_eq!(released(&lab.ask(1, &query)), Err(AnswerStatus::UnknownJob.to_wire()));
        assert_eq!(lab.seats[1].events("close"), 0);
        assert_eq!(lab.open(1).expect("a job that opens"), entries[1].key);
        assert_eq!(lab.ask(1, &query).releases, answered.releases);
    }
}

/// Entered data count: a member's new certificate, key or CA, and the end of the old one, do not end the job.
#[test]
fn renewals_end_nothing() {
    let mut lab = Lab::masked(3, 1);
    // The colluder has a CA of its own, which the party trusts for now.
    let other = super::lab::authority("elsewhere");
    let (colluder, party) = (lab.seats[0].identity.clone(), lab.seats[1].identity.clone());
    identity(&other, &colluder, Role::Party, &name(0), 10);
    let both = format!("{}{}", lab.authority.pem, other.pem);
    std::fs::write(party.join("ca.pem"), &both).expect("CAs");
    let mut pins = conclave_vault::secure::Pins::default();
    for seat in &lab.seats {
        pins.add(&seat.name, seat.fingerprint()).expect("a pin");
    }
    lab.seats[1].settings.pins = pins;
    lab.seats[1].restart();
    let entries = lab.open_all();
    let accepted = lab.show(1, &entries).expect("a roster");
    let query = lab.query(0);
    let answered = lab.ask(1, &query);
    // The party itself gets another key and certificate. The other's CA is no longer trusted, as when it or the certificate has
    // expired.
    let authority = conclave_proto::ca::KeyedPem { pem: lab.authority.pem.clone(), key_pem: lab.authority.key_pem.clone() };
    identity(&authority, &party, Role::Party, &name(1), 10);
    identity(&authority, &colluder, Role::Party, &name(0), 10);
    lab.seats[1].restart();
    assert_eq!(lab.open(1).expect("a job that opens"), entries[1].key, "never newly signed");
    assert_eq!(lab.show(1, &entries).expect("the roster"), accepted);
    assert_eq!(lab.ask(1, &query).releases, answered.releases);
    let next = lab.query(1);
    assert!(released(&lab.ask(1, &next)).is_ok());
    // A coordinator that rebuilds the roster from the members' current keys has a different one.
    let mut renewed = entries.clone();
    renewed[0].key = Some(lab.signed(0, &super::lab::secret(0).public()));
    assert_eq!(lab.show(1, &renewed).expect_err("another roster").0, "conflict");
}

/// Revoked by name or by the serial number shown, within a second of the query; the reply has the usual length, and the analyst
/// receives the reason.
#[test]
fn a_revoked_member_ends_the_job_within_a_second() {
    for by in ["name", "serial"] {
        let mut lab = Lab::masked(3, 1);
        let entries = lab.begin();
        let query = lab.query(1);
        let length = |answer: &v1::Answer| prost::Message::encode_to_vec(answer).len();
        let answered = length(&lab.ask(1, &query));
        let certificate = &entries[2].key.as_ref().expect("a key").certificate;
        let line = match by {
            "name" => name(2),
            _ => conclave_proto::ca::summarise(certificate).expect("a certificate").serial,
        };
        // The party's present stream.
        let (outbox, mut frames) = mpsc::channel(64);
        let opening = v1::CoordinatorFrame { body: Some(Body::OpenJob(lab.job.clone())) };
        lab.seats[1].process.as_mut().expect("a party").take(opening, &outbox);
        std::fs::write(lab.seats[1].revoked(), line).expect("a list");
        std::thread::sleep(Duration::from_millis(1010));
        let query = lab.query(2);
        let refused = lab.ask(1, &query);
        let said = std::iter::from_fn(|| frames.try_recv().ok()).filter_map(|frame| frame.body).last();
        let Some(Said::JobRefused(end)) = said else { panic!("{by}: {said:?}") };
        let words =
            format!("the certificate of party/{}, a member of this masked job, was revoked by the owner of {}", name(2), name(1));
        assert!(end.code == "revoked" && end.reason.ends_with(&words), "{end:?}");
        assert_eq!(released(&refused), Err(AnswerStatus::Policy.to_wire()), "{by}");
        assert_eq!(length(&refused), answered);
        assert_eq!(lab.seats[1].charges(), u64::from(LANES));
        assert_eq!(lab.seats[1].events("close"), 1);
        check_over(&mut lab, 1, "conflict");
    }
}

/// While the list cannot be read, any member may be on it: nothing is answered, and nothing is closed, since a close is final.
#[test]
fn a_list_that_cannot_be_read_pauses_the_job_and_closes_nothing() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let query = lab.query(1);
    let length = |answer: &v1::Answer| prost::Message::encode_to_vec(answer).len();
    let answered = length(&lab.ask(1, &query));
    std::fs::write(lab.seats[1].revoked(), "? no entry\n").expect("a list");
    std::thread::sleep(Duration::from_millis(1010));
    let query = lab.query(2);
    // The next attempt is refused too, however soon it comes.
    for _ in 0..2 {
        let refused = lab.ask(1, &query);
        assert_eq!((released(&refused), length(&refused)), (Err(AnswerStatus::Halted.to_wire()), answered));
    }
    assert_eq!((lab.seats[1].charges(), lab.seats[1].events("close")), (u64::from(LANES), 0));
    assert!(lab.seats[1].key_file(&lab.job.job).exists());
    std::fs::write(lab.seats[1].revoked(), "").expect("a list");
    assert!(released(&lab.ask(1, &query)).is_ok());
    assert_eq!(lab.seats[1].charges(), 2 * u64::from(LANES));
}

/// The list was read before this job was reopened, and has not changed since.
#[test]
fn a_member_revoked_before_a_job_is_opened_again_ends_it_too() {
    let mut lab = Lab::masked(4, 1);
    let entries = lab.begin();
    // A second job without the member that will be revoked.
    let alice = lab.folder.path().join("alice");
    let smaller = lab.job.spec_toml.replace(&format!(", \"{}\"", name(3)), "");
    let beside = signed_job(&alice, &smaller);
    let large = std::mem::replace(&mut lab.job, beside);
    let of_four = lab.seats.pop().expect("a party");
    lab.begin();
    lab.seats[1].restart();
    std::fs::write(lab.seats[1].revoked(), name(3)).expect("a list");
    lab.open(1).expect("a job that opens");
    let query = lab.query(0);
    assert!(released(&lab.ask(1, &query)).is_ok(), "no member of this job is revoked");
    lab.seats.push(of_four);
    lab.job = large;
    assert_eq!(lab.open(1).expect("the party opens it"), entries[1].key);
    std::thread::sleep(Duration::from_millis(1010));
    let query = lab.query(0);
    assert_eq!(released(&lab.ask(1, &query)), Err(AnswerStatus::Policy.to_wire()));
    assert!(!lab.seats[1].key_file(&lab.job.job).exists());
}

/// Kills a party with its disk as it was between the last two transactions: one for a message's charges, the next for its
/// answers. `head` is its head file from before the message.
pub(super) fn kill_before_the_answer(seat: &mut Seat, head: &[u8]) {
    let log = seat.ledger.with_file_name("ledger.sqlite-wal");
    let [database, mut frames] = [&seat.ledger, &log].map(|file| std::fs::read(file).expect("a file"));
    seat.kill();
    // SQLite's file format: a header of 32 bytes with the page size, and per frame one of 24, whose second number marks the end
    // of a transaction.
    let number = |at: usize| u32::from_be_bytes(frames[at..at + 4].try_into().expect("four bytes")) as usize;
    let frame = 24 + number(8);
    let ends: Vec<usize> = (32..frames.len()).step_by(frame).filter(|at| number(at + 4) != 0).map(|at| at + frame).collect();
    frames.truncate(ends[ends.len() - 2]);
    for (file, bytes) in [(&seat.ledger, database), (&log, frames)] {
        std::fs::write(file, bytes).expect("a file");
    }
    drop(std::fs::remove_file(seat.ledger.with_file_name("ledger.sqlite-shm")));
    // The head after the answer was never published.
    std::fs::write(seat.identity.join("ledger-head"), head).expect("a head");
}

/// Killed after the charges of a message: once reopened, the party answers the whole message under its old charge and mask. Also
/// with two such messages in any order.
#[test]
fn messages_that_were_charged_and_not_answered_are_answered() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let mut lost = Vec::new();
    for iteration in 0..2 {
        let query = lab.query(iteration);
        let head = std::fs::read(lab.seats[1].identity.join("ledger-head")).expect("a head");
        lost.push(lab.ask(1, &query));
        let answers = |lab: &Lab| lab.seats[1].read().query_row("SELECT count(*) FROM answers", [], |row| row.get(0));
        assert_eq!(answers(&lab), Ok(LANES));
        kill_before_the_answer(&mut lab.seats[1], &head);
        lab.seats[1].start();
        assert_eq!(answers(&lab), Ok(0));
        lab.open(1).expect("a job that opens");
    }
    assert_eq!(lab.seats[1].charges(), 2 * u64::from(LANES));
    // A part of a message that was charged as a whole is another message.
    let mut part = lab.query(1);
    part.proposals.truncate(3);
    assert_eq!(released(&lab.ask(1, &part)), Err(AnswerStatus::Conflict.to_wire()));
    for iteration in [1, 0] {
        let query = lab.query(iteration);
        let (before, answered) = (&lost[iteration as usize], lab.ask(1, &query));
        assert_eq!(released(&answered).expect("an answer, and no conflict").len(), LANES as usize);
        assert_eq!((&answered.digest, answered.check), (&before.digest, before.check), "under the same masks");
        // The test's noise depends on the round, so equal answers show that the masks are the same in every lane.
        assert_eq!(answered.releases, before.releases);
        assert_eq!(lab.ask(1, &query).releases, answered.releases);
    }
    assert_eq!(lab.seats[1].charges(), 2 * u64::from(LANES), "under the old charges");
    lab.seats[1].verify();
}
