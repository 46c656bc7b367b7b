//! The life of a job's key: made once, kept over restarts, and gone with the job, whoever ends it and however.

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

/// What is on a party's disk, apart from its keys.
struct Backup(PathBuf);

impl Backup {
    fn of(seat: &mut Seat, folder: &Path) -> Self {
        seat.kill();
        copy(seat.ledger.parent().expect("a folder"), folder);
        seat.start();
        Self(folder.to_owned())
    }

    /// Puts the ledger's folder back, with nothing that is newer.
    fn restore(&self, seat: &mut Seat) {
        seat.kill();
        let folder = seat.ledger.parent().expect("a folder");
        std::fs::remove_dir_all(folder).expect("a folder");
        copy(&self.0, folder);
    }
}

/// An owner who decides from another process.
pub(super) fn decide(seat: &Seat, job: &str, decision: &str) {
    let store = Connection::open(seat.ledger.with_file_name("ledger.sqlite.consent")).expect("decisions");
    let insert = "INSERT INTO decisions (job, time, decision, decider, reason) VALUES (?1, '2030-01-01T00:00:00Z', ?2, 'owner', 'no more')";
    store.execute(insert, (job, decision)).expect("SQL");
}

fn close(lab: &mut Lab, place: usize) {
    let job = lab.job.job.clone();
    lab.seats[place].say(Body::CloseJob(v1::CloseJob { job, reason: "finished".into(), waits: false }));
}

/// The job is over at a party: no key, no answer, no opening, also after a restart.
fn is_over(lab: &mut Lab, place: usize, code: &str) {
    for _ in 0..2 {
        let seat = &lab.seats[place];
        assert!(!seat.key_file(&lab.job.job).exists());
        let charges = seat.charges();
        let (told, reason) = lab.open(place).expect_err("a job that is over");
        assert_eq!(told, code, "{reason}");
        let question = lab.question(0);
        assert!(released(&lab.ask(place, &question)).is_err());
        assert_eq!(lab.seats[place].charges(), charges);
        lab.seats[place].restart();
    }
}

#[test]
fn a_closed_job_is_never_opened_again() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let question = lab.question(0);
    lab.ask(1, &question);
    close(&mut lab, 1);
    assert_eq!(lab.seats[1].events("close"), 1);
    is_over(&mut lab, 1, "conflict");
    lab.seats[1].verify();
}

#[test]
fn an_owner_who_withdraws_ends_it_while_the_job_runs_and_while_the_party_is_down() {
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
        is_over(&mut lab, 1, "policy");
        lab.seats[1].verify();
    }
}

/// Where the party has no room it says so, and deletes nothing; when it has, the job goes on under the same key.
#[test]
fn a_job_that_finds_no_room_keeps_its_key() {
    let mut lab = Lab::masked(3, 1);
    let entries = lab.begin();
    let question = lab.question(0);
    let told = lab.ask(1, &question);
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
    assert_eq!(lab.ask(1, &question).releases, told.releases);
}

/// Memory that other jobs take is no reason to delete anything either: once they have ended, the job goes on under the same key.
#[test]
fn a_job_that_finds_no_memory_keeps_its_key() {
    let mut lab = Lab::masked(3, 1);
    // So many records that a mebibyte holds one job's copy of them, and not two.
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
    let question = lab.question(0);
    let told = lab.ask(1, &question);
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
        assert_eq!(released(&lab.ask(1, &question)), Err(AnswerStatus::UnknownJob.to_wire()));
    }
    let charges = lab.seats[1].charges();
    lab.seats[1].say(Body::CloseJob(v1::CloseJob { job: other.job, reason: "finished".into(), waits: false }));
    assert_eq!(lab.open(1).expect("memory"), entries[1].key);
    assert_eq!(lab.ask(1, &question).releases, told.releases);
    assert_eq!((lab.seats[1].charges(), lab.seats[1].events("mask-key")), (charges, 1));
    lab.seats[1].verify();
}

