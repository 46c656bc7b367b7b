//! The verification adds up a ledger from its first entry to its last, and compares what it comes to with
//! every hash that is stored.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::tables::{Answers, Both, Charges, Layout, Selects, answer};
use crate::ledger::components;
use crate::ledger::entry::{Entry, Hash};
use crate::ledger::error::LedgerError;
use crate::ledger::feed::Feed;
use crate::ledger::index::Index;
use crate::ledger::state::LedgerState;
use crate::ledger::wrong::Wrong;

/// Reads every entry in order, adds it to the state and gives it to `each`.
///
/// # Errors
/// [`LedgerError::Corrupt`] at the first entry that is missing, damaged or does not follow.
pub fn read(
    connection: &Connection,
    path: &Path,
    layout: &Layout,
    each: impl FnMut(&Entry<'_>, &Hash) -> Result<(), LedgerError>,
) -> Result<LedgerState, LedgerError> {
    let layout = &layout.of(connection).map_err(|e| unread(path, &e))?;
    let mut select = Both::prepare(connection, layout).map_err(|e| unread(path, &e))?;
    let (charges, answers) = select.open(layout).map_err(|e| unread(path, &e))?;
    let state = LedgerState::of_lengths(layout.lengths);
    merge(connection, path, layout, (charges, answers), (state, &mut Index::new(path)), each)
}

/// As [`read`], with a thread and connection of their own for charges and for answers, which are nearly all there is: what a start
/// waits for. Nobody else may be writing. The state keeps few ids of charges, and the index knows the others.
///
/// # Errors
/// As [`read`].
pub(in crate::ledger) fn add_up(
    connection: &Connection,
    path: &Path,
    layout: &Layout,
) -> Result<(LedgerState, Index), LedgerError> {
    let layout = &layout.of(connection).map_err(|e| unread(path, &e))?;
    let (state, mut index) = (LedgerState::of_lengths(layout.lengths).fenced(), Index::new(path));
    std::thread::scope(|scope| {
        let charges = Feed::thread(scope, path, layout.charges, layout.charge);
        let answers = Feed::thread(scope, path, layout.answers, layout.answer);
        let state = merge(connection, path, layout, (charges, answers), (state, &mut index), |_, _| Ok(()))?;
        Ok((state, index))
    })
}

/// The hash of the entry of that number, in a ledger that has been verified; `None` where there is no such entry. Of an answer it is computed
/// from the nearest one before that is stored: none but answers stand between.
pub fn hash_at(connection: &Connection, seq: u64) -> rusqlite::Result<Option<Hash>> {
    let mut nearest: Option<(u64, Hash)> = None;
    for table in ["charges", "jobs", "events"] {
        let sql = format!("SELECT seq, hash FROM {table} WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1");
        let found = connection.query_row(&sql, [seq], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        nearest = nearest.max(found);
    }
    let Some((mut at, mut hash)) = nearest else { return Ok(None) };
    let vectors = components::are_stored(connection)?;
    let mut select = connection.prepare("SELECT charge, seq, released FROM answers WHERE seq > ?1 AND seq <= ?2 ORDER BY seq")?;
    let mut answers = select.query([at, seq])?;
    while let Some(row) = answers.next()? {
        let (mut entry, _) = answer(row)?;
        if entry.seq != at + 1 {
            return Ok(None);
        }
        if vectors {
            entry.released = components::of_answer(connection, entry.charge, row.get(2)?)?;
        }
        (at, hash) = (entry.seq, Entry::Answer(entry.entry()).hash(&hash));
    }
    Ok((at == seq).then_some(hash))
}

fn merge(
    connection: &Connection,
    path: &Path,
    layout: &Layout,
    (charges, answers): (Charges<'_>, Answers<'_>),
    (mut state, index): (LedgerState, &mut Index),
    mut each: impl FnMut(&Entry<'_>, &Hash) -> Result<(), LedgerError>,
) -> Result<LedgerState, LedgerError> {
    let mut select = Selects::prepare(connection).map_err(|e| unread(path, &e))?;
    let mut tables = select.open(charges, answers).map_err(|e| unread(path, &e))?;
    while let Some(found) = tables.next(state.seq() + 1).map_err(|e| unread(path, &e))? {
        let entry = found.entry();
        let hash = index.append(connection, &mut state, &entry)?;
        let checked = match found.hash() {
            // An answer has no hash of its own: a damaged one shows at the next entry that has.
            Some(stored) => {
                let same = hash.and_then(|hash| if hash == *stored { Ok(()) } else { Err(Wrong::Hash) });
                same.map_err(|why| format!("{why}, or an answer before it is damaged"))
            }
            None => hash.map(drop).map_err(String::from),
        };
        checked.map_err(|why| LedgerError::corrupt(path, format!("entry {} {why}", entry.seq())))?;
        each(&entry, &state.hash())?;
    }
    finish(connection, path, &state, tables.rest())?;
    if layout.tail {
        check_tail(connection, &state).map_err(|e| unread(path, &e))?.map_err(|why| LedgerError::corrupt(path, why))?;
    }
    Ok(state)
}

/// One row, of the last entry: an answer that nothing follows is damaged, or entries at the end are missing, where it is of another.
fn check_tail(connection: &Connection, state: &LedgerState) -> rusqlite::Result<Result<(), String>> {
    let mut select = connection.prepare("SELECT id, seq, hash FROM tail")?;
    let tails: Vec<(u64, u64, Hash)> =
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    Ok(match tails.as_slice() {
        [(1, seq, hash)] if (*seq, *hash) == (state.seq(), state.hash()) => Ok(()),
        [(_, seq, _)] if *seq != state.seq() => Err(format!("it ends at entry {} and its tail is of entry {seq}", state.seq())),
        _ => Err(format!("entry {}, or an answer before it, does not fit the hash that is stored in the tail", state.seq())),
    })
}

/// A database that can't be read is a damaged one.
fn unread(path: &Path, error: &rusqlite::Error) -> LedgerError {
    LedgerError::corrupt(path, format!("it can't be read whole ({error})"))
}

/// What is checked once every entry is in.
fn finish(connection: &Connection, path: &Path, state: &LedgerState, more: bool) -> Result<(), LedgerError> {
    if more {
        return Err(LedgerError::corrupt(path, format!("entry {} is missing", state.seq() + 1)));
    }
    state.finish().map_err(|why| LedgerError::corrupt(path, why))?;
    check_totals(connection, state).map_err(|e| unread(path, &e))?.map_err(|why| LedgerError::corrupt(path, why))
}

/// The table of totals is there for quick answers; the entries decide.
fn check_totals(connection: &Connection, state: &LedgerState) -> rusqlite::Result<Result<(), String>> {
    let mut select =
        connection.prepare("SELECT job, queries, charge, reserved, last_charge, slack, draws FROM totals ORDER BY job")?;
    let mut rows = select.query([])?;
    for job in state.jobs() {
        let all = job.committed();
        let reserved = all.units - job.spent.units;
        let expected = (job.seq, job.queries, job.spent.units, reserved, job.last_charge, all.slack_units, all.draws);
        let found = match rows.next()? {
            Some(row) => Some((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?)),
            None => None,
        };
        if found != Some(expected) {
            return Ok(Err(format!("the totals of job {} are not those of its entries", job.id)));
        }
    }
    Ok(rows.next()?.map_or(Ok(()), |_| Err("it has totals of a job that is not entered".into())))
}
