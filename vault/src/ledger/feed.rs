//! Feeds a table's rows one after the other, read by the caller or by a separate thread.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use rusqlite::{Connection, OpenFlags, Row, Rows};

/// Rows that a reading thread hands over at a time.
const BATCH: usize = 1024;
/// Batches that may wait.
const WAITING: usize = 16;

/// A batch from a reading thread.
type Batch<T> = rusqlite::Result<Vec<T>>;

/// Reads a row.
pub(super) type Read<T> = fn(&Row<'_>) -> rusqlite::Result<T>;

/// The source of a table's rows.
pub(super) enum Feed<'s, T> {
    /// A missing table.
    None,
    Rows(Rows<'s>, Read<T>),
    Thread {
        waiting: Receiver<Batch<T>>,
        batch: std::vec::IntoIter<T>,
    },
}

impl<T> Feed<'_, T> {
    /// Lets a separate thread with its own connection read a table.
    pub(super) fn thread<'t>(scope: &'t Scope<'t, '_>, path: &'t Path, sql: &'t str, read: Read<T>) -> Self
    where
        T: Send + 't,
    {
        let (to, waiting) = sync_channel(WAITING);
        scope.spawn(move || hand_over(path, sql, read, &to));
        Self::Thread { waiting, batch: Vec::new().into_iter() }
    }

    /// Returns the next row.
    pub(super) fn pull(&mut self) -> rusqlite::Result<Option<T>> {
        match self {
            Self::None => Ok(None),
            Self::Rows(rows, read) => rows.next()?.map(|row| read(row)).transpose(),
            Self::Thread { waiting, batch } => loop {
                if let Some(next) = batch.next() {
                    return Ok(Some(next));
                }
                match waiting.recv() {
                    Ok(more) => *batch = more?.into_iter(),
                    Err(_) => return Ok(None),
                }
            },
        }
    }
}

/// Reads a table; its end, good or bad, is the channel's.
fn hand_over<T>(path: &Path, sql: &str, read: Read<T>, to: &SyncSender<Batch<T>>) {
    if let Err(e) = try_hand_over(path, sql, read, to) {
        // Where the receiver is gone, another failure has come before.
        let _ = to.send(Err(e));
    }
}

fn try_hand_over<T>(path: &Path, sql: &str, read: Read<T>, to: &SyncSender<Batch<T>>) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let mut select = connection.prepare(sql)?;
    let mut rows = select.query([])?;
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            match rows.next() {
                Ok(Some(row)) => batch.push(read(row)?),
                Ok(None) => break,
                Err(e) => {
                    // Earlier rows may be wrong already.
                    let _ = to.send(Ok(batch));
                    return Err(e);
                }
            }
        }
        if batch.is_empty() || to.send(Ok(batch)).is_err() {
            return Ok(());
        }
    }
}
