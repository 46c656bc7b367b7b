//! Ledgers of the previous format, made from those of this one, for tests of the conversion.

use std::path::Path;

use rusqlite::Connection;

use crate::ledger::entry::{AnswerEntry, Entry, Hash};
use crate::ledger::error::LedgerError;
use crate::ledger::format::FORMER;
use crate::ledger::insert::{insert, write_totals};
use crate::ledger::schema::{FORMER_TABLES, connect_read_only, journal_mode, make_draft, open};
use crate::ledger::state::LedgerState;
use crate::ledger::verify::{self, Layout};
use conclave_ops::private_files::with_suffix;

/// Number of entries left in the log.
const IN_LOG: u64 = 7;

/// Converts a ledger without a holder to the previous format, with its last entries in a log, as a killed party leaves it.
///
/// # Errors Fails as [`crate::ledger::Ledger::open_kept`] does.
pub fn to_former(path: &Path) -> Result<(), LedgerError> {
    let io = |e: std::io::Error| LedgerError::io(path, &e);
    let present = connect_read_only(path)?;
    let last = verify::read(&present, path, &Layout::PRESENT, |_, _| Ok(()))?.seq();
    let split = last.saturating_sub(IN_LOG);
    let copy = |to: &Connection, from: u64, until: u64| -> Result<LedgerState, LedgerError> {
        verify::read(&present, path, &Layout::PRESENT, |entry, hash| {
            if (from..=until).contains(&entry.seq()) { Ok(insert_former(to, entry, hash)?) } else { Ok(()) }
        })
    };
    let draft = make_draft(&with_suffix(path, ".former"), &FORMER_TABLES, FORMER, |former| copy(former, 0, split).map(drop))?;
    let mut former = open(&draft)?;
    journal_mode(&former, "WAL")?;
    let transaction = former.transaction()?;
    let state = copy(&transaction, split + 1, last)?;
    write_totals(&transaction, state.jobs())?;
    transaction.commit()?;
    former.close().map_err(|(_, e)| e)?;
    drop(present);
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(with_suffix(path, suffix));
    }
    std::fs::rename(with_suffix(&draft, "-wal"), with_suffix(path, "-wal")).map_err(io)?;
    let _ = std::fs::remove_file(with_suffix(&draft, "-shm"));
    std::fs::rename(&draft, path).map_err(io)
}

fn insert_former(connection: &Connection, entry: &Entry<'_>, hash: &Hash) -> rusqlite::Result<()> {
    match entry {
        Entry::Charge(e) => connection.execute(
            "INSERT INTO charges VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
            rusqlite::params![
                e.seq,
                e.time_ms,
                e.job,
                e.iteration,
                e.chain,
                e.attempt,
                e.block,
                e.digest,
                e.theta,
                e.theta_next,
                e.kind,
                e.k_t,
                e.s,
                e.charge,
                e.running_total,
                e.slack,
                hash
            ],
        ),
        Entry::Answer(AnswerEntry { seq, charge, released }) => {
            let [released] = released else { return Err(rusqlite::Error::InvalidQuery) };
            connection.execute("INSERT INTO answers VALUES (?1, ?2, ?3, ?4)", (charge, seq, released, hash))
        }
        other => return insert(connection, other, hash),
    }
    .map(drop)
}
