//! Heads: the checkpoints by which a party recognises its own ledger when others show it.
//!
//! A head is the last synced entry's number and hash under the party's MAC. It goes with every reply; the coordinator keeps the newest and
//! shows it when the party attaches; and one is kept in a file outside the ledger's folder. A genuine head that the ledger does not hold
//! shows that the ledger is older than its releases: restored from a copy, or torn. It is then locked until its owner unlocks it. A
//! coordinator that withholds heads is not detected by this.

use std::fs::File;
use std::path::{Path, PathBuf};

use conclave_ops::files::{check_regular, open_private};

use super::entry::Hash;
use super::error::LedgerError;
use super::events::{hex, unhex};
use super::secret::Secret;

const DOMAIN: &str = "conclave ledger head 1";
/// Bytes of a head on the wire: number, hash, MAC.
pub(super) const HEAD_BYTES: usize = 8 + 32 + 32;

/// A ledger's last synced entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its sequence number.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
    mac: [u8; 32],
}

impl Head {
    pub(super) fn new(secret: &Secret, party: &str, seq: u64, hash: Hash) -> Self {
        let mac = secret.mac(DOMAIN, [party.as_bytes(), &seq.to_le_bytes(), &hash]);
        Self { seq, hash, mac }
    }

    /// Returns the wire form, [`HEAD_BYTES`] long.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.seq.to_le_bytes().as_slice(), &self.hash, &self.mac].concat()
    }

    /// Reads the wire form; `None` for anything that is not [`HEAD_BYTES`] long.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.try_into().ok()?;
        let (seq, rest) = bytes.split_first_chunk::<8>()?;
        let (hash, rest) = rest.split_first_chunk::<32>()?;
        let mac = rest.try_into().ok()?;
        Some(Self { seq: u64::from_le_bytes(*seq), hash: *hash, mac })
    }

    /// Returns true where this party made it.
    pub(super) fn is_genuine(&self, secret: &Secret, party: &str) -> bool {
        secret.verifies(DOMAIN, &[party.as_bytes(), &self.seq.to_le_bytes(), &self.hash], &self.mac)
    }

    fn to_line(self) -> String {
        format!("{:020} {} {}\n", self.seq, hex(&self.hash), hex(&self.mac))
    }

    fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let head = Self { seq: words.next()?.parse().ok()?, hash: unhex(words.next()?)?, mac: unhex(words.next()?)? };
        words.next().is_none().then_some(head)
    }
}

/// Length of a line of the head file.
const LINE: u64 = 20 + 1 + 64 + 1 + 64 + 1;

/// The head kept outside the ledger's folder: two lines, written in turn, so that a torn line leaves the other.
///
/// Written after every synced entry and synced only at start and stop: it may lag behind the ledger and never leads.
#[derive(Debug)]
pub(super) struct HeadFile {
    path: PathBuf,
    file: File,
    next: u64,
}

impl HeadFile {
    /// Opens the file, creating it where there is none, and returns the genuine heads in it. One of them may be a head that the coordinator
    /// has shown and the ledger does not hold.
    pub(super) fn open(path: &Path, secret: &Secret, party: &str) -> Result<(Self, Vec<Head>), LedgerError> {
        let io = |e: std::io::Error| LedgerError::io(path, &e);
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let file = open_private(path).map_err(io)?;
        let heads = parse(path, &std::fs::read(path).map_err(io)?, secret, party);
        let newest = heads.iter().max_by_key(|(_, head)| head.seq);
        let next = newest.map_or(0, |(at, _)| (at + 1) % 2);
        Ok((Self { path: path.to_owned(), file, next }, heads.into_iter().map(|(_, head)| head).collect()))
    }

    pub(super) fn write(&mut self, head: Head) -> Result<(), LedgerError> {
        write_at(&self.file, head.to_line().as_bytes(), self.next * LINE).map_err(|e| LedgerError::io(&self.path, &e))?;
        self.next = (self.next + 1) % 2;
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), LedgerError> {
        self.file.sync_all().map_err(|e| LedgerError::io(&self.path, &e))
    }
}

/// Returns the genuine heads in the file, which need not exist; it is not created.
pub fn read(path: &Path, secret: &Secret, party: &str) -> Result<Vec<Head>, LedgerError> {
    match check_regular(path).and_then(|()| std::fs::read(path)) {
        Ok(bytes) => Ok(parse(path, &bytes, secret, party).into_iter().map(|(_, head)| head).collect()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(LedgerError::io(path, &e)),
    }
}

/// Returns the genuine heads, each with the number of its line.
fn parse(path: &Path, bytes: &[u8], secret: &Secret, party: &str) -> Vec<(u64, Head)> {
    let mut heads = Vec::new();
    for (at, line) in (0..).zip(String::from_utf8_lossy(bytes).lines()) {
        match Head::from_line(line).filter(|head| head.is_genuine(secret, party)) {
            Some(head) => heads.push((at, head)),
            None => tracing::warn!("{}: line {} is no head of this party's and is ignored", path.display(), at + 1),
        }
    }
    heads
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}
