//! The life of a mask key's file.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use conclave_proto::identity::Role;
use conclave_proto::mask_key;

use super::town::{Signer, authority, identity};
use crate::ledger::{Head, Secret};
use crate::secure::{MaskKeyError, MaskKeys};

const JOB: &str = "6f1c1a52-6d0e-4b1e-9d55-0d8f0f2b7a01";
const SPEC: [u8; 32] = [5; 32];

struct Room {
    folder: tempfile::TempDir,
    identity: Signer,
    keys: MaskKeys,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let identity = Signer(identity(&authority("town"), folder.path(), Role::Party, "a"));
        let secret_file = folder.path().join("ledger-secret.key");
        let keys = MaskKeys::beside(&secret_file, Secret::load_or_make(&secret_file).unwrap());
        Self { folder, identity, keys }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("mask-keys").join(name)
    }

    fn names(&self) -> Vec<String> {
        let found = std::fs::read_dir(self.folder.path().join("mask-keys"))
            .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>());
        let mut names = found.unwrap_or_default();
        names.sort();
        names
    }
}

fn head(number: u64) -> Head {
    Head::from_bytes(&[&number.to_le_bytes()[..], &[3; 64]].concat()).unwrap()
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777
}

#[test]
fn a_key_is_made_once_and_read_back_as_it_was_sent() {
    let room = Room::new();
    assert!(room.keys.load(JOB, &SPEC).unwrap().is_none());
    let made = room.keys.make(&room.identity, JOB, SPEC, head(7)).unwrap();
    assert_eq!(mask_key::check(&made.signed, JOB, &SPEC, "a").unwrap().public, made.public());
    assert_eq!(room.names(), [JOB]);
    #[cfg(unix)]
    assert_eq!((mode(&room.file(JOB)), mode(&room.file(""))), (0o600, 0o700));
    let loaded = room.keys.load(JOB, &SPEC).unwrap().unwrap();
    assert_eq!((loaded.secret.bytes(), &loaded.signed, loaded.head), (made.secret.bytes(), &made.signed, head(7)));
    assert_eq!((loaded.job.as_str(), loaded.spec_digest, format!("{loaded:?}")), (JOB, SPEC, format!("JobKey of {JOB}")));
    // Never a second one.
    assert!(matches!(room.keys.make(&room.identity, JOB, SPEC, head(7)), Err(MaskKeyError::Exists(_))));
    assert_eq!(room.keys.load(JOB, &SPEC).unwrap().unwrap().public(), made.public());
    // Another job has another key, and so does the same job once its key is deleted.
    let other = room.keys.make(&room.identity, "other", SPEC, head(7)).unwrap();
    room.keys.delete(JOB).unwrap();
    let again = room.keys.make(&room.identity, JOB, SPEC, head(7)).unwrap();
    assert!(made.public() != other.public() && made.public() != again.public());
}

#[test]
fn the_present_head_is_written_beside_the_same_key() {
    let room = Room::new();
    let made = room.keys.make(&room.identity, JOB, SPEC, head(7)).unwrap();
    let (public, signed) = (made.public(), made.signed.clone());
    assert_eq!(room.keys.rewrite(made, head(9), Duration::ZERO, SystemTime::now()).unwrap().head, head(9));
    let loaded = room.keys.load(JOB, &SPEC).unwrap().unwrap();
    // The caller that opens the job checks whether the ledger holds it: one that was set back does not.
    assert_eq!((loaded.public(), loaded.signed, loaded.head), (public, signed, head(9)));
    assert_eq!(room.names(), [JOB]);
}

