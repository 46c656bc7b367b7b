//! The owner's reserve act interrupted at every call, by a kill, a failure or a power cut: the ledger has the whole act or none
//! of it, and nothing else changes.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use conclave_tests::crash::disk::{Call, Disk, calls};
use conclave_tests::crash::observer::Observer;
use conclave_tests::crash::session::{Party, SAMPLES, Step, populate};
use conclave_tests::crash::shim::{Fault, Plan};
use conclave_tests::crash::{ADDED, Mode, jobs};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::common::{EXE, configure, files, for_each, new_folder, recover, scratch, write_files};

/// The files of an earlier life, to whose reserve the owner adds.
struct Crashed {
    files: BTreeMap<PathBuf, Vec<u8>>,
    observer: Observer,
    mode: Mode,
    /// The ledger's initial reserve.
    reserve: u64,
}

/// Outcome of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Cut,
    CutTorn,
    Killed,
    Failed,
}

impl Crashed {
    /// A party killed after some answers, with a block of charges ahead and, where it has a reserve, a partly used block of
    /// places.
    fn new(mode: Mode, reserve: u64) -> Self {
        let (scratch, mut observer) = (scratch(), Observer::default());
        let folder = new_folder(&scratch, "party");
        populate(&folder);
        configure(&folder, reserve);
        let sampled = [Step::Open(jobs::SAMPLED), Step::Ask(jobs::SAMPLED, 0), Step::Ask(jobs::SAMPLED, 1)];
        let asked = sampled.iter().filter(|_| reserve > 0).chain(&[Step::Open(0), Step::Ask(0, 0), Step::Ask(0, 1)]);
        let script: Vec<Step> = asked.copied().collect();
        let mut party = Party::start(EXE, &folder, mode, None);
        party.run_script(&script, mode, &mut observer);
        party.kill();
        Self { files: files(&folder), observer, mode, reserve }
    }

    fn write_files(&self, scratch: &TempDir) -> PathBuf {
        let folder = new_folder(scratch, "party");
        write_files(&self.files, &folder);
        folder
    }

    /// Returns the disk before an undisturbed act, the calls of the act, and the inode of the folder.
    fn calls(&self, scratch: &TempDir) -> (Disk, Vec<Call>, u64) {
        let folder = self.write_files(scratch);
        let (disk, log) = (Disk::from_folder(&folder), scratch.path().join("log"));
        assert!(Party::add_reserve(EXE, &folder, self.mode, Some(&Plan { fault: Fault::Watch, at: 0, log: Some(&log) })));
        assert_eq!(self.observer.reserve(&folder), self.reserve + ADDED);
        (disk, calls(&log), folder.metadata().expect("a folder").ino())
    }

    /// Checks that the ledger has the act or not; in the latter case the owner repeats it. Earlier answers remain, nothing more
    /// is charged, and the job that needs the reserve opens. Returns true if the act was done.
    fn check(&self, folder: &Path, what: &str) -> bool {
        let mut observer = self.observer.clone();
        observer.check_dead(folder, self.mode, false);
        let (found, charged) = (observer.reserve(folder), observer.charges(folder));
        let done = found == self.reserve + ADDED;
        assert!(done || found == self.reserve, "{what}: a reserve of {found}");
        if done {
            // It does not start with the earlier configuration.
            assert!(!Party::start(EXE, folder, self.mode, None).end().success(), "{what}");
        } else {
            if self.reserve == 0 {
                let mut party = Party::start(EXE, folder, self.mode, None);
                assert!(party.defers_to_its_owner(jobs::SAMPLED, "delta_reserve"), "{what}: opened without a reserve");
                party.end();
            }
            assert!(Party::add_reserve(EXE, folder, self.mode, None), "{what}: it cannot be repeated");
        }
        assert_eq!((observer.reserve(folder), observer.charges(folder)), (self.reserve + ADDED, charged), "{what}");
        configure(folder, self.reserve + ADDED);
        recover(folder, self.mode, &SAMPLES, &mut observer, what);
        assert_eq!(observer.reissued, 0, "{what}: everything written earlier remains");
        done
    }
}

/// Interrupts an act at every `stride`-th call and outcome.
fn at_calls(mode: Mode, reserve: u64, stride: usize) {
    let (started, left, alone) = (Instant::now(), Crashed::new(mode, reserve), scratch());
    let (mut disk, calls, inode) = left.calls(&alone);
    let mut disks = Vec::new();
    for call in &calls {
        disk.take(call, inode);
        disks.push(disk.clone());
    }
    const ENDINGS: [Ending; 4] = [Ending::Cut, Ending::CutTorn, Ending::Killed, Ending::Failed];
    let done = AtomicUsize::new(0);
    // Every call with some outcome, and the last call with both power cuts.
    let numbers = (0..4 * calls.len()).step_by(stride).chain([4 * calls.len() - 4, 4 * calls.len() - 3]);
    let all = for_each(numbers, |scratch, number| {
        let (at, ends) = (number / 4, ENDINGS[number % 4]);
        let folder = new_folder(scratch, "party");
        let act = |fault| {
            write_files(&left.files, &folder);
            Party::add_reserve(EXE, &folder, mode, Some(&Plan { fault, at, log: None }))
        };
        let what = format!("{mode:?}, a reserve of {reserve}, call {at} ({:?} {}), {ends:?}", calls[at].kind, calls[at].name);
        match ends {
            Ending::Cut => disks[at].write_synced(&folder),
            Ending::CutTorn => disks[at].write_torn(&folder, &mut ChaCha8Rng::seed_from_u64(at as u64)),
            Ending::Killed => assert!(!act(Fault::Kill), "{what}"),
            // It may have succeeded nevertheless: then the act is present.
            Ending::Failed => {
                let reported = act(Fault::Eio);
                assert!(!reported || left.observer.reserve(&folder) == reserve + ADDED, "{what}: reported as done");
            }
        }
        let has_it = left.check(&folder, &what);
        // Once success is reported, the act is on the disk.
        assert!(has_it || at + 1 < calls.len() || !matches!(ends, Ending::Cut | Ending::CutTorn), "{what}: it was done");
        done.fetch_add(usize::from(has_it), Ordering::Relaxed);
    });
    let (done, seconds) = (done.into_inner(), started.elapsed().as_secs_f64());
    assert!(done > 0 && done < all, "{done} of {all} are done");
    println!(
        "{mode:?}, a reserve of {reserve}: {all} ends of an act of {} calls, {done} of them done; {seconds:.1} s",
        calls.len()
    );
}

const MODES: [Mode; 2] = [Mode::Strict, Mode::Reserve(6)];

#[test]
fn a_reserve_act_ends_at_some_calls() {
    at_calls(MODES[0], 0, 13);
    at_calls(MODES[1], jobs::reserve(), 13);
}

/// A ledger without a reserve, and one with blocks.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_reserve_act_ends_at_every_call() {
    at_calls(MODES[0], 0, 1);
    at_calls(MODES[1], jobs::reserve(), 1);
}
