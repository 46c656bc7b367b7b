use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use conclave_tests::crash::disk::{Call, Disk, calls};
use conclave_tests::crash::observer::Observer;
use conclave_tests::crash::session::{End, MASKED, Party, SAMPLES, SCRIPT, Step, populate};
use conclave_tests::crash::shim::{Fault, Plan};
use conclave_tests::crash::{Mode, RESERVE_FILE, jobs};
use tempfile::TempDir;

pub(crate) const EXE: &str = env!("CARGO_BIN_EXE_conclave-answerer");
/// The script after a killed life: the interrupted queries, an older one, and new ones.
const SECOND: [Step; 6] = [Step::Open(0), Step::Open(1), Step::Ask(0, 3), Step::Ask(0, 0), Step::Ask(1, 1), Step::Ask(0, 4)];
const MODES: [Mode; 2] = [Mode::Strict, Mode::Reserve(6)];

/// Creates a folder, in memory where possible: a killed process behaves the same there, and syncs are free.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.expect("a temporary folder")
}

/// Creates an empty folder for one party.
pub(crate) fn new_folder(scratch: &TempDir, name: &str) -> PathBuf {
    let path = scratch.path().join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder");
    path.canonicalize().expect("a folder")
}

/// Reads all files of a folder and its subfolders by relative name, except shared memory, which has no meaning once the processes
/// are gone.
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

/// Sets a folder's configured delta reserve, in units of 2^-60.
pub(crate) fn configure(folder: &Path, reserve: u64) {
    std::fs::write(folder.join(RESERVE_FILE), reserve.to_string()).expect("a file");
}

/// Writes files into a folder that only their owner can access.
pub(crate) fn write_files(files: &BTreeMap<PathBuf, Vec<u8>>, to: &Path) {
    for (name, bytes) in files {
        let file = to.join(name);
        DirBuilder::new().mode(0o700).recursive(true).create(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, bytes).expect("a file");
    }
}

/// A script in one mode, its calls in an undisturbed run, and the window of calls under test.
pub(crate) struct Case {
    pub(crate) mode: Mode,
    pub(crate) script: Vec<Step>,
    pub(crate) calls: Vec<Call>,
    pub(crate) window: Range<usize>,
    /// Inode of the folder in which the script ran.
    pub(crate) folder: u64,
    /// Contents of the disk before the run.
    pub(crate) disk: Disk,
    /// Script that runs at the end, after recovery.
    pub(crate) whole: &'static [Step],
    /// Files and observer of an earlier life.
    before: Option<(TempDir, Observer)>,
}

impl Case {
    fn new(mode: Mode, script: Vec<Step>, before: Option<(TempDir, Observer)>) -> Self {
        let whole: &[Step] = match &script {
            masked if masked.contains(&MASKED[0]) => &MASKED,
            sampled if sampled.contains(&SAMPLES[0]) => &SAMPLES,
            _ => &SCRIPT,
        };
        let mut case = Self { mode, script, calls: Vec::new(), window: 0..0, folder: 0, disk: Disk::default(), whole, before };
        case.run_undisturbed();
        case.window = 0..case.calls.len();
        case
    }

    /// Runs the script undisturbed. After a first life, compares the log with the resulting files.
    fn run_undisturbed(&mut self) {
        let scratch = scratch();
        let (folder, mut observer) = self.new_folder(&scratch);
        let log = scratch.path().join("log");
        self.disk = Disk::from_folder(&folder);
        let plan = Plan { fault: Fault::Watch, at: 0, log: Some(&log) };
        let mut party = Party::start(EXE, &folder, self.mode, Some(&plan));
        assert_eq!(party.run_script(&self.script, self.mode, &mut observer), End::Done);
        assert!(party.end().success());
        observer.check_ended(&folder, self.mode);
        self.calls = calls(&log);
        self.folder = folder.metadata().expect("a folder").ino();
        self.assert_complete(&folder);
    }

    /// Checks that the log misses no change to the files.
    fn assert_complete(&self, folder: &Path) {
        let mut disk = self.disk.clone();
        self.calls.iter().for_each(|call| disk.take(call, self.folder));
        let rebuilt = folder.with_extension("rebuilt");
        disk.write_all(&rebuilt);
        let (rebuilt, left) = (files(&rebuilt), files(folder));
        assert!(rebuilt.keys().eq(left.keys()), "the log gives {:?} instead of {:?}", rebuilt.keys(), left.keys());
        let other = left.iter().find(|(name, bytes)| rebuilt[*name] != **bytes);
        assert_eq!(other.map(|(name, _)| name), None, "differs from what the log gives");
    }

    /// Creates a folder for one party, with the files of its earlier life, and returns the observer of that life.
    pub(crate) fn new_folder(&self, scratch: &TempDir) -> (PathBuf, Observer) {
        let folder = new_folder(scratch, "party");
        let Some((left, observer)) = &self.before else {
            // The owner's records, like the identity, have long been on the disk.
            populate(&folder);
            if self.script.contains(&SAMPLES[0]) {
                configure(&folder, jobs::reserve());
            }
            return (folder, Observer::default());
        };
        write_files(&files(&left.path().join("party")), &folder);
        (folder, observer.clone())
    }

