//! One party's machine: its disk, its process, if one runs, and the frames that this process has received.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use conclave_proto::v1::{CoordinatorFrame, PartyFrame};
use conclave_vault::answer::simulated::SimulatedParty;
use conclave_vault::ledger::Durability;
use tokio::sync::mpsc;

use super::fixture::{Fixture, NAMES};
use super::plan::Death;

pub(crate) struct Node<'f> {
    fixture: &'f Fixture,
    pub(crate) index: usize,
    durability: Durability,
    /// Folder of its ledger; it changes with each kill in the middle of an answer.
    pub(crate) folder: PathBuf,
    lives: u32,
    pub(crate) process: Option<SimulatedParty>,
    /// Index of its current connection.
    pub(crate) link: Option<usize>,
    /// Frames received and not yet handled.
    pub(crate) desk: VecDeque<(CoordinatorFrame, mpsc::Sender<PartyFrame>)>,
    /// Operations since it stopped.
    pub(crate) down: u32,
    /// Time until which it is cut off, virtual milliseconds.
    pub(crate) cut_off: u64,
    /// Steps during which nothing moves, up and down.
    pub(crate) still: [u8; 2],
}

impl<'f> Node<'f> {
    pub(crate) fn new(fixture: &'f Fixture, index: usize, scratch: &Path, durability: Durability) -> Self {
        let folder = scratch.join(NAMES[index]);
        fixture.copy_ledger(index, &folder);
        let mut node = Self {
            fixture,
            index,
            durability,
            folder,
            lives: 0,
            process: None,
            link: None,
            desk: VecDeque::new(),
            down: 0,
            cut_off: 0,
            still: [0; 2],
        };
        node.start();
        node
    }

    pub(crate) fn start(&mut self) {
        if self.process.is_none() {
            self.process = Some(self.fixture.start(&self.folder, self.index, self.durability));
        }
    }

    /// Ends its process; unhandled frames are lost.
    pub(crate) fn end(&mut self, death: Death) {
        self.desk.clear();
        if let Some(process) = self.process.take()
            && death == Death::Stop
        {
            process.stop();
        }
    }

    /// Returns the current files of its ledger.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let read = |name: &str| std::fs::read(self.folder.join(name)).unwrap_or_default();
        Snapshot { log: read("ledger.sqlite-wal"), database: read("ledger.sqlite"), head: read("ledger.sqlite.head") }
    }

    /// Kills it between two moments: the disk is as it was `before`, plus the first `pages` pages written to the ledger's log
    /// since.
    pub(crate) fn kill_between(&mut self, before: &Snapshot, pages: usize) {
        let now = self.snapshot();
        self.lives += 1;
        let folder = self.folder.with_extension(self.lives.to_string());
        std::fs::create_dir_all(&folder).expect("a folder");
        let keys = self.folder.join("mask-keys");
        std::fs::create_dir_all(folder.join("mask-keys")).expect("a folder");
        let files = [&self.folder, &keys].into_iter().filter(|folder| folder.is_dir());
        for entry in files.flat_map(|folder| std::fs::read_dir(folder).expect("a folder")) {
            let entry = entry.expect("a file");
            let beside = entry.path().strip_prefix(&self.folder).expect("a file of the folder").to_owned();
            if entry.path().is_file() && !entry.file_name().to_string_lossy().ends_with("-shm") {
                std::fs::copy(entry.path(), folder.join(beside)).expect("a copy");
            }
        }
        // If the log was copied into the database meanwhile, the party is killed after the answer.
        if now.database == before.database && now.log.starts_with(&before.log) {
            let frame = 24 + page_size(&now.log);
            let kept = (before.log.len() + pages * frame).min(now.log.len());
            std::fs::write(folder.join("ledger.sqlite-wal"), &now.log[..kept]).expect("a log");
            std::fs::write(folder.join("ledger.sqlite.head"), &before.head).expect("a head");
        }
        self.end(Death::Kill);
        std::fs::remove_dir_all(&self.folder).expect("a folder");
        self.folder = folder;
    }
}

/// A party's ledger files at one moment.
pub(crate) struct Snapshot {
    log: Vec<u8>,
    database: Vec<u8>,
    head: Vec<u8>,
}

/// Returns the page size from the header of SQLite's log.
fn page_size(log: &[u8]) -> usize {
    log.get(8..12).and_then(|bytes| bytes.try_into().ok()).map_or(4096, u32::from_be_bytes) as usize
}
