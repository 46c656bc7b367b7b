//! Backups: a complete, verified copy of a ledger at one moment, taken while the party may run.
//!
//! A copy serves for reading, and for the case that the ledger itself is lost. A restored copy is older than the party's
//! releases, and is locked until its owner unlocks it: see docs/how-to/operator/back-up-and-restore.md.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use conclave_ops::private_files::{close_to_others, with_suffix};
use conclave_vault::consent::ConsentStore;
use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::hex;
use conclave_vault::ledger::schema::{connect_read_only, sync_folder};
use conclave_vault::ledger::settings::LedgerSettings;
use conclave_vault::ledger::verify;

/// Pages copied per step; the party can write between steps.
const PAGES: i32 = 1024;

/// The result of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copied {
    pub entries: u64,
    /// Hash of the last entry, in hexadecimal.
    pub head: String,
    /// The copy of the owner's decisions, if there are any.
    pub decisions: Option<PathBuf>,
}

/// Copies the ledger to `to`, and the owner's decisions beside it. Takes no lock; concurrent writes may be missing. A copy with
/// invalid entries is not given its final name.
///
/// # Errors
/// [`LedgerError::Exists`] if `to` or the file of decisions beside it exists; the errors of [`super::inspect`].
pub(crate) fn backup(settings: &LedgerSettings, to: &Path) -> Result<Copied, LedgerError> {
    let decisions = with_suffix(to, ".consent");
    for path in [to, &decisions] {
        if path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
            return Err(LedgerError::Exists(path.to_owned()));
        }
    }
    let draft = copy(&connect_read_only(&settings.ledger)?, to)?;
    let copied = connect_read_only(&draft)?;
    let state = verify::read(&copied, &draft, &verify::Layout::PRESENT, |_, _| Ok(()))?;
    settings.check_genesis(&draft, state.genesis())?;
    drop(copied);
    let source = ConsentStore::path_of(&settings.ledger);
    let decided = source.exists().then(|| copy(&Connection::open(&source)?, &decisions)).transpose()?;
    if let Some(draft) = &decided {
        std::fs::rename(draft, &decisions).map_err(|e| LedgerError::io(&decisions, &e))?;
    }
    // Renamed last: a ledger's copy with its final name is complete.
    std::fs::rename(&draft, to).map_err(|e| LedgerError::io(to, &e))?;
    sync_folder(to)?;
    Ok(Copied { entries: state.seq(), head: hex(&state.hash()), decisions: decided.map(|_| decisions) })
}

/// Copies a database into one file under a temporary name.
fn copy(from: &Connection, to: &Path) -> Result<PathBuf, LedgerError> {
    let draft = with_suffix(to, ".new");
    if draft.exists() {
        // Left over from an interrupted backup.
        std::fs::remove_file(&draft).map_err(|e| LedgerError::io(&draft, &e))?;
    }
    let mut copy = Connection::open(&draft)?;
    close_to_others(&draft).map_err(|e| LedgerError::io(&draft, &e))?;
    Backup::new(from, &mut copy)?.run_to_completion(PAGES, Duration::ZERO, None)?;
    // One file without a log beside it; a party that opens it turns the log on again.
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    let sound: String = copy.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if sound != "ok" {
        return Err(LedgerError::corrupt(&draft, format!("the copy is damaged ({sound})")));
    }
    copy.close().map_err(|(_, e)| e)?;
    std::fs::File::open(&draft).and_then(|file| file.sync_all()).map_err(|e| LedgerError::io(&draft, &e))?;
    Ok(draft)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::ledger::Ledger;
    use conclave_vault::testing::{JOB, budget, entry, key};

    #[test]
    fn a_copy_is_whole_verified_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("ledger.sqlite"), folder.path().join("copy.sqlite"));
        let settings = LedgerSettings::beside(&path, "a", &budget());
        assert!(matches!(backup(&settings, &to), Err(LedgerError::Missing(_))));
        settings.init().unwrap();
        let mut ledger = Ledger::open_kept(&settings).unwrap();
        ledger.open_job(&entry(JOB, budget())).unwrap();
        ledger.charge(JOB, 0, &[key(0, 1, 5)]).unwrap();
        ConsentStore::open(&path).unwrap();
        let done = backup(&settings, &to).unwrap();
        assert_eq!((done.entries, done.head.as_str()), (ledger.state().seq(), hex(&ledger.state().hash()).as_str()));
        assert!(done.decisions.unwrap().exists());
        assert!(matches!(backup(&settings, &to), Err(LedgerError::Exists(_))));
        let names = |suffix: &str| with_suffix(&to, suffix).exists();
        assert!(!names("-wal") && !names("-shm") && !names(".new"));

        // The ledger continues, and the backup does not make it older.
        ledger.charge(JOB, 1, &[key(0, 2, 5)]).unwrap();
        ledger.close().unwrap();
        assert!(Ledger::open_kept(&settings).unwrap().behind().is_none());
        let restored = LedgerSettings { ledger: to, ..settings };
        assert!(Ledger::open_kept(&restored).unwrap().behind().is_some(), "a copy is older than the releases");
    }
}
