//! Readers of the ledger do not make its write-ahead log grow for ever.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use crate::ledger::{JobEntry, LONG_LOG, Ledger, LedgerSettings};
use crate::testing::{budget, entry};

const TEXT: usize = 1 << 20;

/// Enters this number of jobs with texts of a mebibyte, and measures the sizes after each.
fn enter(ledger: &mut Ledger, from: usize, jobs: usize, mut after_each: impl FnMut(&Path)) {
    let text = "#".repeat(TEXT);
    for job in from..from + jobs {
        ledger.open_job(&JobEntry { spec_toml: &text, ..entry(&format!("job-{job}"), budget()) }).unwrap();
        ledger.shorten_log().unwrap();
        after_each(ledger.path());
    }
}

fn length(ledger: &Path) -> u64 {
    ledger.with_extension("sqlite-wal").metadata().unwrap().len()
}

fn reader(ledger: &Path) -> Connection {
    let reader = Connection::open(ledger).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM jobs", [], |row| row.get::<_, i64>(0)).unwrap();
    reader
}

fn ledger(folder: &Path) -> (LedgerSettings, Ledger) {
    let settings = LedgerSettings::beside(&folder.join("ledger.sqlite"), "hospital-a", &budget());
    settings.init().unwrap();
    let ledger = Ledger::open_kept(&settings).unwrap();
    (settings, ledger)
}

/// At every moment somebody reads, so SQLite never starts the log again by itself; each reader ends soon after the next has begun.
#[test]
fn readers_that_follow_each_other_do_not_lengthen_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut ledger) = ledger(folder.path());
    let stop = Arc::new(AtomicBool::new(false));
    let reading = std::thread::spawn({
        let (path, stop) = (ledger.path().to_owned(), Arc::clone(&stop));
        move || {
            let mut current = reader(&path);
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                let next = reader(&path);
                drop(std::mem::replace(&mut current, next));
            }
        }
    });
    let (mut longest, jobs) = (0, 2 * (LONG_LOG as usize / TEXT) + 8);
    enter(&mut ledger, 0, jobs, |path| longest = longest.max(length(path)));
    stop.store(true, Ordering::Relaxed);
    reading.join().unwrap();
    assert!(longest < LONG_LOG + (8 << 20), "{longest} bytes");
}

/// One reader that stays prevents it, as SQLite has to keep what it sees. The log is emptied once it has gone, and all is kept.
#[test]
fn the_log_is_emptied_once_a_reader_that_stays_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, mut ledger) = ledger(folder.path());
    let staying = reader(ledger.path());
    let jobs = LONG_LOG as usize / TEXT + 1;
    enter(&mut ledger, 0, jobs, |_| ());
    assert!(length(ledger.path()) > LONG_LOG);
    drop(staying);
    ledger.shorten_log().unwrap();
    assert_eq!(length(ledger.path()), 0);
    // A short log is left as it is.
    enter(&mut ledger, jobs, 1, |_| ());
    assert!(length(ledger.path()) >= TEXT as u64);
    drop(ledger);
    assert_eq!(Ledger::open_kept(&settings).unwrap().state().jobs().len(), jobs + 1);
}
