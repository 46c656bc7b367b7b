//! Ledgers of the previous format: one written by its own software, and others created here.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::ledger::entry::Entry;
use crate::ledger::events::unhex;
use crate::ledger::format::{FORMAT, FORMER};
use crate::ledger::head::HEAD_BYTES;
use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{JOB, budget, entry, key, no_sum};

/// Created with the previous version: strict and reserve mode, answers after a restart, a crash with an open block, an unlock,
/// and finally a kill, with a log and unanswered charges. `heads` are checkpoints that it published, `export.jsonl` is its
/// software's export.
const OLD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ledger-format-3");
const FILES: [&str; 4] = ["ledger.sqlite", "ledger.sqlite-wal", "ledger-secret.key", "ledger-head"];

struct Fixture {
    folder: TempDir,
    noise: Noise,
}

impl Fixture {
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), noise: Noise::from_os().unwrap() }
    }

    fn old() -> Self {
        let fixture = Self::empty();
        for name in FILES {
            std::fs::copy(Path::new(OLD).join(name), fixture.at(name)).unwrap();
        }
        fixture
    }

    /// Creates a ledger with this version, and converts it back.
    fn made(rounds: u64) -> Self {
        let mut fixture = Self::empty();
        fixture.settings().init().unwrap();
        let mut ledger = fixture.open();
        for iteration in 0..rounds {
            fixture.answer(&mut ledger, iteration, &[key(0, 1, 1000), key(1, 2, 1000)]);
        }
        drop(ledger);
        to_former(&fixture.at("ledger.sqlite")).unwrap();
        fixture
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn settings(&self) -> LedgerSettings {
        LedgerSettings {
            secret: self.at("ledger-secret.key"),
            head_file: self.at("ledger-head"),
            ..LedgerSettings::beside(&self.at("ledger.sqlite"), "hospital-a", &budget())
        }
    }

    fn open(&self) -> Ledger {
        let mut ledger = Ledger::open_kept(&self.settings()).unwrap();
        let digest = sha2::Digest::finalize(<sha2::Sha256 as sha2::Digest>::new_with_prefix("text")).into();
        ledger.open_job(&JobEntry { spec_digest: &digest, ..entry(JOB, budget()) }).unwrap();
        ledger
    }

    fn answer(&mut self, ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) -> Vec<i64> {
        let ChargeOutcome::Granted(grants) = ledger.charge(JOB, iteration, keys).unwrap() else { panic!("refused") };
        let mut one = |grant| match grant {
            Grant::Answered(recorded) => recorded.integers()[0],
            Grant::Charged(receipt) => ledger.record(vec![release(receipt, no_sum(), &mut self.noise)]).unwrap()[0].integers()[0],
        };
        grants.into_iter().map(&mut one).collect()
    }

    fn format(&self) -> i32 {
        let connection = Connection::open(self.at("ledger.sqlite")).unwrap();
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with("-shm") && !name.ends_with("-wal"))
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_ledger_of_the_previous_version_continues() {
    let mut fixture = Fixture::old();
    assert_eq!(fixture.format(), FORMER);
    let old = std::fs::read_to_string(Path::new(OLD).join("export.jsonl")).unwrap();
    // The last line is the signature's.
    let last: serde_json::Value = serde_json::from_str(old.lines().rev().nth(1).unwrap()).unwrap();

    let mut ledger = fixture.open();
    assert!(ledger.behind().is_none());
    let (seq, spent) = (ledger.state().seq(), ledger.units().0);
    // Every head that it published is still its own, and no other is.
    for line in std::fs::read_to_string(Path::new(OLD).join("heads")).unwrap().lines() {
        let head = unhex::<HEAD_BYTES>(line).unwrap();
        ledger.meet_head(&head).unwrap();
        assert!(ledger.behind().is_none(), "{line}");
        let head = Head::from_bytes(&head).unwrap();
        if head.seq > ledger.state().given_up() {
            assert_eq!(verify::hash_at(&ledger.connection, head.seq).unwrap(), Some(head.hash));
        }
    }
    // Earlier answers are repeated free of charge; charged queries are answered under their charges.
    let released = |chain: u32| -> i64 {
        let sql = "SELECT released FROM releases WHERE iteration = 20 AND chain = ?1";
        Connection::open(fixture.at("ledger.sqlite")).unwrap().query_row(sql, [chain], |row| row.get(0)).unwrap()
    };
    let before = [released(0), released(1)];
    assert_eq!(fixture.answer(&mut ledger, 20, &[key(0, 5, 1 << 22), key(1, 5, 1 << 22)]), before);
    fixture.answer(&mut ledger, 21, &[key(0, 5, 1 << 22), key(1, 6, 1 << 22)]);
    assert_eq!((ledger.units().0, ledger.state().unanswered().len()), (spent, 0));
    ledger.close().unwrap();

    assert_eq!((fixture.format(), last["seq"].as_u64().unwrap() + 2), (FORMAT, seq), "the conversion and the start");
    assert_eq!(fixture.files(), ["ledger-head", "ledger-secret.key", "ledger.sqlite", "ledger.sqlite.lock"]);
    let entries = fixture.open().state().seq();
    assert!(entries > seq);
}

/// Nothing is made of a ledger that is damaged, or that this configuration does not mean.
#[test]
fn a_ledger_that_cannot_be_opened_is_not_converted() {
    for damage in [
        "UPDATE charges SET k_t = k_t + 1 WHERE seq = (SELECT max(seq) FROM charges)",
        "UPDATE charges SET slack = slack + 1 WHERE seq = (SELECT min(seq) FROM charges)",
        "UPDATE answers SET released = released + 1 WHERE charge = (SELECT max(charge) FROM answers)",
        "UPDATE answers SET hash = zeroblob(32) WHERE charge = (SELECT min(charge) FROM answers)",
        "UPDATE totals SET queries = queries + 1",
        "CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM answers; END",
    ] {
        let fixture = Fixture::made(4);
        Connection::open(fixture.at("ledger.sqlite")).unwrap().execute_batch(damage).unwrap();
        let error = Ledger::open_kept(&fixture.settings()).unwrap_err();
        assert!(matches!(error, LedgerError::Corrupt { .. }), "{damage}: {error}");
        assert_eq!(fixture.format(), FORMER, "{damage}");
        assert!(!fixture.at("ledger.sqlite.new").exists());
    }
    let fixture = Fixture::made(2);
    let other = LedgerSettings { party: "hospital-b".into(), ..fixture.settings() };
    assert!(matches!(Ledger::open_kept(&other), Err(LedgerError::Party { .. })));
    let key = std::fs::read(fixture.at("ledger-secret.key")).unwrap();
    std::fs::write(fixture.at("ledger-secret.key"), "00".repeat(32)).unwrap();
    assert!(matches!(Ledger::open_kept(&fixture.settings()), Err(LedgerError::Secret { .. })));
    assert_eq!(fixture.format(), FORMER);
    std::fs::write(fixture.at("ledger-secret.key"), key).unwrap();
    drop(fixture.open());
    assert_eq!(fixture.format(), FORMAT);
}

#[test]
fn a_log_that_a_reader_holds_open_is_not_left_beside_the_new_file() {
    let fixture = Fixture::made(2);
    let reader = Connection::open(fixture.at("ledger.sqlite")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let _: i64 = reader.query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).unwrap();
    let error = Ledger::open_kept(&fixture.settings()).unwrap_err();
    assert!(error.to_string().contains("open in another program"), "{error}");
    drop(reader);
    assert_eq!(fixture.format(), FORMER);
    drop(fixture.open());
    assert_eq!(fixture.format(), FORMAT);
}

/// An interrupted conversion may leave a draft: the conversion starts again.
#[test]
fn a_leftover_draft_is_removed() {
    let fixture = Fixture::made(2);
    std::fs::write(fixture.at("ledger.sqlite.new"), "half of a ledger").unwrap();
    std::fs::write(fixture.at("ledger.sqlite.new-journal"), "and of its journal").unwrap();
    drop(fixture.open());
    assert_eq!(fixture.format(), FORMAT);
    assert!(!fixture.files().iter().any(|name| name.contains(".new")), "{:?}", fixture.files());
}

#[test]
#[cfg(unix)]
fn the_new_file_is_locked_and_as_open_to_others_as_the_old_one() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::made(2);
    let path = fixture.at("ledger.sqlite");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
    let ledger = fixture.open();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o604);
    assert!(std::fs::File::open(&path).unwrap().try_lock().is_err());
    assert!(matches!(Ledger::open_kept(&fixture.settings()), Err(LedgerError::Locked(_))));
    drop(ledger);
    fixture.open();
}

