//! Converts a ledger of the previous format to this one, once, when the party starts.
//!
//! The entries, their encoding and their hashes are the same in both; the formats differ in how much of them is stored. The new file is
//! written beside the old one, read back, compared with it by sums and head, synced, and only then takes the old one's name. Whenever the
//! process dies or the power fails, one whole ledger has that name, the old or the new; both hold the same entries, except the one that
//! states the conversion, and no query is answered before the new name is durable. The lock is held throughout.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::entry::{Entry, EventEntry};
use super::error::LedgerError;
use super::format::{FORMAT, FORMER};
use super::insert::{insert, write_tail, write_totals};
use super::lock::LedgerLock;
use super::schema::{self, TABLES, connect_read_only, journal_mode, make_draft, sync_folder};
use super::secret::Secret;
use super::settings::LedgerSettings;
use super::state::LedgerState;
use super::verify::{self, Layout};
use crate::clock::now_ms;
use conclave_ops::private_files::with_suffix;

/// The event that a conversion enters.
const KIND: &str = "convert";

/// Opens the locked ledger at `path` for writing, after converting one of the previous format.
///
/// # Errors
/// The errors of [`super::Ledger::open_kept`], and a disk without room for a second copy: the ledger is then unchanged.
pub(super) fn connect(settings: &LedgerSettings, path: &Path, lock: &mut LedgerLock) -> Result<Connection, LedgerError> {
    let found = schema::open(path)?;
    if schema::format_of(&found, path)? != FORMER {
        // A conversion may have been killed after the new file took its name: that name has to be durable before the file has a log.
        sync_folder(path)?;
        return schema::connect(found, path);
    }
    convert(schema::connect_former(found, path)?, settings, path, lock)?;
    schema::connect(schema::open(path)?, path)
}

/// The lock goes over to the new file.
fn convert(former: Connection, settings: &LedgerSettings, path: &Path, lock: &mut LedgerLock) -> Result<(), LedgerError> {
    let state = verify::read(&former, path, &Layout::FORMER, |_, _| Ok(()))?;
    // Another party's, or another data set's, stays as it is.
    settings.check_genesis(path, state.genesis())?;
    settings.check(path, &state, &Secret::load(&settings.secret)?)?;
    put_log_away(&former, path)?;
    let bytes = |path: &Path| path.metadata().map_or(0, |file| file.len());
    let before = bytes(path);
    replace(former, path, &state, lock).inspect_err(|_| {
        // The draft may take the room that the old version needs, should its owner return to it.
        let _ = std::fs::remove_file(schema::draft_of(path));
    })?;
    sync_folder(path)?;
    let after = bytes(path);
    tracing::info!(
        "the ledger {} was converted from format {FORMER} to {FORMAT}: {} entries, {before} bytes before and {after} now",
        path.display(),
        state.seq()
    );
    Ok(())
}

/// Replaces the old ledger by the converted one.
fn replace(former: Connection, path: &Path, state: &LedgerState, lock: &mut LedgerLock) -> Result<(), LedgerError> {
    let draft = write(&former, path)?;
    compare(&draft, state)?;
    former.close().map_err(|(_, e)| e)?;
    keep_readers(path, &draft)?;
    // The old file stays locked, too, until it is no ledger any more.
    let _old = lock.move_to(&draft)?;
    std::fs::rename(&draft, path).map_err(|e| LedgerError::io(path, &e))
}

/// SQLite replays any log beside a database into it: that of the old file must be gone, durably, before the new one has its name.
fn put_log_away(former: &Connection, path: &Path) -> Result<(), LedgerError> {
    let in_use = || LedgerError::Foreign {
        file: path.to_owned(),
        reason: format!(
            "is of format {FORMER} and open in another program, an auditor's perhaps: end that one and start again, and it is converted"
        ),
    };
    let busy: bool = former.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy {
        return Err(in_use());
    }
    match journal_mode(former, "DELETE") {
        Ok(mode) if mode == "delete" => {}
        Err(e) if e.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseBusy) => return Err(e.into()),
        _ => return Err(in_use()),
    }
    for suffix in ["-wal", "-journal"] {
        let log = with_suffix(path, suffix);
        if log.try_exists().map_err(|e| LedgerError::io(&log, &e))? {
            return Err(LedgerError::Foreign { file: log, reason: "is a log that the ledger beside it has not taken in".into() });
        }
    }
    sync_folder(path)
}

/// Writes all entries, and one that states the conversion, under another name.
fn write(former: &Connection, path: &Path) -> Result<PathBuf, LedgerError> {
    make_draft(path, &TABLES, FORMAT, |new| {
        let mut state = verify::read(former, path, &Layout::FORMER, |entry, hash| Ok(insert(new, entry, hash)?))?;
        let software = concat!("conclave-party ", env!("CARGO_PKG_VERSION"));
        let body = serde_json::json!({ "from": FORMER, "to": FORMAT, "software": software }).to_string();
        let act = Entry::Event(EventEntry { seq: state.seq() + 1, time_ms: now_ms(), kind: KIND, job: 0, body: &body });
        let hash = state.append(&act).map_err(|why| LedgerError::Wrong(format!("the entry to be written {why}")))?;
        insert(new, &act, &hash)?;
        write_totals(new, state.jobs())?;
        Ok(write_tail(new, &state)?)
    })
}

/// Reads the new file like any ledger, from its first entry on, and checks that it holds every entry of the old one: its chain passes
/// through the old one's head.
fn compare(draft: &Path, former: &LedgerState) -> Result<(), LedgerError> {
    let new = connect_read_only(draft)?;
    let sound: String = new.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    let mut head = None;
    let state = verify::read(&new, draft, &Layout::PRESENT, |entry, hash| {
        if entry.seq() == former.seq() {
            head = Some(*hash);
        }
        Ok(())
    })?;
    let same = head == Some(former.hash())
        && state.seq() == former.seq() + 1
        && (state.spent(), state.held(), state.answers()) == (former.spent(), former.held(), former.answers())
        && state.jobs().len() == former.jobs().len()
        && state.unanswered() == former.unanswered();
    if !same || sound != "ok" {
        return Err(LedgerError::corrupt(draft, "the converted copy is not the ledger that it was made from"));
    }
    Ok(())
}

/// Gives the new file the permissions of the old one.
#[cfg(unix)]
fn keep_readers(path: &Path, draft: &Path) -> Result<(), LedgerError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let io = |e: std::io::Error| LedgerError::io(draft, &e);
    let (old, new) = (path.metadata().map_err(io)?, draft.metadata().map_err(io)?);
    let mut permissions = old.permissions();
    if (old.uid(), old.gid()) != (new.uid(), new.gid())
        && let Err(e) = chown(draft, Some(old.uid()), Some(old.gid()))
    {
        tracing::warn!("the converted ledger can't be given the owner and group that its file had ({e}); do it by hand");
        // Not to another group than the one that was allowed to read it.
        permissions.set_mode(permissions.mode() & !0o070);
    }
    std::fs::set_permissions(draft, permissions).and_then(|()| File::open(draft)?.sync_all()).map_err(io)
}

#[cfg(not(unix))]
fn keep_readers(_path: &Path, _draft: &Path) -> Result<(), LedgerError> {
    Ok(())
}
