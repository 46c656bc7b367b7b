//! Reading a ledger from its first entry to its last: done at every start, and for every export.
//!
//! One pass over each table in the order of its rows, merged by sequence number; a million charges are hashed and added
//! up again in about a second, so nothing here allocates per row.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, Row};

use super::LedgerError;
use super::books::Books;
use super::entry::{AnswerEntry, ChargeEntry, Entry, EventEntry, Hash, JobEntered};
use super::feed::Feed;

/// Reads every entry in order, adds it to the books and gives it to `each`.
///
/// # Errors
/// [`LedgerError::Corrupt`] at the first entry that is missing, damaged or does not follow.
pub(super) fn read(
    connection: &Connection,
    path: &Path,
    each: impl FnMut(&Entry<'_>, &Hash) -> Result<(), LedgerError>,
) -> Result<Books, LedgerError> {
    let mut select = Both::prepare(connection).map_err(|e| unread(path, &e))?;
    let (charges, answers) = select.open().map_err(|e| unread(path, &e))?;
    merge(connection, path, charges, answers, each)
}

/// As [`read`], with a thread and connection of their own for charges and for answers, which are nearly all there is: what a start
/// waits for. Nobody else may be writing.
///
/// # Errors
/// As [`read`].
pub(super) fn add_up(connection: &Connection, path: &Path) -> Result<Books, LedgerError> {
    std::thread::scope(|scope| {
        let charges = Feed::thread(scope, path, CHARGES, charge);
        let answers = Feed::thread(scope, path, ANSWERS, answer);
        merge(connection, path, charges, answers, |_, _| Ok(()))
    })
}

fn merge(
    connection: &Connection,
    path: &Path,
    charges: Feed<'_, (ChargeEntry, Hash)>,
    answers: Feed<'_, (AnswerEntry, Hash)>,
    mut each: impl FnMut(&Entry<'_>, &Hash) -> Result<(), LedgerError>,
) -> Result<Books, LedgerError> {
    let mut books = Books::default();
    let mut select = Selects::prepare(connection).map_err(|e| unread(path, &e))?;
    let mut tables = select.open(charges, answers).map_err(|e| unread(path, &e))?;
    while let Some(found) = tables.next(books.seq() + 1).map_err(|e| unread(path, &e))? {
        let entry = found.entry();
        let checked = books.check(&entry, found.hash());
        checked.map_err(|why| LedgerError::corrupt(path, format!("entry {} {why}", entry.seq())))?;
        each(&entry, found.hash())?;
    }
    finish(connection, path, &books, tables.rest())?;
    Ok(books)
}

/// A database that can't be read is a damaged one.
fn unread(path: &Path, error: &rusqlite::Error) -> LedgerError {
    LedgerError::corrupt(path, format!("it can't be read whole ({error})"))
}

/// What is checked once every entry is in.
fn finish(connection: &Connection, path: &Path, books: &Books, more: bool) -> Result<(), LedgerError> {
    if more {
        return Err(LedgerError::corrupt(path, format!("entry {} is missing", books.seq() + 1)));
    }
    books.finish().map_err(|why| LedgerError::corrupt(path, why))?;
    check_totals(connection, books).map_err(|e| unread(path, &e))?.map_err(|why| LedgerError::corrupt(path, why))
}

/// The table of totals is there for quick answers; the entries decide.
fn check_totals(connection: &Connection, books: &Books) -> rusqlite::Result<Result<(), String>> {
    let mut select =
        connection.prepare("SELECT job, queries, charge, reserved, last_charge, slack, draws FROM totals ORDER BY job")?;
    let mut rows = select.query([])?;
    for job in books.jobs() {
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

/// An entry as read, with the hash stored beside it.
enum Found {
    Charge(ChargeEntry, Hash),
    Answer(AnswerEntry, Hash),
    Job(Box<JobRow>),
    Event(Box<EventRow>),
}

struct JobRow {
    seq: u64,
    time_ms: i64,
    texts: [String; 5],
    spec_digest: Hash,
    records: u64,
    fingerprint: Vec<u8>,
    hash: Hash,
}

struct EventRow {
    seq: u64,
    time_ms: i64,
    kind: String,
    job: u64,
    body: String,
    hash: Hash,
}

impl Found {
    fn hash(&self) -> &Hash {
        match self {
            Found::Charge(_, hash) | Found::Answer(_, hash) => hash,
            Found::Job(row) => &row.hash,
            Found::Event(row) => &row.hash,
        }
    }

    fn entry(&self) -> Entry<'_> {
        match self {
            Found::Charge(entry, _) => Entry::Charge(*entry),
            Found::Answer(entry, _) => Entry::Answer(*entry),
            Found::Job(row) => {
                let [job, analyst, spec_toml, cap_epsilon, cap_delta] = row.texts.each_ref().map(String::as_str);
                Entry::Job(JobEntered {
                    seq: row.seq,
                    time_ms: row.time_ms,
                    job,
                    analyst,
                    spec_digest: &row.spec_digest,
                    spec_toml,
                    cap_epsilon,
                    cap_delta,
                    records: row.records,
                    fingerprint: &row.fingerprint,
                })
            }
            Found::Event(row) => {
                let EventRow { seq, time_ms, ref kind, job, ref body, .. } = **row;
                Entry::Event(EventEntry { seq, time_ms, kind, job, body })
            }
        }
    }
}

const CHARGES: &str =
    "SELECT seq, time_ms, job, iteration, chain, attempt, block, digest, theta, theta_next, kind, k_t, s, charge,
                              running_total, slack, hash FROM charges ORDER BY seq";

const ANSWERS: &str = "SELECT charge, seq, released, hash FROM answers ORDER BY charge";

/// The two long tables, read by this thread.
struct Both<'c> {
    charges: rusqlite::Statement<'c>,
    answers: rusqlite::Statement<'c>,
}

impl<'c> Both<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self { charges: connection.prepare(CHARGES)?, answers: connection.prepare(ANSWERS)? })
    }

    #[allow(clippy::type_complexity)]
    fn open(&mut self) -> rusqlite::Result<(Feed<'_, (ChargeEntry, Hash)>, Feed<'_, (AnswerEntry, Hash)>)> {
        Ok((Feed::Rows(self.charges.query([])?, charge), Feed::Rows(self.answers.query([])?, answer)))
    }
}

