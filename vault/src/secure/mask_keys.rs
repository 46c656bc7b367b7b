//! Keeps the folder of the mask keys, one file for each secure job that is open.
//!
//! It lies beside the ledger's secret key and not beside the ledger, so that restoring an old ledger does not restore old keys with it: a
//! second answer under one mask would reveal the difference of the two. A key is durable before its public half leaves, and a job with a
//! roster never gets a second one. A deleted file is overwritten first; solid-state disks, copy-on-write file systems and snapshots may
//! keep it nevertheless.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use conclave_ops::files::{check_regular, create_private_folder};
use conclave_privacy::secagg::MaskSecret;
use conclave_proto::error::Fault;
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::mask_key_file::JobKey;
use crate::ledger::{Head, Secret};
use crate::ports::MaskKeySigner;
use conclave_ops::private_files::{self, with_suffix};

/// Name of the folder, beside the ledger's secret key.
const FOLDER: &str = "mask-keys";
/// A clock that was set back by at most this much was corrected.
const DAY: Duration = Duration::from_secs(86_400);
/// Suffix of a file that is not yet whole. No job's id has a dot.
const DRAFT: &str = ".new";
const DERIVATION: &str = "conclave mask key secret 1";

/// Error: there is no mask key.
#[derive(Debug, thiserror::Error)]
pub enum MaskKeyError {
    /// The disk failed.
    #[error("{}: {reason}", .file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// Message of the operating system.
        reason: String,
    },
    /// The file differs from what this party wrote.
    #[error("{}: is not a mask key as this party wrote it: restore it, or revoke its job", .0.display())]
    Damaged(PathBuf),
    /// The key is for another text under the same job.
    #[error("{}: is the mask key of another job file", .0.display())]
    OtherSpec(PathBuf),
    /// There is a key already.
    #[error("{}: there is a mask key already", .0.display())]
    Exists(PathBuf),
    /// The job's id can't name a file.
    #[error("a job id is 1 to 64 letters, digits and -")]
    NoJob,
    /// The system returns no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
    /// The identity key cannot sign.
    #[error(transparent)]
    Unsigned(#[from] Fault),
}

/// A party's mask keys.
#[derive(Debug, Clone)]
pub struct MaskKeys {
    folder: PathBuf,
    ledger_secret: Secret,
}

impl MaskKeys {
    /// Returns the keys beside the ledger's secret key, whose file is `secret_file`. The folder need not exist.
    pub fn beside(secret_file: &Path, ledger_secret: Secret) -> Self {
        Self { folder: Self::folder_beside(secret_file), ledger_secret }
    }

    /// Returns the folder of the keys.
    pub fn folder_beside(secret_file: &Path) -> PathBuf {
        secret_file.with_file_name(FOLDER)
    }

    /// Makes a job's key, signed and on disk. Its secret is derived from 256 bits of the system's and from the ledger's secret key and
    /// head: a copied machine with copied generators has another head, once it has answered a query.
    ///
    /// # Errors
    /// [`MaskKeyError`] where there is one already, or it cannot be signed or written.
    pub fn make(&self, signer: &dyn MaskKeySigner, job: &str, spec_digest: [u8; 32], head: Head) -> Result<JobKey, MaskKeyError> {
        let file = self.file_of(job)?;
        if file.symlink_metadata().is_ok() {
            return Err(MaskKeyError::Exists(file));
        }
        let secret = self.fresh_secret(job, &head)?;
        let signed = signer.sign(job, &spec_digest, &secret.public())?;
        let key = JobKey { job: job.to_owned(), spec_digest, secret, signed, head };
        self.write(&key, SystemTime::now())?;
        Ok(key)
    }