/// Every step of an opening can be the last: what is on the disk then leads to one key that ever leaves, or to none.
#[test]
fn a_crash_between_any_two_steps_of_an_opening_leads_to_one_key_or_none() {
    let mut lab = Lab::masked(3, 1);
    let scratch = lab.folder.path().join("states");
    let job = lab.job.job.clone();
    // The job is entered, and there is no key: the identity can't sign.
    let (key, aside) = (lab.seats[1].identity.join("key.pem"), lab.seats[1].identity.join("aside"));
    std::fs::rename(&key, &aside).expect("a file");
    assert_eq!(lab.open(1).expect_err("no identity").0, "pending");
    assert_eq!((lab.seats[1].events("mask-key"), lab.seats[1].key_file(&job).exists()), (0, false));
    std::fs::rename(&aside, &key).expect("a file");
    let entered = Backup::of(&mut lab.seats[1], &scratch.join("entered"));
    // Key and event are there, and the word of it was lost.
    let first = lab.open(1).expect("a job that opens").expect("a key");
    lab.seats[1].restart();
    assert_eq!(lab.open(1).expect("a job that opens"), Some(first.clone()), "the same bytes, signature and all");
    assert_eq!(lab.seats[1].events("mask-key"), 1);
    // The file is there, and its event is not: nothing of it has left, and another is made.
    std::fs::remove_file(lab.seats[1].identity.join("ledger-head")).expect("a head");
    entered.restore(&mut lab.seats[1]);
    let draft = lab.seats[1].key_file(&format!("{job}.new"));
    std::fs::write(&draft, "half of a key").expect("a file");
    lab.seats[1].start();
    assert!(!draft.exists() && !lab.seats[1].key_file(&job).exists(), "swept");
    let second = lab.open(1).expect("a job that opens").expect("a key");
    assert_ne!(second.public, first.public);
    // The roster is entered, and the word of it was lost.
    let mut entries = lab.open_all();
    assert_eq!(entries[1].key, Some(second));
    let accepted = lab.show(1, &entries).expect("a roster");
    lab.seats[1].restart();
    lab.open(1).expect("a job that opens");
    assert_eq!(lab.show(1, &entries).expect("the roster"), accepted);
    assert_eq!((lab.seats[1].events("mask-key"), lab.seats[1].events("roster")), (1, 1));
    // The event is there, and the file is not, or is another, or is damaged: never a second key.
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

/// The end is entered, and then the key is deleted: a party that was killed between deletes it as it starts. Keys of jobs that it does not
/// know go, too, and those of jobs that go on do not.
#[test]
fn keys_of_jobs_that_are_not_open_are_swept_at_start() {
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
    is_over(&mut lab, 1, "conflict");
}

/// Whoever restores an old ledger, and the note of its last head with it, still has the keys of today: they know that the ledger went further.
#[test]
fn a_ledger_that_was_set_back_answers_nothing_under_todays_keys() {
    let mut lab = Lab::masked(3, 1);
    let entries = lab.begin();
    let question = lab.question(0);
    let old_head = std::fs::read(lab.seats[1].identity.join("ledger-head")).expect("a head");
    let (old, new) = (lab.folder.path().join("old"), lab.folder.path().join("new"));
    let old = Backup::of(&mut lab.seats[1], &old);
    lab.open(1).expect("a job that opens");
    let told = lab.ask(1, &question);
    lab.seats[1].restart();
    // The key is used with a ledger that holds the answer.
    lab.open(1).expect("a job that opens");
    let new_head = std::fs::read(lab.seats[1].identity.join("ledger-head")).expect("a head");
    let new = Backup::of(&mut lab.seats[1], &new);
    old.restore(&mut lab.seats[1]);
    std::fs::write(lab.seats[1].identity.join("ledger-head"), old_head).expect("a head");
    lab.seats[1].start();
    let (code, reason) = lab.open(1).expect_err("a ledger that was set back");
    assert!(code == "pending" && reason.contains("behind"), "{reason}");
    assert!(released(&lab.ask(1, &question)).is_err());
    assert_eq!(lab.seats[1].charges(), 0);
    assert!(lab.seats[1].key_file(&lab.job.job).exists());
    // The newest one put back goes on.
    new.restore(&mut lab.seats[1]);
    std::fs::write(lab.seats[1].identity.join("ledger-head"), new_head).expect("a head");
    lab.seats[1].start();
    assert_eq!(lab.open(1).expect("a job that opens"), entries[1].key);
    lab.show(1, &entries).expect("the roster");
    assert_eq!(lab.ask(1, &question).releases, told.releases);
}

/// An unlocked ledger stands beside no key: they go before it is entered. Killed between, it is still locked.
#[test]
fn a_ledger_is_unlocked_beside_no_key() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let old = lab.folder.path().join("old");
    let old = Backup::of(&mut lab.seats[1], &old);
    lab.open(1).expect("a job that opens");
    let question = lab.question(0);
    lab.ask(1, &question);
    old.restore(&mut lab.seats[1]);
    lab.seats[1].start();
    let (code, _) = lab.open(1).expect_err("a ledger that is behind");
    assert_eq!(code, "pending");
    lab.seats[1].kill();
    let (keeping, keys) = (lab.seats[1].keeping(), lab.seats[1].keys());
    let file = lab.seats[1].key_file(&lab.job.job);
    // Keys that can't be deleted: no unlock.
    let failed = Ledger::unlock(&keeping, "restored", |_| Err(LedgerError::Missing(PathBuf::new())));
    assert!(failed.is_err() && file.exists() && lab.seats[1].events("unlock") == 0);
    // Killed after they were: no unlock either, and no key.
    let killed = Ledger::unlock(&keeping, "restored", |_| {
        keys.delete_all().expect("keys that go");
        Err(LedgerError::Missing(PathBuf::new()))
    });
    assert!(killed.is_err() && !file.exists() && lab.seats[1].events("unlock") == 0);
    let forget = |_: &_| keys.delete_all().map_err(|_| LedgerError::Missing(PathBuf::new()));
    Ledger::unlock(&keeping, "restored", forget).expect("an unlocked ledger");
    lab.seats[1].start();
    is_over(&mut lab, 1, "conflict");
    lab.seats[1].verify();
}

