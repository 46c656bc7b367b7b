//! Mask keys over several lives: a party is killed and restarted, and then the power fails; a ledger is rolled back and then
//! unlocked while the power fails.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use conclave_tests::crash::Mode;
use conclave_tests::crash::disk::{Call, Disk, calls};
use conclave_tests::crash::observer::{Observer, keys};
use conclave_tests::crash::session::{End, Party, Step, populate};
use conclave_tests::crash::shim::{Fault, Plan};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::common::{EXE, files, for_each, new_folder, recover, scratch, write_files};
use super::power::record_call;

/// The first opening and query of a masked job.
const FIRST: [Step; 2] = [Step::Open(2), Step::Ask(2, 0)];
/// The final script for both masked jobs.
const WHOLE: [Step; 5] = [Step::Open(2), Step::Open(3), Step::Ask(2, 0), Step::Ask(2, 1), Step::Ask(3, 0)];

fn inode(folder: &Path) -> u64 {
    folder.metadata().expect("a folder").ino()
}

/// Runs a life with `plan`; returns its calls.
fn life(folder: &Path, mode: Mode, plan: Plan<'_>, observer: &mut Observer) -> Vec<Call> {
    let log = folder.with_extension("log");
    let _ = std::fs::remove_file(&log);
    let mut party = Party::start(EXE, folder, mode, Some(&Plan { log: Some(&log), ..plan }));
    party.run_script(&FIRST, mode, observer);
    party.end();
    calls(&log)
}

/// Kills a party before a call of its first life, up to its first answer, and restarts it in the same folder. After each frame of
/// the second life the power fails, which loses everything that neither life had synced.
fn killed_and_then_cut(scratch: &TempDir, mode: Mode, at: usize) {
    let folder = new_folder(scratch, "party");
    populate(&folder);
    let (mut disk, inode, mut observer) = (Disk::from_folder(&folder), inode(&folder), Observer::default());
    let first = life(&folder, mode, Plan { fault: Fault::Kill, at, log: None }, &mut observer);
    first.iter().for_each(|call| disk.take(call, inode));
    let mut heard = observer.clone();
    let second = life(&folder, mode, Plan { fault: Fault::Watch, at: 0, log: None }, &mut observer);
    let mut said = Vec::new();
    for (place, call) in second.iter().enumerate() {
        disk.take(call, inode);
        if !record_call(call, &mut said, mode, &mut heard) {
            continue;
        }
        let cut = new_folder(scratch, "cut");
        disk.write_synced(&cut);
        let mut observer = heard.clone();
        // The query may have been sent, whatever its outcome.
        observer.record_query(2, 0);
        observer.check_dead(&cut, mode, false);
        observer.check_masked_entries(&cut);
        recover(
            &cut,
            mode,
            &WHOLE,
            &mut observer,
            &format!("{mode:?}, killed before call {at}, cut after call {place} of the next life"),
        );
    }
}

fn killed_and_then_cut_at(mode: Mode, stride: usize) {
    let started = Instant::now();
    let alone = scratch();
    let folder = new_folder(&alone, "party");
    let all = life(&folder, mode, Plan { fault: Fault::Watch, at: 0, log: None }, &mut Observer::default());
    // All calls around the creation of the key folder and the first key, the call after the last of them, and some others.
    let of_keys = |call: &Call| call.name.contains("mask-keys");
    let (first, last) = (all.iter().position(of_keys).expect("keys"), all.iter().rposition(of_keys).expect("keys"));
    let kills = (0..all.len()).filter(|at| (first..first + 12).contains(at) || at % stride == 0 || *at == last + 1);
    let kills = for_each(kills, |scratch, at| killed_and_then_cut(scratch, mode, at));
    println!("{mode:?}: {kills} kills among {} calls, then cuts; {:.1} s", all.len(), started.elapsed().as_secs_f64());
}

