//! Reading a ledger from its first entry to its last: done at every start, and for every export.
//!
//! One pass over each table in the order of its rows, merged by sequence number; a million charges are hashed and added
//! up again in about a second, so nothing here allocates per row. A hash that is not stored is computed, and the next one that is
//! stored, at the latest the tail's, is compared with what they lead to.

use std::collections::BTreeMap;
use std::path::Path;

use conclave_common::accounting;
use conclave_common::mechanism::NoiseScale;
use rusqlite::{Connection, OptionalExtension, Row};

use super::LedgerError;
use super::books::Books;
use super::entry::{AnswerEntry, ChargeEntry, Entry, EventEntry, Hash, JobEntered};
use super::feed::{Feed, Read};

/// What a format stores of the two long tables.
pub(super) struct Layout {
    charges: &'static str,
    charge: Read<(ChargeEntry, Hash)>,
    answers: &'static str,
    answer: Read<(AnswerEntry, Option<Hash>)>,
    /// Whether the last entry's number and hash have a table.
    tail: bool,
}

impl Layout {
    /// This version's.
    pub(super) const PRESENT: Self = Self {
        charges: "SELECT seq, time_ms, job, iteration, chain, attempt, block, digest, theta, theta_next, kind, k_t, s, charge,
                         running_total, hash FROM charges ORDER BY seq",
        charge,
        answers: "SELECT charge, seq, released FROM answers ORDER BY charge",
        answer,
        tail: true,
    };

    /// The one before.
    pub(super) const FORMER: Self = Self {
        charges: "SELECT seq, time_ms, job, iteration, chain, attempt, block, digest, theta, theta_next, kind, k_t, s, charge,
                         running_total, hash, slack FROM charges ORDER BY seq",
        charge: former_charge,
        answers: "SELECT charge, seq, released, hash FROM answers ORDER BY charge",
        answer: former_answer,
        tail: false,
    };
}

