//! Reads the rows of all tables as entries, in the order of their numbers.

use std::collections::BTreeMap;

use conclave_privacy::accounting;
use conclave_privacy::accounting::Honest;
use conclave_privacy::mechanism::{Components, NoiseScale, QueryKind};
use rusqlite::{Connection, Row};

use crate::ledger::components;
use crate::ledger::entry::{AnswerEntry, ChargeEntry, Entry, EventEntry, Hash, JobEntered};
use crate::ledger::feed::{Feed, Read};

/// The parts of the two long tables that a format stores.
#[derive(Clone, Copy)]
pub struct Layout {
    pub(super) charges: &'static str,
    pub(super) charge: Read<(ChargeEntry, Hash)>,
    pub(super) answers: &'static str,
    pub(super) answer: Read<Answer>,
    /// True where the last entry's number and hash have a table.
    pub(super) tail: bool,
    /// Integers in an answer to a query of each kind.
    pub(super) lengths: fn(QueryKind) -> usize,
}

impl Layout {
    /// This version's layout.
    pub const PRESENT: Self = Self {
        charges: "SELECT seq, time_ms, job, iteration, chain, attempt, block, digest, theta, theta_next, kind, k_t, s, charge,
                         running_total, hash FROM charges ORDER BY seq",
        charge,
        answers: "SELECT charge, seq, released FROM answers ORDER BY charge",
        answer,
        tail: true,
        lengths: QueryKind::length,
    };

    /// The previous version's layout.
    pub(in crate::ledger) const FORMER: Self = Self {
        charges: "SELECT seq, time_ms, job, iteration, chain, attempt, block, digest, theta, theta_next, kind, k_t, s, charge,
                         running_total, hash, slack FROM charges ORDER BY seq",
        charge: former_charge,
        answers: "SELECT charge, seq, released, hash FROM answers ORDER BY charge",
        answer: former_answer,
        tail: false,
        lengths: QueryKind::length,
    };

    /// Adapts the layout to this ledger, whose charges may have the columns of masked releases.
    pub(super) fn of(self, connection: &Connection) -> rusqlite::Result<Self> {
        Ok(if components::are_masked(connection)? {
            Self { charges: MASKED_CHARGES, charge: masked_charge, ..self }
        } else {
            self
        })
    }

    /// Sets vectors as answers, which no kind has yet.
    #[cfg(any(test, feature = "test-util"))]
    pub(in crate::ledger) fn of_lengths(self, lengths: fn(QueryKind) -> usize) -> Self {
        Self { lengths, ..self }
    }
}

/// An answer as read, with the hash stored beside it, if there is one.
pub(super) type Answer = (AnswerRow, Option<Hash>);

pub(super) struct AnswerRow {
    pub(super) seq: u64,
    pub(super) charge: u64,
    pub(super) released: Components,
}

impl AnswerRow {
    pub(super) fn entry(&self) -> AnswerEntry<'_> {
        AnswerEntry { seq: self.seq, charge: self.charge, released: self.released.as_slice() }
    }
}

/// An entry as read, with the hash stored beside it, if there is one.
pub(super) enum Found {
    Charge(ChargeEntry, Hash),
    Answer(AnswerRow, Option<Hash>),
    Job(Box<JobRow>),
    Event(Box<EventRow>),
}

pub(super) struct JobRow {
    seq: u64,
    time_ms: i64,
    texts: [String; 5],
    spec_digest: Hash,
    records: u64,
    fingerprint: Vec<u8>,
    hash: Hash,
}

pub(super) struct EventRow {
    seq: u64,
    time_ms: i64,
    kind: String,
    job: u64,
    body: String,
    hash: Hash,
}