#[test]
fn a_changed_or_foreign_file_is_not_a_key() {
    let room = Room::new();
    room.keys.make(&room.identity, JOB, SPEC, head(7)).unwrap();
    let bytes = std::fs::read(room.file(JOB)).unwrap();
    assert!(matches!(room.keys.load(JOB, &[6; 32]), Err(MaskKeyError::OtherSpec(_))));
    let damaged = |bytes: &[u8]| {
        std::fs::write(room.file(JOB), bytes).unwrap();
        matches!(room.keys.load(JOB, &SPEC), Err(MaskKeyError::Damaged(_)))
    };
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(damaged(&changed), "byte {at}");
    }
    for cut in [0, 1, 31, 32, 33, bytes.len() - 1] {
        assert!(damaged(&bytes[..cut]), "{cut} bytes");
    }
    assert!(damaged(&[bytes.as_slice(), &[0]].concat()));
    assert!(!damaged(&bytes));
    // Under another job's name, or another ledger's secret.
    std::fs::write(room.file("other"), &bytes).unwrap();
    assert!(matches!(room.keys.load("other", &SPEC), Err(MaskKeyError::Damaged(_))));
    let stranger = room.folder.path().join("stranger.key");
    let keys = MaskKeys::beside(&room.folder.path().join("ledger-secret.key"), Secret::load_or_make(&stranger).unwrap());
    assert!(matches!(keys.load(JOB, &SPEC), Err(MaskKeyError::Damaged(_))));
    // A damaged key is not created again.
    assert!(damaged(&bytes[1..]));
    assert!(matches!(room.keys.make(&room.identity, JOB, SPEC, head(7)), Err(MaskKeyError::Exists(_))));
}

#[test]
fn no_job_leads_out_of_the_folder() {
    let room = Room::new();
    for job in ["", "..", "../key.pem", "a/b", "a.new", "é", &"a".repeat(65)] {
        assert!(matches!(room.keys.make(&room.identity, job, SPEC, head(1)), Err(MaskKeyError::NoJob)), "{job:?}");
        assert!(matches!(room.keys.load(job, &SPEC), Err(MaskKeyError::NoJob)));
        assert!(matches!(room.keys.delete(job), Err(MaskKeyError::NoJob)));
    }
    // An identity of another role cannot sign, and leaves nothing behind.
    let folder = tempfile::tempdir().unwrap();
    let analyst = Signer(identity(&authority("town"), folder.path(), Role::Analyst, "a"));
    assert!(matches!(room.keys.make(&analyst, JOB, SPEC, head(1)), Err(MaskKeyError::Unsigned(_))));
    assert!(room.names().is_empty());
}

#[test]
fn deleted_keys_are_overwritten_and_gone() {
    let room = Room::new();
    for job in ["a", "b", "c"] {
        room.keys.make(&room.identity, job, SPEC, head(1)).unwrap();
    }
    // A second name shows the fate of the bytes.
    let witness = room.folder.path().join("witness");
    std::fs::hard_link(room.file("a"), &witness).unwrap();
    room.keys.delete("a").unwrap();
    let left = std::fs::read(&witness).unwrap();
    assert!(left.len() > 200 && left.iter().all(|byte| *byte == 0));
    assert_eq!(room.names(), ["b", "c"]);
    room.keys.delete("a").unwrap();
    room.keys.delete_all().unwrap();
    assert!(room.names().is_empty());
    room.keys.delete_all().unwrap();
    // There is no error where no key was ever created.
    let fresh = Room::new();
    fresh.keys.delete("a").unwrap();
    fresh.keys.delete_all().unwrap();
    assert!(fresh.keys.list().unwrap().is_empty() && !fresh.file("").exists());
}

#[test]
fn a_sweep_keeps_the_keys_of_open_jobs() {
    let room = Room::new();
    for job in ["a", "b", "c"] {
        room.keys.make(&room.identity, job, SPEC, head(1)).unwrap();
    }
    assert_eq!(room.keys.list().unwrap(), ["a", "b", "c"]);
    std::fs::write(room.file("b.new"), "half of a key").unwrap();
    assert_eq!(room.keys.sweep(|job| job != "c").unwrap(), ["c"]);
    assert_eq!(room.names(), ["a", "b"]);
}

/// The key's file records its idle time: rewriting the file is not a use, and a clock set back permanently makes the key old.
#[test]
fn idleness_is_recorded_in_the_file() {
    let room = Room::new();
    let (now, day) = (SystemTime::now(), Duration::from_secs(86_400));
    room.keys.make(&room.identity, JOB, SPEC, head(1)).unwrap();
    let note = |idle, now| {
        let key = room.keys.load(JOB, &SPEC).unwrap().unwrap();
        room.keys.rewrite(key, head(2), idle, now).unwrap();
    };
    assert!(room.keys.idle(JOB, now).unwrap() < Duration::from_secs(600));
    note(12 * day, now);
    assert_eq!(room.keys.idle(JOB, now).unwrap().as_secs(), (12 * day).as_secs());
    note(Duration::MAX, now);
    assert!(room.keys.idle(JOB, now).unwrap() > 1000 * day);
    note(Duration::ZERO, now + day / 2);
    assert_eq!(room.keys.idle(JOB, now).unwrap(), Duration::ZERO, "a clock that was set right");
    note(Duration::ZERO, now + 2 * day);
    assert_eq!(room.keys.idle(JOB, now).unwrap(), Duration::MAX);
    assert!(room.keys.idle("another", now).is_err());
}