struct Selects<'c> {
    jobs: rusqlite::Statement<'c>,
    events: rusqlite::Statement<'c>,
}

impl<'c> Selects<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            jobs: connection.prepare(
                "SELECT seq, time_ms, job, analyst, spec_toml, cap_epsilon, cap_delta, spec_digest, records, fingerprint, hash
                 FROM jobs ORDER BY seq",
            )?,
            events: connection.prepare("SELECT seq, time_ms, kind, job, body, hash FROM events ORDER BY seq")?,
        })
    }

    fn open<'s>(
        &'s mut self,
        charges: Feed<'s, (ChargeEntry, Hash)>,
        answers: Feed<'s, (AnswerEntry, Hash)>,
    ) -> rusqlite::Result<Tables<'s>> {
        let mut tables = Tables {
            charges: Table::new(charges),
            answers: Table::new(answers),
            jobs: Table::new(Feed::Rows(self.jobs.query([])?, job)),
            events: Table::new(Feed::Rows(self.events.query([])?, event)),
            later: BTreeMap::new(),
        };
        tables.charges.step()?;
        tables.answers.step()?;
        tables.jobs.step()?;
        tables.events.step()?;
        Ok(tables)
    }
}

/// A table being read, one row ahead.
struct Table<'s, T> {
    feed: Feed<'s, T>,
    ahead: Option<T>,
}

impl<'s, T> Table<'s, T> {
    fn new(feed: Feed<'s, T>) -> Self {
        Self { feed, ahead: None }
    }