impl Found {
    pub(super) fn hash(&self) -> Option<&Hash> {
        match self {
            Found::Charge(_, hash) => Some(hash),
            Found::Answer(_, hash) => hash.as_ref(),
            Found::Job(row) => Some(&row.hash),
            Found::Event(row) => Some(&row.hash),
        }
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        match self {
            Found::Charge(entry, _) => Entry::Charge(*entry),
            Found::Answer(row, _) => Entry::Answer(row.entry()),
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

pub(super) type Charges<'s> = Feed<'s, (ChargeEntry, Hash)>;
pub(super) type Answers<'s> = Feed<'s, Answer>;

/// The two long tables, read by this thread.
pub(super) struct Both<'c> {
    charges: rusqlite::Statement<'c>,
    answers: rusqlite::Statement<'c>,
}

impl<'c> Both<'c> {
    pub(super) fn prepare(connection: &'c Connection, layout: &Layout) -> rusqlite::Result<Self> {
        Ok(Self { charges: connection.prepare(layout.charges)?, answers: connection.prepare(layout.answers)? })
    }

    pub(super) fn open(&mut self, layout: &Layout) -> rusqlite::Result<(Charges<'_>, Answers<'_>)> {
        Ok((Feed::Rows(self.charges.query([])?, layout.charge), Feed::Rows(self.answers.query([])?, layout.answer)))
    }
}

pub(super) struct Selects<'c> {
    jobs: rusqlite::Statement<'c>,
    events: rusqlite::Statement<'c>,
    /// The components of charges and of answers, where any has several.
    components: Option<[rusqlite::Statement<'c>; 2]>,
}

impl<'c> Selects<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            jobs: connection.prepare(
                "SELECT seq, time_ms, job, analyst, spec_toml, cap_epsilon, cap_delta, spec_digest, records, fingerprint, hash
                 FROM jobs ORDER BY seq",
            )?,
            events: connection.prepare("SELECT seq, time_ms, kind, job, body, hash FROM events ORDER BY seq")?,
            components: match components::are_stored(connection)? {
                true => Some([connection.prepare(components::CHARGES)?, connection.prepare(components::ANSWERS)?]),
                false => None,
            },
        })
    }

    pub(super) fn open<'s>(&'s mut self, charges: Charges<'s>, answers: Answers<'s>) -> rusqlite::Result<Tables<'s>> {
        let (of_charges, of_answers) = match &mut self.components {
            Some([charges, answers]) => (
                Feed::Rows(charges.query([])?, |row| Ok((row.get(0)?, row.get(1)?))),
                Feed::Rows(answers.query([])?, |row| Ok((row.get(0)?, row.get(1)?))),
            ),
            None => (Feed::None, Feed::None),
        };
        Ok(Tables {
            charge_components: Table::new(of_charges)?,
            answer_components: Table::new(of_answers)?,
            charges: Table::new(charges)?,
            answers: Table::new(answers)?,
            jobs: Table::new(Feed::Rows(self.jobs.query([])?, job))?,
            events: Table::new(Feed::Rows(self.events.query([])?, event))?,
            later: BTreeMap::new(),
        })
    }
}

/// A table being read, one row ahead.
pub(super) struct Table<'s, T> {
    feed: Feed<'s, T>,
    ahead: Option<T>,
}

impl<'s, T> Table<'s, T> {
    pub(super) fn new(mut feed: Feed<'s, T>) -> rusqlite::Result<Self> {
        Ok(Self { ahead: feed.pull()?, feed })
    }

    /// Returns the row ahead and reads the next.
    fn step(&mut self) -> rusqlite::Result<Option<T>> {
        let next = self.feed.pull()?;
        Ok(std::mem::replace(&mut self.ahead, next))
    }
}

pub(super) struct Tables<'s> {
    charges: Table<'s, (ChargeEntry, Hash)>,
    /// Components of each charge that pays for several.
    charge_components: Table<'s, (u64, u32)>,
    answers: Table<'s, Answer>,
    /// Integers of each charge's answer after the first.
    answer_components: Table<'s, (u64, i64)>,
    jobs: Table<'s, JobRow>,
    events: Table<'s, EventRow>,
    /// Answers are in the order of their charges; those made after a restart come later in the ledger.
    later: BTreeMap<u64, Answer>,
}