    /// Loads a job's key; `None` where there is none. The caller checks that the ledger holds its head, and its event this public key.
    ///
    /// # Errors
    /// [`MaskKeyError`] where it cannot be read, differs from what this party wrote, or is for another text than `spec_digest`'s.
    pub fn load(&self, job: &str, spec_digest: &[u8; 32]) -> Result<Option<JobKey>, MaskKeyError> {
        let file = self.file_of(job)?;
        if file.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let bytes = check_regular(&file).and_then(|()| std::fs::read(&file)).map_err(|e| io(&file, &e))?;
        let key = JobKey::decode(&Zeroizing::new(bytes), &self.ledger_secret);
        let key = key.filter(|key| key.job == job).ok_or_else(|| MaskKeyError::Damaged(file.clone()))?;
        if key.spec_digest != *spec_digest {
            return Err(MaskKeyError::OtherSpec(file));
        }
        Ok(Some(key))
    }

    /// Rewrites a key with the present head and its idle time at `now`. At every moment one of the two files is whole, and holds its last
    /// use.
    ///
    /// # Errors
    /// [`MaskKeyError::Io`].
    pub fn rewrite(&self, key: JobKey, head: Head, idle: Duration, now: SystemTime) -> Result<JobKey, MaskKeyError> {
        let key = JobKey { head, ..key };
        self.write(&key, now.checked_sub(idle).unwrap_or(SystemTime::UNIX_EPOCH))?;
        Ok(key)
    }

    /// Deletes a job's key, also a half-written one; a missing one is no error.
    ///
    /// # Errors
    /// [`MaskKeyError::Io`]: it may be there still.
    pub fn delete(&self, job: &str) -> Result<(), MaskKeyError> {
        let file = self.file_of(job)?;
        erase(&with_suffix(&file, DRAFT))?;
        erase(&file)?;
        self.sync()
    }

    /// Deletes every key, before a ledger that was set back is unlocked.
    ///
    /// # Errors
    /// [`MaskKeyError::Io`]: some may be there still.
    pub fn delete_all(&self) -> Result<(), MaskKeyError> {
        self.sweep(|_| false).map(drop)
    }

    /// Returns how long a job's key has not been used, to the hour; for ever, if the clock was set back by more than a day since.
    ///
    /// # Errors
    /// [`MaskKeyError::Io`].
    pub fn idle(&self, job: &str, now: SystemTime) -> Result<Duration, MaskKeyError> {
        Ok(now
            .duration_since(self.used(job)?)
            .unwrap_or_else(|ahead| if ahead.duration() > DAY { Duration::MAX } else { Duration::ZERO }))
    }

    /// Returns the time of a job's last use, as the clock had it then.
    ///
    /// # Errors
    /// [`MaskKeyError::Io`].
    pub fn used(&self, job: &str) -> Result<SystemTime, MaskKeyError> {
        let file = self.file_of(job)?;
        file.symlink_metadata().and_then(|found| found.modified()).map_err(|e| io(&file, &e))
    }

    /// Lists the jobs that have a key.
    ///
    /// # Errors
    /// [`MaskKeyError::Io`].
    pub fn list(&self) -> Result<Vec<String>, MaskKeyError> {
        Ok(self.files()?.into_iter().filter_map(|(_, job)| job).collect())
    }

    /// Deletes the keys of jobs that are not to be kept, and every other file in the folder; returns the jobs.
    ///
    /// # Errors
    /// [`MaskKeyError::Io`]: some may be there still.
    pub fn sweep(&self, keep: impl Fn(&str) -> bool) -> Result<Vec<String>, MaskKeyError> {
        let mut swept = Vec::new();
        for (file, job) in self.files()? {
            if job.as_deref().is_some_and(&keep) {
                continue;
            }
            erase(&file)?;
            swept.extend(job);
        }
        self.sync()?;
        Ok(swept)
    }