/// Whoever puts a key back that went before the ledger was unlocked has nothing of it: the job is over, and nothing is answered twice.
#[test]
fn a_key_put_back_after_an_unlock_is_dead() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let old = lab.folder.path().join("old");
    let old = Backup::of(&mut lab.seats[1], &old);
    lab.open(1).expect("a job that opens");
    let question = lab.question(0);
    lab.ask(1, &question);
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
    is_over(&mut lab, 1, "conflict");
    assert_eq!(lab.seats[1].charges(), 0);
}

/// Without the note of its newest head nothing tells whether a ledger was set back: no key is used with it.
#[test]
fn no_key_is_kept_beside_a_ledger_whose_head_is_not_noted() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let question = lab.question(0);
    lab.ask(1, &question);
    let file = lab.seats[1].key_file(&lab.job.job);
    lab.seats[1].kill();
    std::fs::remove_file(lab.seats[1].identity.join("ledger-head")).expect("a head");
    lab.seats[1].start();
    assert!(!file.exists());
    is_over(&mut lab, 1, "conflict");
}

/// Started once beside an old copy of its ledger, a party keeps the keys of jobs that the copy knows nothing of.
#[test]
fn a_ledger_that_is_behind_deletes_no_key() {
    let mut lab = Lab::masked(3, 1);
    let (before, after) = (lab.folder.path().join("before"), lab.folder.path().join("after"));
    lab.seats[1].kill();
    let before = Backup::of(&mut lab.seats[1], &before);
    let entries = lab.begin();
    let question = lab.question(0);
    let told = lab.ask(1, &question);
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
    assert_eq!(lab.ask(1, &question).releases, told.releases);
}