    /// Returns the observer of the earlier life.
    pub(crate) fn earlier_observer(&self) -> Observer {
        self.before.as_ref().map_or_else(Observer::default, |(_, observer)| observer.clone())
    }

    /// A life after one that was killed in the middle of its script: the log is full, and blocks are open.
    pub(crate) fn second_lives() -> [Self; 2] {
        Self::short().map(|short| short.second(&SECOND))
    }

    fn second(self, script: &[Step]) -> Self {
        let (scratch, observer) = self.killed();
        Self::new(self.mode, script.to_vec(), Some((scratch, observer)))
    }

    /// Runs the script and kills the party two thirds through.
    fn killed(&self) -> (TempDir, Observer) {
        let scratch = scratch();
        let (folder, mut observer) = self.new_folder(&scratch);
        let plan = Plan { fault: Fault::Kill, at: self.calls.len() * 2 / 3, log: None };
        let mut party = Party::start(EXE, &folder, self.mode, Some(&plan));
        party.run_script(&self.script, self.mode, &mut observer);
        party.end();
        (scratch, observer)
    }

    /// A life after a killed one of the previous software version: the ledger is converted at its start. The window ends with the
    /// greeting.
    pub(crate) fn converted() -> [Self; 2] {
        Self::short().map(|short| {
            let (scratch, observer) = short.killed();
            conclave_vault::ledger::to_former(&scratch.path().join("party/ledger.sqlite")).expect("a ledger");
            let mut case = Self::new(short.mode, SECOND.to_vec(), Some((scratch, observer)));
            let greeted = case.calls.iter().position(|call| call.kind == 'o').expect("a greeting");
            case.window = 0..greeted + 1;
            assert!(case.calls[case.window.clone()].iter().any(|call| call.kind == 'r'), "nothing was converted");
            case
        })
    }

    /// The short script, from the creation of the ledger to a clean end.
    pub(crate) fn short() -> [Self; 2] {
        MODES.map(|mode| Self::new(mode, SCRIPT.to_vec(), None))
    }

    /// The script of masked jobs, which also creates, enters and deletes keys and rosters.
    pub(crate) fn masked() -> [Self; 2] {
        MODES.map(|mode| Self::new(mode, MASKED.to_vec(), None))
    }

    /// A life after one that was killed in the middle of that script.
    pub(crate) fn second_masked_lives() -> [Self; 2] {
        Self::masked()
            .map(|masked| masked.second(&[Step::Open(2), Step::Open(3), Step::Ask(2, 3), Step::Ask(2, 0), Step::Ask(3, 1)]))
    }

    /// The script of a job with subsampled releases, which also opens blocks and takes places.
    pub(crate) fn sampled() -> [Self; 2] {
        MODES.map(|mode| Self::new(mode, SAMPLES.to_vec(), None))
    }

    /// A life after one that was killed in the middle of that script.
    pub(crate) fn second_sampled_lives() -> [Self; 2] {
        let asked = [6, 0, 2, 3, 7].map(|round| Step::Ask(4, round));
        let script: Vec<Step> = [Step::Open(4)].into_iter().chain(asked).collect();
        Self::sampled().map(|sampled| sampled.second(&script))
    }

    /// A script long enough that the log is copied into the database while the party answers; the window is around that copy.
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

    /// Returns the call from which the ledger exists with a log; earlier, it holds only its first entry.
    pub(crate) fn creation(&self) -> usize {
        self.calls.iter().rposition(|call| call.kind == 'c' && call.name == "ledger.sqlite-wal").unwrap_or(0)
    }

    /// Returns a readable summary of the calls by kind, and of the window.
    pub(crate) fn summary(&self) -> String {
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

/// Restarts the party, repeats all earlier queries, runs the script, ends the party, and checks everything.
pub(crate) fn recover(folder: &Path, mode: Mode, script: &[Step], observer: &mut Observer, what: &str) {
    let mut steps: Vec<Step> = script.iter().filter(|step| matches!(step, Step::Open(_))).copied().collect();
    steps.extend(observer.rounds().map(|(job, iteration)| Step::Ask(job, iteration)));
    steps.extend(script);
    let mut party = Party::start(EXE, folder, mode, None);
    let end = party.run_script(&steps, mode, observer);
    let stderr = || std::fs::read_to_string(folder.with_extension("stderr")).unwrap_or_default();
    assert_eq!(end, End::Done, "{what}: {}", stderr());
    assert!(party.end().success(), "{what}");
    observer.check_ended(folder, mode);
}

/// Calls `one` for each number, on two threads with a folder each; returns the count.
pub(crate) fn for_each(numbers: impl IntoIterator<Item = usize>, one: impl Fn(&TempDir, usize) + Sync) -> usize {
    let all: Vec<usize> = numbers.into_iter().collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let scratch = scratch();
                while let Some(number) = all.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    one(&scratch, *number);
                }
            });
        }
    });
    all.len()
}
