use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use conclave_tests::crash::disk::{Call, Disk, calls};
use conclave_tests::crash::outside::Outside;
use conclave_tests::crash::session::{End, MASKED, Party, SAMPLES, SCRIPT, Step, furnish};
use conclave_tests::crash::shim::{Deed, Plan};
use conclave_tests::crash::{Mode, RESERVE_FILE, jobs};
use tempfile::TempDir;

pub(crate) const EXE: &str = env!("CARGO_BIN_EXE_conclave-answerer");
/// After a life that was killed: what it was answering, something older, and more.
const SECOND: [Step; 6] = [Step::Open(0), Step::Open(1), Step::Ask(0, 3), Step::Ask(0, 0), Step::Ask(1, 1), Step::Ask(0, 4)];
const MODES: [Mode; 2] = [Mode::Strict, Mode::Reserve(6)];

/// A folder in memory where there is one: a death of the process is the same there, and a sync costs nothing.
pub(crate) fn workshop() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.expect("a temporary folder")
}

/// A folder for one party, with nothing in it.
pub(crate) fn room(workshop: &TempDir, name: &str) -> PathBuf {
    let path = workshop.path().join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder");
    path.canonicalize().expect("a folder")
}

/// Every file of a folder and of those in it, by its name from there on; but for the memory that processes share, which is rubbish once
/// they are gone.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        let name = PathBuf::from(path.file_name().expect("a name"));
        if path.is_dir() {
            files.extend(self::files(&path).into_iter().map(|(within, bytes)| (name.join(within), bytes)));
        } else if !name.to_string_lossy().ends_with("-shm") {
            files.insert(name, std::fs::read(path).expect("a file"));
        }
    }
    files
}

/// What a folder's owner says in the configuration is set aside of delta; units of 2^-60.
pub(crate) fn configure(folder: &Path, reserve: u64) {
    std::fs::write(folder.join(RESERVE_FILE), reserve.to_string()).expect("a file");
}

/// Makes a folder of files, for nobody else.
pub(crate) fn lay(files: &BTreeMap<PathBuf, Vec<u8>>, to: &Path) {
    for (name, bytes) in files {
        let file = to.join(name);
        DirBuilder::new().mode(0o700).recursive(true).create(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, bytes).expect("a file");
    }
}

/// A script in one mode, the calls that it makes when nothing is done to it, and those of them that are of interest.
pub(crate) struct Case {
    pub(crate) mode: Mode,
    pub(crate) script: Vec<Step>,
    pub(crate) calls: Vec<Call>,
    pub(crate) window: Range<usize>,
    /// Inode of the folder in which it was played.
    pub(crate) folder: u64,
    /// What the disk held before.
    pub(crate) disk: Disk,
    /// What is asked at the end, once the party is well.
    pub(crate) whole: &'static [Step],
    /// What an earlier life has left: the files, and what had come out.
    before: Option<(TempDir, Outside)>,
}

impl Case {
    fn new(mode: Mode, script: Vec<Step>, before: Option<(TempDir, Outside)>) -> Self {
        let whole: &[Step] = match &script {
            masked if masked.contains(&MASKED[0]) => &MASKED,
            sampled if sampled.contains(&SAMPLES[0]) => &SAMPLES,
            _ => &SCRIPT,
        };
        let mut case = Self { mode, script, calls: Vec::new(), window: 0..0, folder: 0, disk: Disk::default(), whole, before };
        case.play_undisturbed();
        case.window = 0..case.calls.len();
        case
    }

    /// The script with nothing done to it. Of a first life, the log is compared with the files that it leaves.
    fn play_undisturbed(&mut self) {
        let workshop = workshop();
        let (folder, mut outside) = self.room(&workshop);
        let log = workshop.path().join("log");
        self.disk = Disk::holding(&folder);
        let plan = Plan { deed: Deed::Watch, at: 0, log: Some(&log) };
        let mut party = Party::start(EXE, &folder, self.mode, Some(&plan));
        assert_eq!(party.play(&self.script, self.mode, &mut outside), End::Done);
        assert!(party.end().success());
        outside.check_ended(&folder, self.mode);
        self.calls = calls(&log);
        self.folder = folder.metadata().expect("a folder").ino();
        self.assert_complete(&folder);
    }