/// A coordinator that sets a job aside and opens it again and again, and asks nothing new, keeps no key alive.
#[test]
fn openings_keep_no_key_alive() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let question = lab.question(0);
    lab.ask(1, &question);
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
    // Opened, and idle for two more days: it is over.
    lab.seats[1].process.as_mut().expect("a party that runs").pass(Duration::from_secs(2 * 86_400));
    assert!(!file.exists());
    is_over(&mut lab, 1, "conflict");
}

/// A coordinator need never say that a job has ended.
#[test]
fn a_key_that_nobody_has_used_for_a_month_is_deleted_and_its_job_closed() {
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
        // Any word at all.
        lab.seats[1].say(Body::AskBudget(v1::AskBudget::default()));
        assert_eq!(file.exists(), stays, "{days} days");
        lab.seats[1].kill();
    }
    assert_eq!(lab.seats[1].events("close"), 1);
    lab.seats[1].start();
    is_over(&mut lab, 1, "conflict");
}

/// What counts is when it was used, not when the job was opened; and being asked for what is refused, or told already, is no use.
#[test]
fn a_key_that_is_used_stays_however_long_ago_its_job_was_opened() {
    let day = Duration::from_secs(86_400);
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let file = lab.seats[1].key_file(&lab.job.job);
    let pass = |lab: &mut Lab, time| lab.seats[1].process.as_mut().expect("a party that runs").pass(time);
    let question = lab.question(0);
    lab.ask(1, &question);
    // Opened long ago, used now.
    let long_ago = SystemTime::now() - 40 * day;
    std::fs::File::options().write(true).open(&file).expect("a key").set_modified(long_ago).expect("a time");
    pass(&mut lab, day);
    lab.seats[1].restart();
    lab.seats[1].say(Body::AskBudget(v1::AskBudget::default()));
    assert!(file.exists());
    lab.open(1).expect("a job that opens");
    // Time goes on for everything but what is asked.
    let mut gone = Duration::ZERO;
    while file.exists() {
        lab.ask(1, &question);
        let refused = v1::Query { attempt: 1, ..lab.question(1) };
        assert!(released(&lab.ask(1, &refused)).is_err());
        gone += day;
        pass(&mut lab, gone);
    }
    // A day had passed before the job was opened again, which is no use.
    assert_eq!(gone, 29 * day);
    is_over(&mut lab, 1, "conflict");
}

/// Whoever waits for room elsewhere is set aside, and goes on under the same key when there is some; so is a job that a coordinator forgets.
#[test]
fn a_job_that_is_set_aside_is_opened_again_under_the_same_key() {
    let mut lab = Lab::masked(3, 1);
    let entries = lab.begin();
    let question = lab.question(0);
    let told = lab.ask(1, &question);
    for forgotten in [false, true] {
        if forgotten {
            lab.seats[1].say(Body::Welcome(v1::Welcome { protocol: conclave_proto::PROTOCOL, ..v1::Welcome::default() }));
            lab.seats[1].process.as_mut().expect("a party that runs").pass(Duration::from_secs(400));
        } else {
            let job = lab.job.job.clone();
            lab.seats[1].say(Body::CloseJob(v1::CloseJob { job, reason: "it waits for its turn".into(), waits: true }));
        }
        assert_eq!(released(&lab.ask(1, &question)), Err(AnswerStatus::UnknownJob.to_wire()));
        assert_eq!(lab.seats[1].events("close"), 0);
        assert_eq!(lab.open(1).expect("a job that opens"), entries[1].key);
        assert_eq!(lab.ask(1, &question).releases, told.releases);
    }
}