impl Tables<'_> {
    /// Returns the entry of number `seq`, or the next event, should an unlock leave `seq` out. `None` where there is neither.
    pub(super) fn next(&mut self, seq: u64) -> rusqlite::Result<Option<Found>> {
        if self.charges.ahead.as_ref().is_some_and(|(e, _)| e.seq == seq) {
            return Ok(self.charge()?.map(|(entry, hash)| Found::Charge(entry, hash)));
        }
        if self.answers.ahead.as_ref().is_some_and(|(e, _)| e.seq == seq) {
            return Ok(self.answer()?.map(|(row, hash)| Found::Answer(row, hash)));
        }
        if self.events.ahead.as_ref().is_some_and(|e| e.seq == seq) {
            return Ok(self.events.step()?.map(|row| Found::Event(Box::new(row))));
        }
        if self.jobs.ahead.as_ref().is_some_and(|e| e.seq == seq) {
            return Ok(self.jobs.step()?.map(|row| Found::Job(Box::new(row))));
        }
        while !self.later.contains_key(&seq) {
            match self.answer()? {
                Some((row, hash)) => self.later.insert(row.seq, (row, hash)),
                None => break,
            };
        }
        if let Some((row, hash)) = self.later.remove(&seq) {
            return Ok(Some(Found::Answer(row, hash)));
        }
        // The state decides whether an entry with another number may come here.
        Ok(self.events.step()?.map(|row| Found::Event(Box::new(row))))
    }

    /// Returns the next charge, with its number of components and their slack.
    fn charge(&mut self) -> rusqlite::Result<Option<(ChargeEntry, Hash)>> {
        let Some((mut entry, hash)) = self.charges.step()? else { return Ok(None) };
        if self.charge_components.ahead.as_ref().is_some_and(|(charge, _)| *charge == entry.seq)
            && let Some((_, components)) = self.charge_components.step()?
        {
            // The state refuses a product that is too large, as it does any that does not follow.
            entry = ChargeEntry { components, slack: entry.slack.saturating_mul(u64::from(components)), ..entry };
        }
        Ok(Some((entry, hash)))
    }

    /// Returns the next answer, with all of its integers.
    fn answer(&mut self) -> rusqlite::Result<Option<Answer>> {
        let Some((row, hash)) = self.answers.step()? else { return Ok(None) };
        let here = |ahead: &Option<(u64, i64)>| ahead.as_ref().is_some_and(|(charge, _)| *charge == row.charge);
        if !here(&self.answer_components.ahead) {
            return Ok(Some((row, hash)));
        }
        let mut integers = row.released.as_slice().to_vec();
        while here(&self.answer_components.ahead)
            && let Some((_, integer)) = self.answer_components.step()?
        {
            integers.push(integer);
        }
        let released = Components::new(&integers).unwrap_or(row.released);
        Ok(Some((AnswerRow { released, ..row }, hash)))
    }

    pub(super) fn rest(&self) -> bool {
        self.charge_components.ahead.is_some()
            || self.answer_components.ahead.is_some()
            || self.charges.ahead.is_some()
            || self.answers.ahead.is_some()
            || self.jobs.ahead.is_some()
            || self.events.ahead.is_some()
            || !self.later.is_empty()
    }
}

fn charge(row: &Row<'_>) -> rusqlite::Result<(ChargeEntry, Hash)> {
    // The state refuses an unknown kind and scale. A charge of a block has its slack there.
    let slack = match QueryKind::from_code(row.get(10)?) {
        Some(kind) if kind.is_sampled() => 0,
        _ => slack(row.get(12)?, Honest::ALONE).unwrap_or_default(),
    };
    charge_with(row, slack)
}

const MASKED_CHARGES: &str =
    "SELECT seq, time_ms, job, iteration, chain, attempt, block, digest, theta, theta_next, kind, k_t, s, charge,
                                     running_total, hash, honest, alone FROM charges ORDER BY seq";

/// Reads both columns of masked releases: masked charges, and no others, have them.
fn masked_charge(row: &Row<'_>) -> rusqlite::Result<(ChargeEntry, Hash)> {
    let (honest, alone) = match (row.get(16)?, row.get(17)?) {
        (None, None) => return charge(row),
        (Some(1) | None, _) => return Err(rusqlite::Error::IntegralValueOutOfRange(16, 1)),
        (_, None) => return Err(rusqlite::Error::IntegralValueOutOfRange(17, 0)),
        (Some(honest), Some(alone)) => (honest, alone),
    };
    // The state refuses invalid scales and numbers.
    let slack = Honest::new(honest).and_then(|honest| slack(row.get(12).ok()?, honest)).unwrap_or_default();
    let (entry, hash) = charge_with(row, slack)?;
    Ok((ChargeEntry { honest, alone, ..entry }, hash))
}

fn slack(s: u64, honest: Honest) -> Option<u64> {
    NoiseScale::from_units(s).ok().map(|s| accounting::slack_units_of_draw(s, honest))
}

fn former_charge(row: &Row<'_>) -> rusqlite::Result<(ChargeEntry, Hash)> {
    charge_with(row, row.get(16)?)
}

fn charge_with(row: &Row<'_>, slack: u64) -> rusqlite::Result<(ChargeEntry, Hash)> {
    let charge = row.get(13)?;
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
        charge,
        running_total: row.get(14)?,
        slack,
        components: 1,
        honest: 1,
        alone: charge,
    };
    Ok((entry, row.get(15)?))
}

pub(super) fn answer(row: &Row<'_>) -> rusqlite::Result<Answer> {
    Ok((AnswerRow { charge: row.get(0)?, seq: row.get(1)?, released: Components::One(row.get(2)?) }, None))
}

fn former_answer(row: &Row<'_>) -> rusqlite::Result<Answer> {
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