    /// Gives the row ahead and reads the next.
    fn step(&mut self) -> rusqlite::Result<Option<T>> {
        let next = self.feed.pull()?;
        Ok(std::mem::replace(&mut self.ahead, next))
    }
}

struct Tables<'s> {
    charges: Table<'s, (ChargeEntry, Hash)>,
    answers: Table<'s, (AnswerEntry, Hash)>,
    jobs: Table<'s, JobRow>,
    events: Table<'s, EventRow>,
    /// Answers stand in the order of their charges; those given after a restart come later in the ledger.
    later: BTreeMap<u64, (AnswerEntry, Hash)>,
}

impl Tables<'_> {
    /// The entry of number `seq`; or the next event, should `seq` be left out by an unlock. `None` where there is neither.
    fn next(&mut self, seq: u64) -> rusqlite::Result<Option<Found>> {
        if self.charges.ahead.as_ref().is_some_and(|(e, _)| e.seq == seq) {
            return Ok(self.charges.step()?.map(|(entry, hash)| Found::Charge(entry, hash)));
        }
        if self.answers.ahead.as_ref().is_some_and(|(e, _)| e.seq == seq) {
            return Ok(self.answers.step()?.map(|(entry, hash)| Found::Answer(entry, hash)));
        }
        if self.events.ahead.as_ref().is_some_and(|e| e.seq == seq) {
            return Ok(self.events.step()?.map(|row| Found::Event(Box::new(row))));
        }
        if self.jobs.ahead.as_ref().is_some_and(|e| e.seq == seq) {
            return Ok(self.jobs.step()?.map(|row| Found::Job(Box::new(row))));
        }
        while !self.later.contains_key(&seq) {
            match self.answers.step()? {
                Some((entry, hash)) => self.later.insert(entry.seq, (entry, hash)),
                None => break,
            };
        }
        if let Some((entry, hash)) = self.later.remove(&seq) {
            return Ok(Some(Found::Answer(entry, hash)));
        }
        // The books say whether an entry with another number may stand here.
        Ok(self.events.step()?.map(|row| Found::Event(Box::new(row))))
    }

    fn rest(&self) -> bool {
        self.charges.ahead.is_some()
            || self.answers.ahead.is_some()
            || self.jobs.ahead.is_some()
            || self.events.ahead.is_some()
            || !self.later.is_empty()
    }
}

fn charge(row: &Row<'_>) -> rusqlite::Result<(ChargeEntry, Hash)> {
    let entry = ChargeEntry {
        seq: row.get(0)?,
        time_ms: row.get(1)?,
        job: row.get(2)?,
        iteration: row.get(3)?,
        chain: row.get(4)?,
        attempt: row.get(5)?,
        block: row.get(6)?,
        digest: row.get(7)?,
        theta: row.get(8)?,
        theta_next: row.get(9)?,
        kind: row.get(10)?,
        k_t: row.get(11)?,
        s: row.get(12)?,
        charge: row.get(13)?,
        running_total: row.get(14)?,
        slack: row.get(15)?,
    };
    Ok((entry, row.get(16)?))
}

fn answer(row: &Row<'_>) -> rusqlite::Result<(AnswerEntry, Hash)> {
    Ok((AnswerEntry { charge: row.get(0)?, seq: row.get(1)?, released: row.get(2)? }, row.get(3)?))
}

fn job(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    Ok(JobRow {
        seq: row.get(0)?,
        time_ms: row.get(1)?,
        texts: [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?],
        spec_digest: row.get(7)?,
        records: row.get(8)?,
        fingerprint: row.get(9)?,
        hash: row.get(10)?,
    })
}

fn event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        seq: row.get(0)?,
        time_ms: row.get(1)?,
        kind: row.get(2)?,
        job: row.get(3)?,
        body: row.get(4)?,
        hash: row.get(5)?,
    })
}