    /// Lists every file of the folder in order, with the job of its key; `None` for half-written ones.
    fn files(&self) -> Result<Vec<(PathBuf, Option<String>)>, MaskKeyError> {
        let fail = |e: &std::io::Error| io(&self.folder, e);
        let entries = match std::fs::read_dir(&self.folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|e| fail(&e))?,
        };
        let mut files =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(|e| fail(&e))?;
        files.sort_unstable();
        let job = |file: &Path| file.file_name().and_then(OsStr::to_str).filter(|name| is_id(name)).map(str::to_owned);
        Ok(files.into_iter().map(|file| (file.clone(), job(&file))).collect())
    }

    fn fresh_secret(&self, job: &str, head: &Head) -> Result<MaskSecret, MaskKeyError> {
        let mut random = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(random.as_mut_slice()).map_err(|_| MaskKeyError::NoRandomness)?;
        let own = Zeroizing::new(self.ledger_secret.mac(DERIVATION, [job.as_bytes(), &head.to_bytes()]));
        let mut secret = Zeroizing::new([0; 32]);
        Salt::new(HKDF_SHA256, own.as_slice())
            .extract(random.as_slice())
            .expand(&[DERIVATION.as_bytes()], HKDF_SHA256)
            .and_then(|key| key.fill(secret.as_mut_slice()))
            .map_err(|_| MaskKeyError::NoRandomness)?;
        Ok(MaskSecret::from_bytes(secret))
    }

    /// Writes under another name until it is whole and synced; its time is that of the key's last use.
    fn write(&self, key: &JobKey, used: SystemTime) -> Result<(), MaskKeyError> {
        let file = self.file_of(&key.job)?;
        let draft = with_suffix(&file, DRAFT);
        create_private_folder(&self.folder).map_err(|e| io(&self.folder, &e))?;
        // With a job's first file, even if the folder existed: the process that made it may have been killed before its name was on disk.
        if file.symlink_metadata().is_err() {
            let above = conclave_ops::files::parent_folder(&self.folder);
            private_files::sync_folder(above).map_err(|e| io(above, &e))?;
        }
        // A crash has left it half made.
        erase(&draft)?;
        private_files::create(&draft, &key.encode(&self.ledger_secret)).map_err(|e| io(&draft, &e))?;
        let noted = |open: File| open.set_modified(used).and_then(|()| open.sync_all());
        OpenOptions::new().write(true).open(&draft).and_then(noted).map_err(|e| io(&draft, &e))?;
        // The file that has the name now holds the same secret, and is overwritten once it has lost the name.
        let before = match OpenOptions::new().write(true).open(&file) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            before => Some(before.map_err(|e| io(&file, &e))?),
        };
        std::fs::rename(&draft, &file).map_err(|e| io(&file, &e))?;
        self.sync()?;
        before.map_or(Ok(()), |mut before| overwrite(&mut before).map_err(|e| io(&file, &e)))
    }

    fn sync(&self) -> Result<(), MaskKeyError> {
        match private_files::sync_folder(&self.folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            synced => synced.map_err(|e| io(&self.folder, &e)),
        }
    }

    fn file_of(&self, job: &str) -> Result<PathBuf, MaskKeyError> {
        if is_id(job) { Ok(self.folder.join(job)) } else { Err(MaskKeyError::NoJob) }
    }
}

/// Returns true for a job's id, which leads to no path outside the folder.
fn is_id(word: &str) -> bool {
    (1..=64).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Overwrites a file and removes its name.
fn erase(file: &Path) -> Result<(), MaskKeyError> {
    let found = match file.symlink_metadata() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|e| io(file, &e))?,
    };
    // The target of a link, and anything but a file, is not this party's to overwrite.
    if found.is_file() {
        OpenOptions::new().write(true).open(file).and_then(|mut open| overwrite(&mut open)).map_err(|e| io(file, &e))?;
    }
    std::fs::remove_file(file).map_err(|e| io(file, &e))
}

fn overwrite(file: &mut File) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    file.write_all(&vec![0; usize::try_from(length).unwrap_or(0)])?;
    file.sync_all()
}

fn io(file: &Path, error: &std::io::Error) -> MaskKeyError {
    MaskKeyError::Io { file: file.to_owned(), reason: error.to_string() }
}
