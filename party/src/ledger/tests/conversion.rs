//! Ledgers of the format before: one that its own software wrote, and such as are made here.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::ledger::entry::Entry;
use crate::ledger::events::unhex;
use crate::ledger::format::{FORMAT, FORMER};
use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{JOB, budget, entry, key, no_sum};

/// Made with the version before: strict and reserve mode, answers given after a restart, a crash with an open block, an unlock, and at the
/// end a kill, with a log and unanswered charges. `heads` are heads that it gave away, `export.jsonl` what its software exported.
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
        let museum = Self::empty();
        for name in FILES {
            std::fs::copy(Path::new(OLD).join(name), museum.at(name)).unwrap();
        }
        museum
    }

    /// Made with this version and put back.
    fn made(rounds: u64) -> Self {
        let mut museum = Self::empty();
        museum.keeping().init().unwrap();
        let mut ledger = museum.open();
        for iteration in 0..rounds {
            museum.answer(&mut ledger, iteration, &[key(0, 1, 1000), key(1, 2, 1000)]);
        }
        drop(ledger);
        to_former(&museum.at("ledger.sqlite")).unwrap();
        museum
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn keeping(&self) -> Keeping {
        Keeping {
            secret: self.at("ledger-secret.key"),
            head_file: self.at("ledger-head"),
            ..Keeping::beside(&self.at("ledger.sqlite"), "hospital-a", &budget())
        }
    }

    fn open(&self) -> Ledger {
        let mut ledger = Ledger::open_kept(&self.keeping()).unwrap();
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

    fn exported(&self) -> Vec<String> {
        let mut text = Vec::new();
        export::write(&self.keeping(), &mut text).unwrap();
        String::from_utf8(text).unwrap().lines().skip(1).map(str::to_owned).collect()
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
fn a_ledger_that_the_version_before_wrote_goes_on() {
    let mut museum = Fixture::old();
    assert_eq!(museum.format(), FORMER);
    let old: Vec<String> =
        std::fs::read_to_string(Path::new(OLD).join("export.jsonl")).unwrap().lines().skip(1).map(str::to_owned).collect();
    // The last line is the signature's.
    let old = &old[..old.len() - 1];

    let mut ledger = museum.open();
    assert!(ledger.behind().is_none());
    let (seq, spent) = (ledger.books().seq(), ledger.units().0);
    // Every head that it gave away is still its own, and no other is.
    for line in std::fs::read_to_string(Path::new(OLD).join("heads")).unwrap().lines() {
        let head = unhex::<HEAD_BYTES>(line).unwrap();
        ledger.meet_head(&head).unwrap();
        assert!(ledger.behind().is_none(), "{line}");
        let head = Head::from_bytes(&head).unwrap();
        if head.seq > ledger.books().given_up() {
            assert_eq!(verify::hash_at(&ledger.connection, head.seq).unwrap(), Some(head.hash));
        }
    }
    // What was answered is answered so again, at no charge; what was charged is answered under its charge.
    let released = |chain: u32| -> i64 {
        let sql = "SELECT released FROM releases WHERE iteration = 20 AND chain = ?1";
        Connection::open(museum.at("ledger.sqlite")).unwrap().query_row(sql, [chain], |row| row.get(0)).unwrap()
    };
    let before = [released(0), released(1)];
    assert_eq!(museum.answer(&mut ledger, 20, &[key(0, 5, 1 << 22), key(1, 5, 1 << 22)]), before);
    museum.answer(&mut ledger, 21, &[key(0, 5, 1 << 22), key(1, 6, 1 << 22)]);
    assert_eq!((ledger.units().0, ledger.books().unanswered().len()), (spent, 0));
    ledger.close().unwrap();

    // Entry by entry what it was, and then that it was converted, once.
    let new = museum.exported();
    assert_eq!(new[..old.len()], *old);
    assert!(new[old.len()].contains(r#""kind":"convert""#), "{}", new[old.len()]);
    assert_eq!(new.iter().filter(|line| line.contains(r#""kind":"convert""#)).count(), 1);
    let last: serde_json::Value = serde_json::from_str(old.last().unwrap()).unwrap();
    assert_eq!((museum.format(), last["seq"].as_u64().unwrap() + 2), (FORMAT, seq), "the conversion and the start");
    assert_eq!(museum.files(), ["ledger-head", "ledger-secret.key", "ledger.sqlite", "ledger.sqlite.lock"]);
    let entries = museum.open().books().seq();
    assert_eq!(museum.exported().iter().filter(|line| line.contains("convert")).count(), 1);
    assert!(entries > seq);
}

/// What the version before exported is checked as ever.
#[test]
fn an_export_of_the_version_before_is_read() {
    let file = std::fs::File::open(Path::new(OLD).join("export.jsonl")).unwrap();
    let checked = export::check(std::io::BufReader::new(file)).unwrap();
    assert!(checked.books.answers() > 20 && checked.books.genesis().unwrap().format == FORMER);
}

#[test]
fn until_its_party_starts_it_is_read_by_its_own_version_alone() {
    let museum = Fixture::old();
    let error = report_kept(&museum.keeping()).unwrap_err().to_string();
    assert!(error.contains("format 3") && error.contains("start it once"), "{error}");
    assert!(matches!(inspect(&museum.keeping(), 1.0), Err(LedgerError::Former(_))));
    assert_eq!(museum.format(), FORMER);
    drop(museum.open());
    report_kept(&museum.keeping()).unwrap();
}

/// Nothing is made of a ledger that is damaged, or that this configuration does not mean.
#[test]
fn what_can_t_be_opened_is_not_converted() {
    for damage in [
        "UPDATE charges SET k_t = k_t + 1 WHERE seq = (SELECT max(seq) FROM charges)",
        "UPDATE charges SET slack = slack + 1 WHERE seq = (SELECT min(seq) FROM charges)",
        "UPDATE answers SET released = released + 1 WHERE charge = (SELECT max(charge) FROM answers)",
        "UPDATE answers SET hash = zeroblob(32) WHERE charge = (SELECT min(charge) FROM answers)",
        "UPDATE totals SET queries = queries + 1",
        "CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM answers; END",
    ] {
        let museum = Fixture::made(4);
        Connection::open(museum.at("ledger.sqlite")).unwrap().execute_batch(damage).unwrap();
        let error = Ledger::open_kept(&museum.keeping()).unwrap_err();
        assert!(matches!(error, LedgerError::Corrupt { .. }), "{damage}: {error}");
        assert_eq!(museum.format(), FORMER, "{damage}");
        assert!(!museum.at("ledger.sqlite.new").exists());
    }
    let museum = Fixture::made(2);
    let other = Keeping { party: "hospital-b".into(), ..museum.keeping() };
    assert!(matches!(Ledger::open_kept(&other), Err(LedgerError::Party { .. })));
    let key = std::fs::read(museum.at("ledger-secret.key")).unwrap();
    std::fs::write(museum.at("ledger-secret.key"), "00".repeat(32)).unwrap();
    assert!(matches!(Ledger::open_kept(&museum.keeping()), Err(LedgerError::Secret { .. })));
    assert_eq!(museum.format(), FORMER);
    std::fs::write(museum.at("ledger-secret.key"), key).unwrap();
    drop(museum.open());
    assert_eq!(museum.format(), FORMAT);
}

#[test]
fn a_log_that_a_reader_holds_open_is_not_left_beside_the_new_file() {
    let museum = Fixture::made(2);
    let reader = Connection::open(museum.at("ledger.sqlite")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let _: i64 = reader.query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).unwrap();
    let error = Ledger::open_kept(&museum.keeping()).unwrap_err();
    assert!(error.to_string().contains("open in another program"), "{error}");
    drop(reader);
    assert_eq!(museum.format(), FORMER);
    drop(museum.open());
    assert_eq!(museum.format(), FORMAT);
}

/// What a conversion that was cut short may leave: it is begun again.
#[test]
fn a_draft_that_was_left_is_put_away() {
    let museum = Fixture::made(2);
    std::fs::write(museum.at("ledger.sqlite.new"), "half of a ledger").unwrap();
    std::fs::write(museum.at("ledger.sqlite.new-journal"), "and of its journal").unwrap();
    drop(museum.open());
    assert_eq!(museum.format(), FORMAT);
    assert!(!museum.files().iter().any(|name| name.contains(".new")), "{:?}", museum.files());
}

#[test]
#[cfg(unix)]
fn the_new_file_is_locked_and_as_open_to_others_as_the_old_one() {
    use std::os::unix::fs::PermissionsExt;
    let museum = Fixture::made(2);
    let path = museum.at("ledger.sqlite");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
    let ledger = museum.open();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o604);
    assert!(std::fs::File::open(&path).unwrap().try_lock().is_err());
    assert!(matches!(Ledger::open_kept(&museum.keeping()), Err(LedgerError::Locked(_))));
    drop(ledger);
    museum.open();
}

/// Restored from a copy that its own version made: older than what has left, before and after.
#[test]
fn a_ledger_that_is_behind_stays_behind() {
    let mut museum = Fixture::made(2);
    let copy = ["ledger.sqlite", "ledger.sqlite-wal"].map(|name| (name, std::fs::read(museum.at(name)).unwrap()));
    let mut ledger = museum.open();
    museum.answer(&mut ledger, 7, &[key(0, 1, 1000)]);
    drop(ledger);
    for name in ["ledger.sqlite-wal", "ledger.sqlite-shm"] {
        let _ = std::fs::remove_file(museum.at(name));
    }
    for (name, bytes) in copy {
        std::fs::write(museum.at(name), bytes).unwrap();
    }
    assert!(Ledger::open_kept(&museum.keeping()).unwrap().behind().is_some());
    assert!(Ledger::open_kept(&museum.keeping()).unwrap().behind().is_some());
    Ledger::unlock(&museum.keeping(), "the disk broke").unwrap();
    museum.open();
}

/// The hash of every entry, stored or computed, is the one that the chain has there.
#[test]
fn every_entrys_hash_is_found_again() {
    let museum = Fixture::old();
    let ledger = museum.open();
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
    assert_eq!(verify::hash_at(&ledger.connection, ledger.books.seq() + 1).unwrap(), None);
}