#[test]
fn a_party_is_killed_and_then_the_power_fails() {
    killed_and_then_cut_at(Mode::Strict, 23);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_party_is_killed_at_every_call_and_then_the_power_fails() {
    [Mode::Strict, Mode::Reserve(6)].into_iter().for_each(|mode| killed_and_then_cut_at(mode, 1));
}

/// A ledger that was rolled back beside newer keys and a newer head.
struct RolledBack {
    files: BTreeMap<PathBuf, Vec<u8>>,
    observer: Observer,
    mode: Mode,
}

impl RolledBack {
    fn new(mode: Mode) -> Self {
        let (scratch, mut observer) = (scratch(), Observer::default());
        let folder = new_folder(&scratch, "party");
        let run_script = |script: &[Step], observer: &mut Observer| {
            let mut party = Party::start(EXE, &folder, mode, None);
            assert_eq!(party.run_script(script, mode, observer), End::Done);
            assert!(party.end().success());
        };
        run_script(&WHOLE[..3], &mut observer);
        let old = files(&folder);
        run_script(&WHOLE, &mut observer);
        let mut files = files(&folder);
        // Both are copied into the database at a clean end.
        files.retain(|name, _| !name.to_string_lossy().starts_with("ledger.sqlite"));
        files.extend(old.into_iter().filter(|(name, _)| name.to_string_lossy().starts_with("ledger.sqlite")));
        assert_eq!(files.keys().filter(|name| name.to_string_lossy().contains("mask-keys/")).count(), 2);
        Self { files, observer, mode }
    }

    fn write_files(&self, scratch: &TempDir, name: &str) -> PathBuf {
        let folder = new_folder(scratch, name);
        write_files(&self.files, &folder);
        folder
    }

    /// Returns the calls of an undisturbed unlock, and the inode of its folder.
    fn calls(&self, scratch: &TempDir) -> (Disk, Vec<Call>, u64) {
        let folder = self.write_files(scratch, "party");
        let (disk, log) = (Disk::from_folder(&folder), scratch.path().join("log"));
        assert!(Party::unlock(EXE, &folder, self.mode, Some(&Plan { fault: Fault::Watch, at: 0, log: Some(&log) })));
        (disk, calls(&log), inode(&folder))
    }

    /// Checks that an unlocked ledger has no keys, and that a locked one answers nothing until it is unlocked. Afterwards the
    /// earlier jobs are over, and nothing more is charged for them. Returns true if the ledger was unlocked.
    fn check(&self, folder: &Path, what: &str) -> bool {
        let mut observer = self.observer.clone();
        let before = observer.charges(folder);
        let unlocked = observer.is_unlocked(folder);
        if unlocked {
            assert!(keys(folder).is_empty(), "{what}: unlocked with the keys {:?}", keys(folder));
        } else {
            let mut party = Party::start(EXE, folder, self.mode, None);
            for job in [2, 3] {
                assert!(party.defers_to_its_owner(job, "unlock"), "{what}: job {job} is opened on a rolled-back ledger");
                assert_eq!(party.refuses(job, 0), Some(true), "{what}");
            }
            party.end();
            assert!(Party::unlock(EXE, folder, self.mode, None), "{what}: it can't be unlocked");
        }
        observer.check_masked_entries(folder);
        let mut party = Party::start(EXE, folder, self.mode, None);
        assert_eq!(party.run_script(&WHOLE, self.mode, &mut observer), End::Done, "{what}");
        for (job, iteration) in [(2, 0), (2, 1), (3, 0)] {
            assert_eq!(party.refuses(job, iteration), Some(true), "{what}: job {job} is answered again");
        }
        party.end();
        assert_eq!((observer.charges(folder), keys(folder).len()), (before, 0), "{what}");
        unlocked
    }
}

/// Interrupts an unlock at every `stride`-th call: the power fails, or the process is killed.
fn unlocked_at_calls(mode: Mode, stride: usize) {
    let (started, rolled_back) = (Instant::now(), RolledBack::new(mode));
    let alone = scratch();
    let (before, calls, inode) = rolled_back.calls(&alone);
    let (mut disk, mut disks) = (before, Vec::new());
    for call in &calls {
        disk.take(call, inode);
        disks.push(disk.clone());
    }
    let unlocked = std::sync::atomic::AtomicUsize::new(0);
    let ends = for_each((0..3 * calls.len()).step_by(stride), |scratch, number| {
        let (at, how) = (number / 3, number % 3);
        let folder = new_folder(scratch, "party");
        match how {
            0 => disks[at].write_synced(&folder),
            1 => disks[at].write_torn(&folder, &mut ChaCha8Rng::seed_from_u64(at as u64)),
            _ => {
                write_files(&rolled_back.files, &folder);
                Party::unlock(EXE, &folder, mode, Some(&Plan { fault: Fault::Kill, at, log: None }));
            }
        }
        let whole = rolled_back.check(&folder, &format!("{mode:?}, call {at} ({:?}) of an unlock, {how}", calls[at].kind));
        unlocked.fetch_add(usize::from(whole), std::sync::atomic::Ordering::Relaxed);
    });
    let (unlocked, seconds) = (unlocked.into_inner(), started.elapsed().as_secs_f64());
    assert!(unlocked > 0 && unlocked < ends, "{unlocked} of {ends} were unlocked");
    println!("{mode:?}: {ends} ends of an unlock of {} calls, {unlocked} of them unlocked; {seconds:.1} s", calls.len());
}

#[test]
fn an_unlock_ends_at_some_calls() {
    unlocked_at_calls(Mode::Strict, 4);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn an_unlock_ends_at_every_call() {
    [Mode::Strict, Mode::Reserve(6)].into_iter().for_each(|mode| unlocked_at_calls(mode, 1));
}