    /// The log has missed nothing that was done to the files.
    fn assert_complete(&self, folder: &Path) {
        let mut disk = self.disk.clone();
        self.calls.iter().for_each(|call| disk.take(call, self.folder));
        let rebuilt = folder.with_extension("rebuilt");
        disk.write_all(&rebuilt);
        let (rebuilt, left) = (files(&rebuilt), files(folder));
        assert!(rebuilt.keys().eq(left.keys()), "the log makes {:?} of {:?}", rebuilt.keys(), left.keys());
        let other = left.iter().find(|(name, bytes)| rebuilt[*name] != **bytes);
        assert_eq!(other.map(|(name, _)| name), None, "is not what the log makes of it");
    }

    /// A folder for one party, with what an earlier life has left, and what came out then.
    pub(crate) fn room(&self, workshop: &TempDir) -> (PathBuf, Outside) {
        let folder = room(workshop, "party");
        let Some((left, outside)) = &self.before else {
            // Like the identity, the records are the owner's, and on the disk for long.
            furnish(&folder);
            if self.script.contains(&SAMPLES[0]) {
                configure(&folder, jobs::reserve());
            }
            return (folder, Outside::default());
        };
        lay(&files(&left.path().join("party")), &folder);
        (folder, outside.clone())
    }

    /// What had come out before.
    pub(crate) fn heard_before(&self) -> Outside {
        self.before.as_ref().map_or_else(Outside::default, |(_, outside)| outside.clone())
    }

    /// A life after one that was killed in the middle of its script: the log is full, blocks are open.
    pub(crate) fn again() -> [Self; 2] {
        Self::short().map(|short| short.second(&SECOND))
    }

    fn second(self, script: &[Step]) -> Self {
        let (workshop, outside) = self.killed();
        Self::new(self.mode, script.to_vec(), Some((workshop, outside)))
    }

    /// Plays the script and kills the party two thirds through.
    fn killed(&self) -> (TempDir, Outside) {
        let workshop = workshop();
        let (folder, mut outside) = self.room(&workshop);
        let plan = Plan { deed: Deed::Kill, at: self.calls.len() * 2 / 3, log: None };
        let mut party = Party::start(EXE, &folder, self.mode, Some(&plan));
        party.play(&self.script, self.mode, &mut outside);
        party.end();
        (workshop, outside)
    }

    /// A life after one whose software was of the version before, and which was killed: the ledger is converted at its start. The calls
    /// until it answers are of interest.
    pub(crate) fn converted() -> [Self; 2] {
        Self::short().map(|short| {
            let (workshop, outside) = short.killed();
            conclave_vault::ledger::to_former(&workshop.path().join("party/ledger.sqlite")).expect("a ledger");
            let mut case = Self::new(short.mode, SECOND.to_vec(), Some((workshop, outside)));
            let greeted = case.calls.iter().position(|call| call.kind == 'o').expect("a greeting");
            case.window = 0..greeted + 1;
            assert!(case.calls[case.window.clone()].iter().any(|call| call.kind == 'r'), "nothing was converted");
            case
        })
    }

    /// The short script, from the making of the ledger to a clean end.
    pub(crate) fn short() -> [Self; 2] {
        MODES.map(|mode| Self::new(mode, SCRIPT.to_vec(), None))
    }

    /// The script of masked jobs: keys and rosters are made, entered and deleted besides.
    pub(crate) fn masked() -> [Self; 2] {
        MODES.map(|mode| Self::new(mode, MASKED.to_vec(), None))
    }

