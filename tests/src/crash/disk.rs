//! What a disk holds after the power fails: a model of files and folders, driven by the shim's log.
//!
//! Bytes of a file, and its length, are durable once the file is synced; a new name, a removal and a renaming are durable once the
//! folder is synced. Between two syncs the disk may keep any part of what was written, in any order, torn at 512 bytes.
//! Disks that acknowledge a sync and lose the data all the same are not modelled: nothing can be had from them.

use std::collections::BTreeMap;
use std::path::Path;

use rand::{Rng, RngExt};

/// One call of the log.
#[derive(Debug, Clone)]
pub struct Call {
    /// `c`, `w`, `t`, `s`, `r`, `u`, `o`; `f` a failed one, `x` one that never came about.
    pub kind: char,
    /// The file; 0 where the call is about a name.
    pub inode: u64,
    offset: usize,
    /// Something was done at it.
    pub marked: bool,
    /// The file's name, of a new file or a removed one; both of a renaming.
    pub name: String,
    /// Bytes written.
    pub data: Vec<u8>,
}

/// Reads the log of one process.
pub fn calls(log: &Path) -> Vec<Call> {
    let bytes = std::fs::read(log).unwrap_or_default();
    let (mut at, mut calls) = (0, Vec::new());
    while at < bytes.len() {
        let end = at + bytes[at..].iter().position(|b| *b == b'\n').expect("a line");
        let line = std::str::from_utf8(&bytes[at..end]).expect("text");
        let mut words = line.splitn(6, ' ');
        let mut word = || words.next().expect("a word");
        let kind = word().chars().next().expect("a kind");
        let inode = word().parse().expect("an inode");
        let offset = word().parse().expect("an offset");
        let length: usize = word().parse().expect("a length");
        let (marked, name) = (word() == "!", word().trim_end().to_owned());
        at = end + 1;
        let mut data = Vec::new();
        if matches!(kind, 'w' | 'o') {
            data = bytes[at..at + length].to_vec();
            at += length + 1;
        }
        calls.push(Call { kind, inode, offset, marked, name, data });
    }
    calls
}

#[derive(Debug, Clone)]
enum Change {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Bytes(offset, bytes) => {
                let end = offset + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*offset..end].copy_from_slice(bytes);
            }
            Self::Length(length) => file.resize(*length, 0),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct File {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

/// Name to inode; `None` where it was removed.
type Naming = (String, Option<u64>);

/// A folder on a disk.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    files: BTreeMap<u64, File>,
    names: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
    pending: Vec<Vec<Naming>>,
}

impl Disk {
    /// What lies in a folder, all of it durable.
    pub fn holding(folder: &Path) -> Self {
        let mut disk = Self::default();
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("a file");
            // What a folder within holds is not followed.
            if entry.file_type().expect("a file").is_dir() {
                continue;
            }
            let inode = std::os::unix::fs::MetadataExt::ino(&entry.metadata().expect("a file"));
            let durable = std::fs::read(entry.path()).expect("a file");
            disk.files.insert(inode, File { durable, pending: Vec::new() });
            disk.durable.insert(entry.file_name().into_string().expect("a name"), inode);
        }
        disk.names = disk.durable.clone();
        disk
    }

    /// The next call.
    pub fn take(&mut self, call: &Call, folder_inode: u64) {
        let name = |inode| (call.name.clone(), inode);
        match call.kind {
            'c' => {
                self.files.insert(call.inode, File::default());
                self.rename(vec![name(Some(call.inode))]);
            }
            'w' => self.change(call, Change::Bytes(call.offset, call.data.clone())),
            't' => self.change(call, Change::Length(call.offset)),
            's' if call.inode == folder_inode => {
                self.durable = self.names.clone();
                self.pending.clear();
            }
            's' => {
                let file = self.files.entry(call.inode).or_default();
                for change in std::mem::take(&mut file.pending) {
                    change.apply(&mut file.durable);
                }
            }
            'u' => self.rename(vec![name(None)]),
            'r' => {
                let (from, to) = call.name.split_once(' ').expect("two names");
                let inode = self.names.get(from).copied();
                self.rename(vec![(from.to_owned(), None), (to.to_owned(), inode)]);
            }
            _ => {}
        }
    }

    fn change(&mut self, call: &Call, change: Change) {
        self.files.entry(call.inode).or_default().pending.push(change);
    }

    fn rename(&mut self, change: Vec<Naming>) {
        apply(&mut self.names, &change);
        self.pending.push(change);
    }

    /// Writes what is certainly on the disk.
    pub fn write_synced(&self, to: &Path) {
        write(to, &self.durable, |inode| self.files[&inode].durable.clone());
    }

    /// Writes everything, as the living process sees it.
    pub fn write_all(&self, to: &Path) {
        write(to, &self.names, |inode| {
            let file = &self.files[&inode];
            let mut bytes = file.durable.clone();
            file.pending.iter().for_each(|change| change.apply(&mut bytes));
            bytes
        });
    }

    /// Writes what is certainly on the disk and of the rest any part: names in their order up to some moment, of a file's bytes
    /// any sectors.
    pub fn write_torn(&self, to: &Path, random: &mut impl Rng) {
        let mut names = self.durable.clone();
        let kept = random.random_range(0..=self.pending.len());
        self.pending[..kept].iter().for_each(|change| apply(&mut names, change));
        let mut parts: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for inode in names.values() {
            let file = &self.files[inode];
            let mut bytes = file.durable.clone();
            for change in &file.pending {
                tear(change, random).iter().for_each(|part| part.apply(&mut bytes));
            }
            parts.insert(*inode, bytes);
        }
        write(to, &names, |inode| parts[&inode].clone());
    }
}

/// The sectors of a change that reach the disk.
fn tear(change: &Change, random: &mut impl Rng) -> Vec<Change> {
    match change {
        Change::Bytes(offset, bytes) => {
            let (mut at, mut parts) = (0, Vec::new());
            // As often as not it is whole, or not there at all.
            let share = [0.0, 0.5, 1.0, 1.0][random.random_range(0..4)];
            while at < bytes.len() {
                let end = bytes.len().min((offset + at) / 512 * 512 + 512 - offset);
                if random.random_bool(share) {
                    parts.push(Change::Bytes(offset + at, bytes[at..end].to_vec()));
                }
                at = end;
            }
            parts
        }
        Change::Length(_) if random.random_bool(0.5) => vec![change.clone()],
        Change::Length(_) => Vec::new(),
    }
}

fn apply(names: &mut BTreeMap<String, u64>, change: &[Naming]) {
    for (name, inode) in change {
        match inode {
            Some(inode) => drop(names.insert(name.clone(), *inode)),
            None => drop(names.remove(name)),
        }
    }
}

fn write(to: &Path, names: &BTreeMap<String, u64>, bytes: impl Fn(u64) -> Vec<u8>) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("a folder");
    // The shared memory of a process that is gone is rubbish.
    for (name, inode) in names.iter().filter(|(name, _)| !name.ends_with("-shm")) {
        let file = to.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, bytes(*inode)).expect("a file");
    }
}
