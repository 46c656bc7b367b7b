//! Contents of a disk after a power failure: a model of files and folders, driven by the shim's log.
//!
//! A file's bytes and length are durable once the file is synced. A new name, a removal and a renaming are durable once the
//! folder that holds the name is synced. A folder is a name in another folder: without that name all its contents are lost,
//! synced or not. Between two syncs the disk may keep any part of the writes, in any order, torn at 512 bytes.
//!
//! Disks that acknowledge a sync and lose the data are not modelled: no guarantee is possible on them.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rand::{Rng, RngExt};

/// One call in the log.
#[derive(Debug, Clone)]
pub struct Call {
    /// `c`, `d`, `w`, `t`, `s`, `r`, `u` or `o` as in the shim; `f` for a failed call, `x` for one prevented by a kill.
    pub kind: char,
    /// Inode of the file or folder; 0 where the call concerns a name.
    pub inode: u64,
    offset: usize,
    /// True for the call at which the fault was injected.
    pub marked: bool,
    /// Name of a new or removed file or folder; both names of a renaming.
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

/// A file or folder, independent of inode numbers, which the system reuses.
type Id = usize;
/// A name and its file or folder; `None` for a removal.
type Naming = (String, Option<Id>);

#[derive(Debug, Clone, Default)]
struct Folder {
    names: BTreeMap<String, Id>,
    durable: BTreeMap<String, Id>,
    pending: Vec<Vec<Naming>>,
}

#[derive(Debug, Clone)]
enum Node {
    File(File),
    Folder(Folder),
}

/// The watched folder.
const ROOT: Id = 0;

/// A folder on a disk, with its subfolders.
#[derive(Debug, Clone)]
pub struct Disk {
    nodes: Vec<Node>,
    by_inode: BTreeMap<u64, Id>,
}

impl Default for Disk {
    fn default() -> Self {
        Self { nodes: vec![Node::Folder(Folder::default())], by_inode: BTreeMap::new() }
    }
}

impl Disk {
    /// Reads a folder's contents, all of them durable.
    pub fn from_folder(folder: &Path) -> Self {
        let mut disk = Self::default();
        disk.load(ROOT, folder);
        disk
    }

    fn load(&mut self, id: Id, folder: &Path) {
        let mut names = BTreeMap::new();
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("a file");
            let inode = std::os::unix::fs::MetadataExt::ino(&entry.metadata().expect("a file"));
            let within = if entry.file_type().expect("a file").is_dir() {
                let within = self.add(inode, Node::Folder(Folder::default()));
                self.load(within, &entry.path());
                within
            } else {
                let durable = std::fs::read(entry.path()).expect("a file");
                self.add(inode, Node::File(File { durable, pending: Vec::new() }))
            };
            names.insert(entry.file_name().into_string().expect("a name"), within);
        }
        self.nodes[id] = Node::Folder(Folder { durable: names.clone(), names, pending: Vec::new() });
    }

