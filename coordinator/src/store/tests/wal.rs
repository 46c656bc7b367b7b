//! Readers of the store do not make its write-ahead log grow for ever.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::{new_job, settled};
use crate::store::{Store, wal};

const ROUNDS: u64 = 40;

/// Logs rounds of together 20 MiB, in several commits, with a call before each.
fn log_rounds(store: &Store, job: &Arc<str>, from: u64, mut before_each: impl FnMut()) {
    for round in from..from + ROUNDS {
        before_each();
        store.log_round(job, round, round, &vec![vec![7; 32 << 10]; 2]).unwrap();
        settled(store).unwrap();
    }
}

/// Length of the store's log.
fn length(path: &Path) -> u64 {
    path.with_extension("sqlite-wal").metadata().unwrap().len()
}

/// Returns the path of a new store in this folder, the store, and its only job.
fn store_with_job(folder: &Path) -> (PathBuf, Store, Arc<str>) {
    let path = folder.join("c.sqlite");
    let (store, _) = Store::open(&path).unwrap();
    store.insert_job(new_job("j1"));
    settled(&store).unwrap();
    (path, store, "j1".into())
}

fn reader(path: &Path) -> Connection {
    let reader = Connection::open(path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM rounds", [], |row| row.get::<_, i64>(0)).unwrap();
    reader
}

/// At every moment somebody reads, so SQLite never begins the log again by itself; each reader ends soon after the next has begun.
#[test]
fn readers_that_follow_each_other_do_not_lengthen_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store, job) = store_with_job(folder.path());
    let stop = Arc::new(AtomicBool::new(false));
    let reading = std::thread::spawn({
        let (path, stop) = (path.clone(), Arc::clone(&stop));
        move || {
            let mut current = reader(&path);
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                let next = reader(&path);
                drop(std::mem::replace(&mut current, next));
            }
        }
    });
    let mut longest = 0;
    log_rounds(&store, &job, 0, || longest = longest.max(length(&path)));
    log_rounds(&store, &job, ROUNDS, || longest = longest.max(length(&path)));
    stop.store(true, Ordering::Relaxed);
    reading.join().unwrap();
    // 40 MiB were written. One commit may come before an attempt, and another while the last reader ends.
    assert!(longest < wal::LONG + (8 << 20), "{longest} bytes");
}

/// One reader that stays prevents it, as SQLite has to keep what it sees. The log is emptied once it has gone, and all is kept.
#[test]
fn the_log_is_emptied_once_a_reader_that_stays_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store, job) = store_with_job(folder.path());
    let staying = reader(&path);
    log_rounds(&store, &job, 0, || ());
    assert!(length(&path) > wal::LONG);
    drop(staying);
    // The writer pauses for a second after an attempt that a reader has prevented.
    std::thread::sleep(Duration::from_millis(1500));
    store.seen("a", "x 1", 5);
    settled(&store).unwrap();
    store.seen("a", "x 2", 6);
    settled(&store).unwrap();
    assert!(length(&path) < 1 << 20, "{} bytes", length(&path));
    assert_eq!(super::rounds(&store, "j1").len() as u64, ROUNDS);
}