    /// A life after one that was killed in the middle of it.
    pub(crate) fn masked_again() -> [Self; 2] {
        Self::masked()
            .map(|masked| masked.second(&[Step::Open(2), Step::Open(3), Step::Ask(2, 3), Step::Ask(2, 0), Step::Ask(3, 1)]))
    }

    /// The script of a job over samples: blocks are opened and places taken besides.
    pub(crate) fn sampled() -> [Self; 2] {
        MODES.map(|mode| Self::new(mode, SAMPLES.to_vec(), None))
    }

    /// A life after one that was killed in the middle of it.
    pub(crate) fn sampled_again() -> [Self; 2] {
        let asked = [6, 0, 2, 3, 7].map(|round| Step::Ask(4, round));
        let script: Vec<Step> = [Step::Open(4)].into_iter().chain(asked).collect();
        Self::sampled().map(|sampled| sampled.second(&script))
    }

    /// So many messages that the log is copied into the database while the party answers, and the calls around that.
    pub(crate) fn long() -> [Self; 2] {
        MODES.map(|mode| {
            let asked = if mode == Mode::Strict { 110 } else { 170 };
            let script = [Step::Open(0)].into_iter().chain((0..asked).map(|i| Step::Ask(0, i))).collect();
            let mut case = Self::new(mode, script, None);
            let database = case.calls.iter().find(|c| c.kind == 'c' && c.name == "ledger.sqlite.new").expect("a ledger").inode;
            let late = |at: &usize| case.calls[*at].inode == database && *at > case.calls.len() / 4;
            let copied: Vec<usize> = (0..case.calls.len()).filter(late).collect();
            let (first, gap) = (copied[0], copied.windows(2).find(|pair| pair[1] > pair[0] + 4));
            let last = gap.map_or(copied[copied.len() - 1], |pair| pair[0]);
            case.window = first - 8..last + 8;
            case
        })
    }

    /// The call from which on there is a ledger that writes its log; before, it holds nothing but its first entry.
    pub(crate) fn made(&self) -> usize {
        self.calls.iter().rposition(|call| call.kind == 'c' && call.name == "ledger.sqlite-wal").unwrap_or(0)
    }

    /// For people: the calls by kind, and the window.
    pub(crate) fn words(&self) -> String {
        let of = |kind| self.calls[self.window.clone()].iter().filter(|call| call.kind == kind).count();
        format!(
            "{:?}, calls {:?} of {}: {} writes, {} syncs, {} truncations, {} files made, {} renamed, {} removed, {} frames out",
            self.mode,
            self.window,
            self.calls.len(),
            of('w'),
            of('s'),
            of('t'),
            of('c'),
            of('r'),
            of('u'),
            of('o')
        )
    }
}

/// Starts the party again, asks everything that was asked before and then the script, and ends it: all of it must hold.
pub(crate) fn recover(folder: &Path, mode: Mode, script: &[Step], outside: &mut Outside, what: &str) {
    let mut again: Vec<Step> = script.iter().filter(|step| matches!(step, Step::Open(_))).copied().collect();
    again.extend(outside.rounds().map(|(job, iteration)| Step::Ask(job, iteration)));
    again.extend(script);
    let mut party = Party::start(EXE, folder, mode, None);
    let end = party.play(&again, mode, outside);
    let stderr = || std::fs::read_to_string(folder.with_extension("stderr")).unwrap_or_default();
    assert_eq!(end, End::Done, "{what}: {}", stderr());
    assert!(party.end().success(), "{what}");
    outside.check_ended(folder, mode);
}

/// Does `one` for each number, on two threads with a workshop each; gives how many.
pub(crate) fn for_each(numbers: impl IntoIterator<Item = usize>, one: impl Fn(&TempDir, usize) + Sync) -> usize {
    let all: Vec<usize> = numbers.into_iter().collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let workshop = workshop();
                while let Some(number) = all.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    one(&workshop, *number);
                }
            });
        }
    });
    all.len()
}