    fn add(&mut self, inode: u64, node: Node) -> Id {
        self.nodes.push(node);
        self.by_inode.insert(inode, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// Applies the next call; `folder_inode` is the inode of the watched folder.
    pub fn take(&mut self, call: &Call, folder_inode: u64) {
        match call.kind {
            'c' | 'd' => {
                let node = if call.kind == 'c' { Node::File(File::default()) } else { Node::Folder(Folder::default()) };
                let id = self.add(call.inode, node);
                self.name(vec![(call.name.clone(), Some(id))]);
            }
            'w' => self.change(call, Change::Bytes(call.offset, call.data.clone())),
            't' => self.change(call, Change::Length(call.offset)),
            's' => self.sync(if call.inode == folder_inode { ROOT } else { self.by_inode[&call.inode] }),
            'u' => self.name(vec![(call.name.clone(), None)]),
            'r' => {
                let (from, to) = call.name.split_once(' ').expect("two names");
                let (folder, name) = self.place(from);
                let id = self.folder(folder).names.get(name).copied();
                self.name(vec![(from.to_owned(), None), (to.to_owned(), id)]);
            }
            _ => {}
        }
    }

    fn sync(&mut self, id: Id) {
        match &mut self.nodes[id] {
            Node::Folder(folder) => {
                folder.durable = folder.names.clone();
                folder.pending.clear();
            }
            Node::File(file) => std::mem::take(&mut file.pending).iter().for_each(|change| change.apply(&mut file.durable)),
        }
    }

    fn change(&mut self, call: &Call, change: Change) {
        let Node::File(file) = &mut self.nodes[self.by_inode[&call.inode]] else { panic!("a folder is written to: {call:?}") };
        file.pending.push(change);
    }

    fn folder(&self, id: Id) -> &Folder {
        let Node::Folder(folder) = &self.nodes[id] else { panic!("a file where a folder is wanted") };
        folder
    }

    /// Finds the folder of a path relative to the watched folder, and the name within it.
    fn place<'a>(&self, path: &'a str) -> (Id, &'a str) {
        let mut parts: Vec<&str> = path.split('/').collect();
        let name = parts.pop().expect("a name");
        (parts.into_iter().fold(ROOT, |folder, part| self.folder(folder).names[part]), name)
    }

    /// Changes names in one folder, atomically.
    fn name(&mut self, change: Vec<Naming>) {
        let folders: Vec<Id> = change.iter().map(|(path, _)| self.place(path).0).collect();
        assert!(folders.iter().all(|folder| *folder == folders[0]), "a renaming from folder to folder is not modelled");
        let change: Vec<Naming> = change.iter().map(|(path, id)| (self.place(path).1.to_owned(), *id)).collect();
        let Node::Folder(folder) = &mut self.nodes[folders[0]] else { panic!("a file where a folder is wanted") };
        apply(&mut folder.names, &change);
        folder.pending.push(change);
    }

    /// Writes only what is certainly on the disk.
    pub fn write_synced(&self, to: &Path) {
        self.write(to, &mut |folder| folder.durable.clone(), &mut |file| file.durable.clone());
    }

    /// Writes everything, as the running process sees it.
    pub fn write_all(&self, to: &Path) {
        self.write(to, &mut |folder| folder.names.clone(), &mut |file| {
            let mut bytes = file.durable.clone();
            file.pending.iter().for_each(|change| change.apply(&mut bytes));
            bytes
        });
    }

    /// Writes what is certainly on the disk and a random part of the rest: a prefix of each folder's name changes, in their
    /// order, and any sectors of each file's pending bytes.
    pub fn write_torn(&self, to: &Path, random: &mut impl Rng) {
        let random = std::cell::RefCell::new(random);
        let names = &mut |folder: &Folder| {
            let kept = random.borrow_mut().random_range(0..=folder.pending.len());
            let mut names = folder.durable.clone();
            folder.pending[..kept].iter().for_each(|change| apply(&mut names, change));
            names
        };
        let bytes = &mut |file: &File| {
            let mut bytes = file.durable.clone();
            for change in &file.pending {
                tear(change, &mut **random.borrow_mut()).iter().for_each(|part| part.apply(&mut bytes));
            }
            bytes
        };
        self.write(to, names, bytes);
    }

    fn write(
        &self,
        to: &Path,
        names: &mut impl FnMut(&Folder) -> BTreeMap<String, Id>,
        bytes: &mut impl FnMut(&File) -> Vec<u8>,
    ) {
        let _ = std::fs::remove_dir_all(to);
        self.write_folder(self.folder(ROOT), to, names, bytes);
    }

    fn write_folder(
        &self,
        folder: &Folder,
        to: &Path,
        names: &mut impl FnMut(&Folder) -> BTreeMap<String, Id>,
        bytes: &mut impl FnMut(&File) -> Vec<u8>,
    ) {
        DirBuilder::new().mode(0o700).create(to).expect("a folder");
        // The shared memory of a dead process has no meaning.
        for (name, id) in names(folder).iter().filter(|(name, _)| !name.ends_with("-shm")) {
            match &self.nodes[*id] {
                Node::File(file) => std::fs::write(to.join(name), bytes(file)).expect("a file"),
                Node::Folder(within) => self.write_folder(within, &to.join(name), names, bytes),
            }
        }
    }
}

/// Returns the sectors of a change that reach the disk.
fn tear(change: &Change, random: &mut impl Rng) -> Vec<Change> {
    match change {
        Change::Bytes(offset, bytes) => {
            let (mut at, mut parts) = (0, Vec::new());
            // In half of the cases all or none of the sectors.
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

fn apply(names: &mut BTreeMap<String, Id>, change: &[Naming]) {
    for (name, id) in change {
        match id {
            Some(id) => drop(names.insert(name.clone(), *id)),
            None => drop(names.remove(name)),
        }
    }
}