/// Reads every entry in order, adds it to the books and gives it to `each`.
///
/// # Errors
/// [`LedgerError::Corrupt`] at the first entry that is missing, damaged or does not follow.
pub(super) fn read(
    connection: &Connection,
    path: &Path,
    layout: &Layout,
    each: impl FnMut(&Entry<'_>, &Hash) -> Result<(), LedgerError>,
) -> Result<Books, LedgerError> {
    let mut select = Both::prepare(connection, layout).map_err(|e| unread(path, &e))?;
    let (charges, answers) = select.open(layout).map_err(|e| unread(path, &e))?;
    merge(connection, path, layout, (charges, answers), each)
}

/// As [`read`], with a thread and connection of their own for charges and for answers, which are nearly all there is: what a start
/// waits for. Nobody else may be writing.
///
/// # Errors
/// As [`read`].
pub(super) fn add_up(connection: &Connection, path: &Path) -> Result<Books, LedgerError> {
    std::thread::scope(|scope| {
        let layout = &Layout::PRESENT;
        let charges = Feed::thread(scope, path, layout.charges, layout.charge);
        let answers = Feed::thread(scope, path, layout.answers, layout.answer);
        merge(connection, path, layout, (charges, answers), |_, _| Ok(()))
    })
}

/// The hash of the entry of that number, in a ledger that has been verified; `None` where there is no such entry. Of an answer it is computed
/// from the nearest one before that is stored: none but answers stand between.
pub(super) fn hash_at(connection: &Connection, seq: u64) -> rusqlite::Result<Option<Hash>> {
    let mut nearest: Option<(u64, Hash)> = None;
    for table in ["charges", "jobs", "events"] {
        let sql = format!("SELECT seq, hash FROM {table} WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1");
        let found = connection.query_row(&sql, [seq], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        nearest = nearest.max(found);
    }
    let Some((mut at, mut hash)) = nearest else { return Ok(None) };
    let mut select = connection.prepare("SELECT charge, seq, released FROM answers WHERE seq > ?1 AND seq <= ?2 ORDER BY seq")?;
    let mut answers = select.query([at, seq])?;
    while let Some(row) = answers.next()? {
        let (entry, _) = answer(row)?;
        if entry.seq != at + 1 {
            return Ok(None);
        }
        (at, hash) = (entry.seq, Entry::Answer(entry).hash(&hash));
    }
    Ok((at == seq).then_some(hash))
}

fn merge(
    connection: &Connection,
    path: &Path,
    layout: &Layout,
    (charges, answers): (Charges<'_>, Answers<'_>),
    mut each: impl FnMut(&Entry<'_>, &Hash) -> Result<(), LedgerError>,
) -> Result<Books, LedgerError> {
    let mut books = Books::default();
    let mut select = Selects::prepare(connection).map_err(|e| unread(path, &e))?;
    let mut tables = select.open(charges, answers).map_err(|e| unread(path, &e))?;
    while let Some(found) = tables.next(books.seq() + 1).map_err(|e| unread(path, &e))? {
        let entry = found.entry();
        let checked = match found.hash() {
            // An answer has no hash of its own: a damaged one shows at the next entry that has.
            Some(stored) => books.check(&entry, stored).map_err(|why| format!("{why}, or an answer before it is damaged")),
            None => books.append(&entry).map(drop),
        };
        checked.map_err(|why| LedgerError::corrupt(path, format!("entry {} {why}", entry.seq())))?;
        each(&entry, &books.hash())?;
    }
    finish(connection, path, &books, tables.rest())?;
    if layout.tail {
        check_tail(connection, &books).map_err(|e| unread(path, &e))?.map_err(|why| LedgerError::corrupt(path, why))?;
    }
    Ok(books)
}

/// One row, of the last entry: an answer that nothing follows is damaged, or entries at the end are missing, where it is of another.
fn check_tail(connection: &Connection, books: &Books) -> rusqlite::Result<Result<(), String>> {
    let mut select = connection.prepare("SELECT id, seq, hash FROM tail")?;
    let tails: Vec<(u64, u64, Hash)> =
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    Ok(match tails.as_slice() {
        [(1, seq, hash)] if (*seq, *hash) == (books.seq(), books.hash()) => Ok(()),
        [(_, seq, _)] if *seq != books.seq() => Err(format!("it ends at entry {} and its tail is of entry {seq}", books.seq())),
        _ => Err(format!("entry {}, or an answer before it, does not fit the hash that is stored in the tail", books.seq())),
    })
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

/// An entry as read, with the hash stored beside it, if there is one.
enum Found {
    Charge(ChargeEntry, Hash),
    Answer(AnswerEntry, Option<Hash>),
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
    fn hash(&self) -> Option<&Hash> {
        match self {
            Found::Charge(_, hash) => Some(hash),
            Found::Answer(_, hash) => hash.as_ref(),
            Found::Job(row) => Some(&row.hash),
            Found::Event(row) => Some(&row.hash),
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

type Charges<'s> = Feed<'s, (ChargeEntry, Hash)>;
type Answers<'s> = Feed<'s, (AnswerEntry, Option<Hash>)>;

/// The two long tables, read by this thread.
struct Both<'c> {
    charges: rusqlite::Statement<'c>,
    answers: rusqlite::Statement<'c>,
}

impl<'c> Both<'c> {
    fn prepare(connection: &'c Connection, layout: &Layout) -> rusqlite::Result<Self> {
        Ok(Self { charges: connection.prepare(layout.charges)?, answers: connection.prepare(layout.answers)? })
    }

    fn open(&mut self, layout: &Layout) -> rusqlite::Result<(Charges<'_>, Answers<'_>)> {
        Ok((Feed::Rows(self.charges.query([])?, layout.charge), Feed::Rows(self.answers.query([])?, layout.answer)))
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

    fn open<'s>(&'s mut self, charges: Charges<'s>, answers: Answers<'s>) -> rusqlite::Result<Tables<'s>> {
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
    answers: Table<'s, (AnswerEntry, Option<Hash>)>,
    jobs: Table<'s, JobRow>,
    events: Table<'s, EventRow>,
    /// Answers stand in the order of their charges; those given after a restart come later in the ledger.
    later: BTreeMap<u64, (AnswerEntry, Option<Hash>)>,
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
    // The books refuse a scale that is none.
    let slack = NoiseScale::from_units(row.get(12)?).map_or(0, accounting::slack_units_of_draw);
    charge_with(row, slack)
}

fn former_charge(row: &Row<'_>) -> rusqlite::Result<(ChargeEntry, Hash)> {
    charge_with(row, row.get(16)?)
}

fn charge_with(row: &Row<'_>, slack: u64) -> rusqlite::Result<(ChargeEntry, Hash)> {
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
        slack,
    };
    Ok((entry, row.get(15)?))
}

fn answer(row: &Row<'_>) -> rusqlite::Result<(AnswerEntry, Option<Hash>)> {
    Ok((AnswerEntry { charge: row.get(0)?, seq: row.get(1)?, released: row.get(2)? }, None))
}

fn former_answer(row: &Row<'_>) -> rusqlite::Result<(AnswerEntry, Option<Hash>)> {
    Ok((answer(row)?.0, Some(row.get(3)?)))
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
