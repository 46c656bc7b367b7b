//! The owner adds to a ledger's reserve, and dies, or fails, or the power fails, at every call of it: the ledger has the act or it has not, and
//! either way nothing else is changed.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use conclave_tests::crash::disk::{Call, Disk, calls};
use conclave_tests::crash::outside::Outside;
use conclave_tests::crash::session::{Party, SAMPLES, Step, furnish};
use conclave_tests::crash::shim::{Deed, Plan};
use conclave_tests::crash::{ADDED, Mode, jobs};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::common::{EXE, configure, files, for_each, lay, recover, room, workshop};

/// What a life has left to whose reserve the owner adds.
struct Left {
    files: BTreeMap<PathBuf, Vec<u8>>,
    outside: Outside,
    mode: Mode,
    /// What the ledger was made with.
    reserve: u64,
}

/// How an act ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Cut,
    CutTorn,
    Killed,
    Failed,
}

impl Left {
    /// A party that was killed after it had answered, with charge written ahead and a block half taken where it may ask over samples at all.
    fn new(mode: Mode, reserve: u64) -> Self {
        let (workshop, mut outside) = (workshop(), Outside::default());
        let folder = room(&workshop, "party");
        furnish(&folder);
        configure(&folder, reserve);
        let sampled = [Step::Open(jobs::SAMPLED), Step::Ask(jobs::SAMPLED, 0), Step::Ask(jobs::SAMPLED, 1)];
        let asked = sampled.iter().filter(|_| reserve > 0).chain(&[Step::Open(0), Step::Ask(0, 0), Step::Ask(0, 1)]);
        let script: Vec<Step> = asked.copied().collect();
        let mut party = Party::start(EXE, &folder, mode, None);
        party.play(&script, mode, &mut outside);
        party.kill();
        Self { files: files(&folder), outside, mode, reserve }
    }

    fn lay(&self, workshop: &TempDir) -> PathBuf {
        let folder = room(workshop, "party");
        lay(&self.files, &folder);
        folder
    }

    /// The calls of an act that nothing disturbs, what was on the disk before, and the inode of the folder.
    fn calls(&self, workshop: &TempDir) -> (Disk, Vec<Call>, u64) {
        let folder = self.lay(workshop);
        let (disk, log) = (Disk::holding(&folder), workshop.path().join("log"));
        assert!(Party::add_reserve(EXE, &folder, self.mode, Some(&Plan { deed: Deed::Watch, at: 0, log: Some(&log) })));
        assert_eq!(self.outside.reserve(&folder), self.reserve + ADDED);
        (disk, calls(&log), folder.metadata().expect("a folder").ino())
    }

    /// The ledger has the act, or not: then the owner does it once more. What had left is there, the same is charged and no more, and the job
    /// is opened that the act was for. Gives whether it had.
    fn check(&self, folder: &Path, what: &str) -> bool {
        let mut outside = self.outside.clone();
        outside.check_dead(folder, self.mode, false);
        let (found, charged) = (outside.reserve(folder), outside.charges(folder));
        let done = found == self.reserve + ADDED;
        assert!(done || found == self.reserve, "{what}: a reserve of {found}");
        if done {
            // Under the configuration of before it does not start.
            assert!(!Party::start(EXE, folder, self.mode, None).end().success(), "{what}");
        } else {
            if self.reserve == 0 {
                let mut party = Party::start(EXE, folder, self.mode, None);
                assert!(party.waits_for_its_owner(jobs::SAMPLED, "delta_reserve"), "{what}: opened without a reserve");
                party.end();
            }
            assert!(Party::add_reserve(EXE, folder, self.mode, None), "{what}: it can't be done again");
        }
        assert_eq!((outside.reserve(folder), outside.charges(folder)), (self.reserve + ADDED, charged), "{what}");
        configure(folder, self.reserve + ADDED);
        recover(folder, self.mode, &SAMPLES, &mut outside, what);
        assert_eq!(outside.afresh, 0, "{what}: what was written before is there");
        done
    }
}

/// Of an act at every `stride`-th call and end.
fn at_calls(mode: Mode, reserve: u64, stride: usize) {
    let (started, left, alone) = (Instant::now(), Left::new(mode, reserve), workshop());
    let (mut disk, calls, inode) = left.calls(&alone);
    let mut disks = Vec::new();
    for call in &calls {
        disk.take(call, inode);
        disks.push(disk.clone());
    }
    const ENDS: [Ends; 4] = [Ends::Cut, Ends::CutTorn, Ends::Killed, Ends::Failed];
    let done = AtomicUsize::new(0);
    // Each with every end, and the last call with both cuts.
    let numbers = (0..4 * calls.len()).step_by(stride).chain([4 * calls.len() - 4, 4 * calls.len() - 3]);
    let all = for_each(numbers, |workshop, number| {
        let (at, ends) = (number / 4, ENDS[number % 4]);
        let folder = room(workshop, "party");
        let act = |deed| {
            lay(&left.files, &folder);
            Party::add_reserve(EXE, &folder, mode, Some(&Plan { deed, at, log: None }))
        };
        let what = format!("{mode:?}, a reserve of {reserve}, call {at} ({:?} {}), {ends:?}", calls[at].kind, calls[at].name);
        match ends {
            Ends::Cut => disks[at].write_synced(&folder),
            Ends::CutTorn => disks[at].write_torn(&folder, &mut ChaCha8Rng::seed_from_u64(at as u64)),
            Ends::Killed => assert!(!act(Deed::Kill), "{what}"),
            // It may have been done all the same: then it is there.
            Ends::Failed => {
                let said_so = act(Deed::Eio);
                assert!(!said_so || left.outside.reserve(&folder) == reserve + ADDED, "{what}: said to be done");
            }
        }
        let has_it = left.check(&folder, &what);
        // When the owner is told so, it is on the disk.
        assert!(has_it || at + 1 < calls.len() || !matches!(ends, Ends::Cut | Ends::CutTorn), "{what}: it was done");
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

/// Of a ledger without a reserve, and of one that has blocks.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_reserve_act_ends_at_every_call() {
    at_calls(MODES[0], 0, 1);
    at_calls(MODES[1], jobs::reserve(), 1);
}