/// What is entered is what counts: a member's new certificate, its new key, its new CA and the end of its old one end nothing.
#[test]
fn renewals_end_nothing() {
    let mut lab = Lab::masked(3, 1);
    // The colluder is of a CA of its own, which the party trusts for now.
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
    let question = lab.question(0);
    let told = lab.ask(1, &question);
    // Another key and certificate of the party itself; and of the other's CA nothing is left, as when it or the certificate has run out.
    let authority = conclave_proto::ca::KeyedPem { pem: lab.authority.pem.clone(), key_pem: lab.authority.key_pem.clone() };
    identity(&authority, &party, Role::Party, &name(1), 10);
    identity(&authority, &colluder, Role::Party, &name(0), 10);
    lab.seats[1].restart();
    assert_eq!(lab.open(1).expect("a job that opens"), entries[1].key, "never newly signed");
    assert_eq!(lab.show(1, &entries).expect("the roster"), accepted);
    assert_eq!(lab.ask(1, &question).releases, told.releases);
    let next = lab.question(1);
    assert!(released(&lab.ask(1, &next)).is_ok());
    // A coordinator that makes the roster anew of what members show now has another one.
    let mut renewed = entries.clone();
    renewed[0].key = Some(lab.signed(0, &super::lab::secret(0).public()));
    assert_eq!(lab.show(1, &renewed).expect_err("another roster").0, "conflict");
}

/// By name and by the serial number that it showed, within a second of being asked; and the reply is as long as any.
#[test]
fn a_revoked_member_ends_the_job_within_a_second() {
    for by in ["name", "serial"] {
        let mut lab = Lab::masked(3, 1);
        let entries = lab.begin();
        let question = lab.question(1);
        let length = |answer: &v1::Answer| prost::Message::encode_to_vec(answer).len();
        let told = length(&lab.ask(1, &question));
        let certificate = &entries[2].key.as_ref().expect("a key").certificate;
        let line = match by {
            "name" => name(2),
            _ => conclave_proto::ca::summarise(certificate).expect("a certificate").serial,
        };
        std::fs::write(lab.seats[1].revoked(), line).expect("a list");
        std::thread::sleep(Duration::from_millis(1010));
        let question = lab.question(2);
        let refused = lab.ask(1, &question);
        assert_eq!(released(&refused), Err(AnswerStatus::Policy.to_wire()), "{by}");
        assert_eq!(length(&refused), told);
        assert_eq!(lab.seats[1].charges(), u64::from(LANES));
        assert_eq!(lab.seats[1].events("close"), 1);
        is_over(&mut lab, 1, "conflict");
    }
}

/// While the list can't be read everybody may be on it, and perhaps nobody is: nothing is answered, and nothing is closed, which would be for ever.
#[test]
fn a_list_that_cannot_be_read_pauses_the_job_and_closes_nothing() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let question = lab.question(1);
    let length = |answer: &v1::Answer| prost::Message::encode_to_vec(answer).len();
    let told = length(&lab.ask(1, &question));
    std::fs::write(lab.seats[1].revoked(), "? no entry\n").expect("a list");
    std::thread::sleep(Duration::from_millis(1010));
    let question = lab.question(2);
    // Not by the next one either, however soon it comes.
    for _ in 0..2 {
        let refused = lab.ask(1, &question);
        assert_eq!((released(&refused), length(&refused)), (Err(AnswerStatus::Halted.to_wire()), told));
    }
    assert_eq!((lab.seats[1].charges(), lab.seats[1].events("close")), (u64::from(LANES), 0));
    assert!(lab.seats[1].key_file(&lab.job.job).exists());
    std::fs::write(lab.seats[1].revoked(), "").expect("a list");
    assert!(released(&lab.ask(1, &question)).is_ok());
    assert_eq!(lab.seats[1].charges(), 2 * u64::from(LANES));
}

