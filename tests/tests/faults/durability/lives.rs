//! Keys of masks over more lives than one: a party that is killed, starts again, and then the power fails; and a ledger that was set back,
//! unlocked while the power fails.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use conclave_tests::crash::Mode;
use conclave_tests::crash::disk::{Call, Disk, calls};
use conclave_tests::crash::outside::{Outside, keys};
use conclave_tests::crash::session::{End, Party, Step, furnish};
use conclave_tests::crash::shim::{Deed, Plan};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::common::{EXE, files, for_each, lay, recover, room, workshop};
use super::power::hear_call;

/// A masked job's first opening and question.
const FIRST: [Step; 2] = [Step::Open(2), Step::Ask(2, 0)];
/// What is asked of both masked jobs in the end.
const WHOLE: [Step; 5] = [Step::Open(2), Step::Open(3), Step::Ask(2, 0), Step::Ask(2, 1), Step::Ask(3, 0)];

fn inode(folder: &Path) -> u64 {
    folder.metadata().expect("a folder").ino()
}

/// A life with `plan`, and its calls.
fn life(folder: &Path, mode: Mode, plan: Plan<'_>, outside: &mut Outside) -> Vec<Call> {
    let log = folder.with_extension("log");
    let _ = std::fs::remove_file(&log);
    let mut party = Party::start(EXE, folder, mode, Some(&Plan { log: Some(&log), ..plan }));
    party.play(&FIRST, mode, outside);
    party.end();
    calls(&log)
}

/// Killed before a call of its first life, up to its first answer, and started again in the same folder: whatever the first life had not come
/// to sync, the power takes from the second after each word that it says, unless the second has synced it.
fn killed_and_then_cut(workshop: &TempDir, mode: Mode, at: usize) {
    let folder = room(workshop, "party");
    furnish(&folder);
    let (mut disk, inode, mut outside) = (Disk::holding(&folder), inode(&folder), Outside::default());
    let first = life(&folder, mode, Plan { deed: Deed::Kill, at, log: None }, &mut outside);
    first.iter().for_each(|call| disk.take(call, inode));
    let mut heard = outside.clone();
    let second = life(&folder, mode, Plan { deed: Deed::Watch, at: 0, log: None }, &mut outside);
    let mut said = Vec::new();
    for (place, call) in second.iter().enumerate() {
        disk.take(call, inode);
        if !hear_call(call, &mut said, mode, &mut heard) {
            continue;
        }
        let cut = room(workshop, "cut");
        disk.write_synced(&cut);
        let mut outside = heard.clone();
        // It may have been asked, whatever has come of it.
        outside.asks(2, 0);
        outside.check_dead(&cut, mode, false);
        outside.is_held_to(&cut);
        recover(
            &cut,
            mode,
            &WHOLE,
            &mut outside,
            &format!("{mode:?}, killed before call {at}, cut after call {place} of the next life"),
        );
    }
}