/// A key that is written again is as old as it is before it has its name: a crash between makes none young again.
#[test]
fn a_key_is_as_old_as_its_use_before_it_takes_its_place() {
    let room = Room::new();
    let (now, idle) = (SystemTime::now(), Duration::from_secs(12 * 86_400));
    let made = room.keys.make(&room.identity, JOB, SPEC, head(1)).unwrap();
    // A file cannot replace a folder, so the rewrite stops at that point.
    std::fs::remove_file(room.file(JOB)).unwrap();
    std::fs::create_dir(room.file(JOB)).unwrap();
    assert!(matches!(room.keys.rewrite(made, head(2), idle, now), Err(MaskKeyError::Io { .. })));
    let used = room.file(&format!("{JOB}.new")).metadata().unwrap().modified().unwrap();
    assert_eq!(now.duration_since(used).unwrap().as_secs(), idle.as_secs());
}

/// The replaced file contains the same secret: it is overwritten on the disk.
#[test]
fn replaced_files_are_overwritten() {
    let room = Room::new();
    let made = room.keys.make(&room.identity, JOB, SPEC, head(1)).unwrap();
    let mut before = std::fs::File::open(room.file(JOB)).unwrap();
    room.keys.rewrite(made, head(2), Duration::ZERO, SystemTime::now()).unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut before, &mut bytes).unwrap();
    assert!(bytes.len() > 32 && bytes.iter().all(|byte| *byte == 0), "{} bytes", bytes.len());
    assert_eq!(room.keys.load(JOB, &SPEC).unwrap().unwrap().head, head(2));
}

/// A crash between any two steps leaves the old key or the new one, and a partly written one is ignored.
#[test]
fn partly_written_files_are_ignored() {
    let room = Room::new();
    let made = room.keys.make(&room.identity, JOB, SPEC, head(1)).unwrap();
    let whole = std::fs::read(room.file(JOB)).unwrap();
    // Killed while it wrote the key again: the old one counts, and the next attempt does.
    std::fs::write(room.file(&format!("{JOB}.new")), &whole[..40]).unwrap();
    assert_eq!(room.keys.load(JOB, &SPEC).unwrap().unwrap().public(), made.public());
    assert_eq!(room.keys.rewrite(made, head(2), Duration::ZERO, SystemTime::now()).unwrap().head, head(2));
    assert_eq!(room.names(), [JOB]);
    // Killed before its first name: there is no key, and another is created.
    std::fs::rename(room.file(JOB), room.file(&format!("{JOB}.new"))).unwrap();
    assert!(room.keys.load(JOB, &SPEC).unwrap().is_none() && room.keys.list().unwrap().is_empty());
    room.keys.make(&room.identity, JOB, SPEC, head(2)).unwrap();
    assert_eq!(room.names(), [JOB]);
    // Killed during a deletion: a file of zeros is not a key.
    std::fs::write(room.file(JOB), vec![0; whole.len()]).unwrap();
    assert!(matches!(room.keys.load(JOB, &SPEC), Err(MaskKeyError::Damaged(_))));
    room.keys.delete(JOB).unwrap();
    assert!(room.names().is_empty());
}

#[cfg(unix)]
#[test]
fn the_target_of_a_link_is_left_alone() {
    let room = Room::new();
    room.keys.make(&room.identity, JOB, SPEC, head(1)).unwrap();
    let elsewhere = room.folder.path().join("elsewhere");
    std::fs::write(&elsewhere, "precious").unwrap();
    std::os::unix::fs::symlink(&elsewhere, room.file("linked")).unwrap();
    assert!(matches!(room.keys.make(&room.identity, "linked", SPEC, head(1)), Err(MaskKeyError::Exists(_))));
    room.keys.delete_all().unwrap();
    assert_eq!((room.names().len(), std::fs::read_to_string(&elsewhere).unwrap().as_str()), (0, "precious"));
}