/// The list had been looked at before this job was opened again, and has not changed since.
#[test]
fn a_member_revoked_before_a_job_is_opened_again_ends_it_too() {
    let mut lab = Lab::masked(4, 1);
    let entries = lab.begin();
    // A job beside it without the member that will be revoked.
    let alice = lab.folder.path().join("alice");
    let smaller = lab.job.spec_toml.replace(&format!(", \"{}\"", name(3)), "");
    let beside = signed_job(&alice, &smaller);
    let large = std::mem::replace(&mut lab.job, beside);
    let of_four = lab.seats.pop().expect("a party");
    lab.begin();
    lab.seats[1].restart();
    std::fs::write(lab.seats[1].revoked(), name(3)).expect("a list");
    lab.open(1).expect("a job that opens");
    let question = lab.question(0);
    assert!(released(&lab.ask(1, &question)).is_ok(), "nobody of this one is revoked");
    lab.seats.push(of_four);
    lab.job = large;
    assert_eq!(lab.open(1).expect("the party opens it"), entries[1].key);
    std::thread::sleep(Duration::from_millis(1010));
    let question = lab.question(0);
    assert_eq!(released(&lab.ask(1, &question)), Err(AnswerStatus::Policy.to_wire()));
    assert!(!lab.seats[1].key_file(&lab.job.job).exists());
}

/// Kills a party whose disk is left as it was between the last two transactions: a message's charges are one, and its answers the next.
/// `head` is the file of its newest head as it was before the message.
pub(super) fn kill_before_the_answer(seat: &mut Seat, head: &[u8]) {
    let log = seat.ledger.with_file_name("ledger.sqlite-wal");
    let [database, mut frames] = [&seat.ledger, &log].map(|file| std::fs::read(file).expect("a file"));
    seat.kill();
    // As SQLite's file format has it: a header of 32 bytes with the page's size, and per frame one of 24 whose second number ends a transaction.
    let number = |at: usize| u32::from_be_bytes(frames[at..at + 4].try_into().expect("four bytes")) as usize;
    let frame = 24 + number(8);
    let ends: Vec<usize> = (32..frames.len()).step_by(frame).filter(|at| number(at + 4) != 0).map(|at| at + frame).collect();
    frames.truncate(ends[ends.len() - 2]);
    for (file, bytes) in [(&seat.ledger, database), (&log, frames)] {
        std::fs::write(file, bytes).expect("a file");
    }
    drop(std::fs::remove_file(seat.ledger.with_file_name("ledger.sqlite-shm")));
    // The head after the answer was never given away.
    std::fs::write(seat.identity.join("ledger-head"), head).expect("a head");
}

/// Killed after the charges of a message: opened again, it is answered whole, under its old charge and mask. With two such messages in any order.
#[test]
fn messages_that_were_charged_and_not_answered_are_answered() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let mut lost = Vec::new();
    for iteration in 0..2 {
        let question = lab.question(iteration);
        let head = std::fs::read(lab.seats[1].identity.join("ledger-head")).expect("a head");
        lost.push(lab.ask(1, &question));
        let answers = |lab: &Lab| lab.seats[1].read().query_row("SELECT count(*) FROM answers", [], |row| row.get(0));
        assert_eq!(answers(&lab), Ok(LANES));
        kill_before_the_answer(&mut lab.seats[1], &head);
        lab.seats[1].start();
        assert_eq!(answers(&lab), Ok(0));
        lab.open(1).expect("a job that opens");
    }
    assert_eq!(lab.seats[1].charges(), 2 * u64::from(LANES));
    // Part of a message that was charged whole is another message.
    let mut part = lab.question(1);
    part.proposals.truncate(3);
    assert_eq!(released(&lab.ask(1, &part)), Err(AnswerStatus::Conflict.to_wire()));
    for iteration in [1, 0] {
        let question = lab.question(iteration);
        let (before, told) = (&lost[iteration as usize], lab.ask(1, &question));
        assert_eq!(released(&told).expect("an answer, and no conflict").len(), LANES as usize);
        assert_eq!((&told.digest, told.check), (&before.digest, before.check), "under the same masks");
        // The test's noise follows from the round, and so shows that the masks are the same in every lane.
        assert_eq!(told.releases, before.releases);
        assert_eq!(lab.ask(1, &question).releases, told.releases);
    }
    assert_eq!(lab.seats[1].charges(), 2 * u64::from(LANES), "under the old charges");
    lab.seats[1].verify();
}