/// Restored from a copy made by its own version: older than its releases, before and after the conversion.
#[test]
fn a_ledger_that_is_behind_stays_behind() {
    let mut fixture = Fixture::made(2);
    let copy = ["ledger.sqlite", "ledger.sqlite-wal"].map(|name| (name, std::fs::read(fixture.at(name)).unwrap()));
    let mut ledger = fixture.open();
    fixture.answer(&mut ledger, 7, &[key(0, 1, 1000)]);
    drop(ledger);
    for name in ["ledger.sqlite-wal", "ledger.sqlite-shm"] {
        let _ = std::fs::remove_file(fixture.at(name));
    }
    for (name, bytes) in copy {
        std::fs::write(fixture.at(name), bytes).unwrap();
    }
    assert!(Ledger::open_kept(&fixture.settings()).unwrap().behind().is_some());
    assert!(Ledger::open_kept(&fixture.settings()).unwrap().behind().is_some());
    Ledger::unlock(&fixture.settings(), "the disk broke", |_| Ok::<_, LedgerError>(())).unwrap();
    fixture.open();
}

/// The hash of every entry, stored or computed, matches the chain.
#[test]
fn every_entrys_hash_is_found_again() {
    let fixture = Fixture::old();
    let ledger = fixture.open();
    let mut hashes = Vec::new();
    verify::read(&ledger.connection, &ledger.path, &verify::Layout::PRESENT, |entry, hash| {
        hashes.push((entry.seq(), *hash, matches!(entry, Entry::Answer(_))));
        Ok(())
    })
    .unwrap();
    assert!(hashes.iter().filter(|(.., answer)| *answer).count() > 20);
    for (seq, hash, _) in &hashes {
        assert_eq!(verify::hash_at(&ledger.connection, *seq).unwrap(), Some(*hash), "entry {seq}");
    }
    let gap = hashes.windows(2).find(|pair| pair[1].0 > pair[0].0 + 1).unwrap();
    assert_eq!(verify::hash_at(&ledger.connection, gap[0].0 + 1).unwrap(), None);
    assert_eq!(verify::hash_at(&ledger.connection, ledger.state.seq() + 1).unwrap(), None);
}