fn killed_and_then_cut_at(mode: Mode, stride: usize) {
    let started = Instant::now();
    let alone = workshop();
    let folder = room(&alone, "party");
    let all = life(&folder, mode, Plan { deed: Deed::Watch, at: 0, log: None }, &mut Outside::default());
    // All calls around the making of the keys' folder and of the first key, and the one after the last of them; some of the rest.
    let of_keys = |call: &Call| call.name.contains("mask-keys");
    let (first, last) = (all.iter().position(of_keys).expect("keys"), all.iter().rposition(of_keys).expect("keys"));
    let kills = (0..all.len()).filter(|at| (first..first + 12).contains(at) || at % stride == 0 || *at == last + 1);
    let kills = for_each(kills, |workshop, at| killed_and_then_cut(workshop, mode, at));
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

/// Where a ledger was set back beside newer keys and a newer head.
struct SetBack {
    files: BTreeMap<PathBuf, Vec<u8>>,
    outside: Outside,
    mode: Mode,
}

impl SetBack {
    fn new(mode: Mode) -> Self {
        let (workshop, mut outside) = (workshop(), Outside::default());
        let folder = room(&workshop, "party");
        let play = |script: &[Step], outside: &mut Outside| {
            let mut party = Party::start(EXE, &folder, mode, None);
            assert_eq!(party.play(script, mode, outside), End::Done);
            assert!(party.end().success());
        };
        play(&WHOLE[..3], &mut outside);
        let old = files(&folder);
        play(&WHOLE, &mut outside);
        let mut files = files(&folder);
        // Both are copied into the database as they end.
        files.retain(|name, _| !name.to_string_lossy().starts_with("ledger.sqlite"));
        files.extend(old.into_iter().filter(|(name, _)| name.to_string_lossy().starts_with("ledger.sqlite")));
        assert_eq!(files.keys().filter(|name| name.to_string_lossy().contains("mask-keys/")).count(), 2);
        Self { files, outside, mode }
    }

    fn lay(&self, workshop: &TempDir, name: &str) -> PathBuf {
        let folder = room(workshop, name);
        lay(&self.files, &folder);
        folder
    }

    /// The calls of an unlock that nothing disturbs, and the inode of its folder.
    fn calls(&self, workshop: &TempDir) -> (Disk, Vec<Call>, u64) {
        let folder = self.lay(workshop, "party");
        let (disk, log) = (Disk::holding(&folder), workshop.path().join("log"));
        assert!(Party::unlock(EXE, &folder, self.mode, Some(&Plan { deed: Deed::Watch, at: 0, log: Some(&log) })));
        (disk, calls(&log), inode(&folder))
    }

    /// A ledger whose unlock is on the disk stands beside no key; one whose unlock is not answers nothing until it is. The jobs of before are
    /// over then, and nothing is charged for them any more.
    fn check(&self, folder: &Path, what: &str) -> bool {
        let mut outside = self.outside.clone();
        let before = outside.charges(folder);
        let unlocked = outside.is_unlocked(folder);
        if unlocked {
            assert!(keys(folder).is_empty(), "{what}: unlocked beside {:?}", keys(folder));
        } else {
            let mut party = Party::start(EXE, folder, self.mode, None);
            for job in [2, 3] {
                assert!(party.waits_for_its_owner(job, "unlock"), "{what}: job {job} is opened on a ledger that was set back");
                assert_eq!(party.refuses(job, 0), Some(true), "{what}");
            }
            party.end();
            assert!(Party::unlock(EXE, folder, self.mode, None), "{what}: it can't be unlocked");
        }
        outside.is_held_to(folder);
        let mut party = Party::start(EXE, folder, self.mode, None);
        assert_eq!(party.play(&WHOLE, self.mode, &mut outside), End::Done, "{what}");
        for (job, iteration) in [(2, 0), (2, 1), (3, 0)] {
            assert_eq!(party.refuses(job, iteration), Some(true), "{what}: job {job} is answered again");
        }
        party.end();
        assert_eq!((outside.charges(folder), keys(folder).len()), (before, 0), "{what}");
        unlocked
    }
}

/// Of an unlock at every call: the power fails, or it is killed.
fn unlocked_at_calls(mode: Mode, stride: usize) {
    let (started, set_back) = (Instant::now(), SetBack::new(mode));
    let alone = workshop();
    let (before, calls, inode) = set_back.calls(&alone);
    let (mut disk, mut disks) = (before, Vec::new());
    for call in &calls {
        disk.take(call, inode);
        disks.push(disk.clone());
    }
    let unlocked = std::sync::atomic::AtomicUsize::new(0);
    let ends = for_each((0..3 * calls.len()).step_by(stride), |workshop, number| {
        let (at, how) = (number / 3, number % 3);
        let folder = room(workshop, "party");
        match how {
            0 => disks[at].write_synced(&folder),
            1 => disks[at].write_torn(&folder, &mut ChaCha8Rng::seed_from_u64(at as u64)),
            _ => {
                lay(&set_back.files, &folder);
                Party::unlock(EXE, &folder, mode, Some(&Plan { deed: Deed::Kill, at, log: None }));
            }
        }
        let whole = set_back.check(&folder, &format!("{mode:?}, call {at} ({:?}) of an unlock, {how}", calls[at].kind));
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
