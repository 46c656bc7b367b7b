//! Charges a message's queries, all or none, and records their answers.

use std::collections::HashSet;

use conclave_privacy::accounting::{FilterRefusal, Honest, Spent};
use conclave_privacy::mechanism::Components;
use rusqlite::{Connection, OptionalExtension};

use super::components;
use super::entry::{AnswerEntry, ChargeEntry, Entry};
use super::error::LedgerError;
use super::events::Settle;
use super::filters::Refusal;
use super::handle::Ledger;
use super::query::{Digest, QueryKey};
use super::receipt::{ChargeReceipt, ChargeRow, Recorded};
use super::release::Release;
use super::settings::Durability;
use super::unwritten::Pending;
use super::writer::EntryWriter;

/// The ledger's reply to a message.
#[derive(Debug)]
pub enum ChargeOutcome {
    /// Every query is either charged now or was answered before; in the order asked.
    Granted(Vec<Grant>),
    /// None is charged.
    Refused(Refusal),
}

/// One query's right to an answer.
#[derive(Debug)]
pub enum Grant {
    /// Charged, durably: compute and release it.
    Charged(ChargeReceipt),
    /// Answered before: the same bytes again, at no charge.
    Answered(Recorded),
}

impl Grant {
    /// Digest of the query that may be answered.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Charged(receipt) => receipt.digest(),
            Self::Answered(recorded) => recorded.digest(),
        }
    }
}

/// The state of a query before the message is charged.
enum Standing {
    Fresh,
    Answered(Components),
    Recoverable(u64),
}

impl Ledger {
    /// Charges all queries of a message or none, durably, before any record is read.
    ///
    /// Theorem, spend then look: a receipt exists only for a durable charge, each receipt yields one release, and the charges of all time
    /// are within the budget; so everything that ever leaves costs at most the budget, whenever the process or the machine fails. Proof:
    /// docs/explanation/proofs.md, section 4.
    ///
    /// Theorem, replay: a query with the same key (job, iteration, chain) and digest as a recorded one gets its recorded answer at no
    /// charge; one with another digest is refused. A query that was charged and not answered when this process opened the ledger gets a
    /// receipt under its old charge: nothing had left. Proof: section 4 there.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database, and where its file is no longer the one at its path: final for this process.
    pub fn charge(&mut self, job: &str, iteration: u64, queries: &[QueryKey]) -> Result<ChargeOutcome, LedgerError> {
        self.alive()?;
        if self.lost.is_some() {
            return Ok(ChargeOutcome::Refused(Refusal::Behind));
        }
        let result = self.place.check().map_err(LedgerError::from).and_then(|()| self.try_charge(job, iteration, queries));
        self.fail_stop(result)
    }

    fn try_charge(&mut self, job: &str, iteration: u64, queries: &[QueryKey]) -> Result<ChargeOutcome, LedgerError> {
        if !self.jobs.contains_key(job) {
            return Ok(ChargeOutcome::Refused(Refusal::UnknownJob));
        }
        if i64::try_from(iteration).is_err() {
            return Ok(ChargeOutcome::Refused(Refusal::DataBudget(FilterRefusal::Overflow)));
        }
        if let Err(refusal) = self.check_blocks(queries) {
            return Ok(ChargeOutcome::Refused(refusal));
        }
        let mut chains = HashSet::new();
        if let Some(twice) = queries.iter().find(|q| !chains.insert(q.chain)) {
            return Ok(ChargeOutcome::Refused(Refusal::Conflict { chain: twice.chain }));
        }
        let mut standings = Vec::with_capacity(queries.len());
        for query in queries {
            match self.standing(job, iteration, query)? {
                Ok(standing) => standings.push(standing),
                Err(refusal) => return Ok(ChargeOutcome::Refused(refusal)),
            }
        }
        if let Err(refusal) = self.check_masked(job, queries, &standings) {
            return Ok(ChargeOutcome::Refused(refusal));
        }
        let fresh: Vec<QueryKey> =
            queries.iter().zip(&standings).filter(|(_, s)| matches!(s, Standing::Fresh)).map(|(q, _)| *q).collect();
        let paid = match self.durability {
            _ if fresh.is_empty() => Ok(Vec::new()),
            Durability::Strict => self.charge_now(job, iteration, &fresh)?,
            // A block's charges and answers are synced after they leave, and a second answer under the same masks would reveal differences
            // of noise.
            Durability::Reserve { .. }
                if fresh.iter().any(|key| is_vector(key) || key.block.is_some() || key.priced.honest() != Honest::ALONE) =>
            {
                self.charge_now(job, iteration, &fresh)?
            }
            Durability::Reserve { block } => self.charge_to_block(job, iteration, &fresh, block)?,
        };
        let mut paid = match paid {
            Ok(rows) => rows.into_iter(),
            Err(refusal) => return Ok(ChargeOutcome::Refused(refusal)),
        };
        // From here on the charges are durable.
        let grants = queries.iter().zip(standings).map(|(query, standing)| {
            let row = match standing {
                Standing::Answered(released) => return Ok(Grant::Answered(Recorded::new(query.digest, released))),
                Standing::Recoverable(seq) => {
                    self.recoverable.remove(&seq);
                    ChargeRow::Written(seq)
                }
                Standing::Fresh => {
                    paid.next().ok_or_else(|| LedgerError::Wrong("fewer queries are charged than were asked".into()))?
                }
            };
            Ok(Grant::Charged(ChargeReceipt::mint(row, self.session, query, self.budget.unit)))
        });
        Ok(ChargeOutcome::Granted(grants.collect::<Result<_, LedgerError>>()?))
    }

    /// Checks that a message matches the job's masking. One digest covers a whole masked message, and at most one value may ever stand
    /// under each mask: so its queries are all fresh, all charged before a crash and unanswered, or all answered.
    fn check_masked(&self, job: &str, queries: &[QueryKey], standings: &[Standing]) -> Result<(), Refusal> {
        let state = self.state.job(job).ok_or(Refusal::UnknownJob)?;
        let honest = state.honest().ok_or(Refusal::Roster)?;
        if queries.iter().any(|query| query.priced.honest() != honest) {
            return Err(Refusal::Roster);
        }
        let first = standings.first().map(std::mem::discriminant);
        match queries.iter().zip(standings).find(|(_, s)| Some(std::mem::discriminant(*s)) != first) {
            Some((query, _)) if honest != Honest::ALONE => Err(Refusal::Conflict { chain: query.chain }),
            _ => Ok(()),
        }
    }

    /// Charges fresh queries one by one, in one synced transaction, which also returns the remainder of the job's block: a message is
    /// refused when its cost and the sum spent exceed the budget, however earlier charges were written.
    fn charge_now(
        &mut self,
        job: &str,
        iteration: u64,
        fresh: &[QueryKey],
    ) -> Result<Result<Vec<ChargeRow>, Refusal>, LedgerError> {
        let Some(mut filters) = self.filters_after_settling(job) else { return Ok(Err(Refusal::UnknownJob)) };
        let Some(seq) = self.jobs.get(job).map(|open| open.seq) else { return Ok(Err(Refusal::UnknownJob)) };
        let mut costs = Vec::with_capacity(fresh.len());
        let mut places = self.places(job);
        for key in fresh {
            let cost = match key.block {
                None => filters.try_charge(&[key.priced]),
                Some(_) => self.charge_place(job, &mut filters, &mut places, key).map(|()| Spent::default()),
            };
            match cost {
                Ok(cost) => costs.push(cost),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        let settle = self.settle(job, Settle::FULL);
        let mut rows = Vec::with_capacity(fresh.len());
        let time_ms = (self.clock)();
        self.write(true, |writer| {
            if let Some(settle) = &settle {
                writer.event(Settle::KIND, seq, &settle.body())?;
            }
            for (key, cost) in fresh.iter().zip(costs) {
                let block = match &key.block {
                    None => 0,
                    Some(terms) => writer.block_of(seq, key.priced.kind(), terms)?,
                };
                let charged = Pending { time_ms, job: seq, block, iteration, key: *key, cost };
                rows.push(ChargeRow::Written(write_charge(writer, &charged)?));
            }
            Ok(())
        })?;
        self.keep_filters(job, filters);
        Ok(Ok(rows))
    }

    /// Keeps queries that a block has paid for until they are written with their answers.
    pub(super) fn keep_pending(&mut self, job: u64, block: u64, iteration: u64, fresh: &[(QueryKey, Spent)]) -> Vec<ChargeRow> {
        let mut rows = Vec::with_capacity(fresh.len());
        let time_ms = (self.clock)();
        for (key, cost) in fresh {
            self.last_pending += 1;
            self.pending.insert(self.last_pending, Pending { time_ms, job, block, iteration, key: *key, cost: *cost });
            rows.push(ChargeRow::Pending(self.last_pending));
        }
        rows
    }

    /// Makes answers durable, in the order given; only then may they be sent. In reserve mode the charges that a block has paid for are
    /// written here, charge and answer in one, and synced with the next block.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure, a release that this opening has not charged or that has its answer
    /// already included: final for this process.
    pub fn record(&mut self, releases: Vec<Release>) -> Result<Vec<Recorded>, LedgerError> {
        self.alive()?;
        let result = self.try_record(releases);
        self.fail_stop(result)
    }

    fn try_record(&mut self, releases: Vec<Release>) -> Result<Vec<Recorded>, LedgerError> {
        let mut rows = Vec::with_capacity(releases.len());
        for release in releases {
            let (digest, (row, session), released) = release.into_parts();
            if session != self.session {
                return Err(LedgerError::NotCharged);
            }
            let charge = match row {
                ChargeRow::Written(seq) => Charge::Written(seq),
                ChargeRow::Pending(number) => {
                    Charge::Unwritten(Box::new(self.pending.remove(&number).ok_or(LedgerError::NotCharged)?))
                }
            };
            rows.push((charge, digest, released));
        }
        // A charge with a row of its own must have its answer on disk before it leaves: after a crash the query would be answered again
        // under the same charge.
        let sync = rows.iter().any(|(charge, ..)| matches!(charge, Charge::Written(_)));
        self.write(sync, |writer| {
            for (charge, _, released) in &rows {
                let charge = match charge {
                    Charge::Written(seq) => *seq,
                    Charge::Unwritten(pending) => write_charge(writer, pending)?,
                };
                writer.write(&Entry::Answer(AnswerEntry { seq: writer.next(), charge, released: released.as_slice() }))?;
            }
            Ok(())
        })?;
        Ok(rows.into_iter().map(|(_, digest, released)| Recorded::new(digest, released)).collect())
    }

    fn standing(&self, job: &str, iteration: u64, query: &QueryKey) -> Result<Result<Standing, Refusal>, LedgerError> {
        let chain = query.chain;
        let Some(state) = self.state.job(job) else { return Ok(Err(Refusal::UnknownJob)) };
        let Some(seq) = self.index.find(&self.connection, state.seq, &state.ids, (iteration, chain))? else {
            let same = |p: &Pending| p.job == state.seq && p.iteration == iteration && p.key.chain == chain;
            if self.pending.values().any(same) {
                return Ok(Err(Refusal::InFlight { chain }));
            }
            let least = state.least_attempt(iteration);
            return Ok(if query.attempt < least { Err(Refusal::Attempt { chain, least }) } else { Ok(Standing::Fresh) });
        };
        let components = self.state.components(seq);
        let (content, released) = read_row(&self.connection, seq, components)?;
        let priced = &query.priced;
        let asked = (query.digest.0, priced.sensitivity().units(), priced.noise().units());
        if (content, components) != (asked, priced.components()) {
            return Ok(Err(Refusal::Conflict { chain }));
        }
        match (released, self.state.unanswered().contains(&seq)) {
            (Some(released), false) => Ok(Ok(Standing::Answered(released))),
            (None, true) if self.recoverable.contains(&seq) => Ok(Ok(Standing::Recoverable(seq))),
            (None, true) => Ok(Err(Refusal::InFlight { chain })),
            _ => Err(LedgerError::Wrong(format!("the answer to entry {seq} is not what it was at start"))),
        }
    }
}

/// Returns true for a vector, which no block pays for: it is asked once or a few times at a large part of a budget each. A block of several
/// vectors would withhold budget from other jobs for queries that may never come, and a crash would forfeit the job's whole budget; nor
/// would a block's integers determine how many queries it pays for.
fn is_vector(key: &QueryKey) -> bool {
    !key.priced.kind().has_minimum_noise() || key.priced.components() > 1
}

/// The charge of an answer that is to be recorded.
enum Charge {
    Written(u64),
    Unwritten(Box<Pending>),
}

type Content = ([u8; 32], u64, u64);

/// Reads a charge's content and its answer of `components` integers.
fn read_row(connection: &Connection, seq: u64, components: u32) -> Result<(Content, Option<Components>), LedgerError> {
    let mut select = connection.prepare_cached(
        "SELECT c.digest, c.k_t, c.s, a.released FROM charges c LEFT JOIN answers a ON a.charge = c.seq WHERE c.seq = ?1",
    )?;
    let row = select.query_row([seq], |row| Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get(3)?))).optional()?;
    let (content, first): (Content, Option<i64>) = row.ok_or_else(|| LedgerError::Wrong(format!("entry {seq} is gone")))?;
    let whole = |first| if components == 1 { Ok(Components::One(first)) } else { components::of_answer(connection, seq, first) };
    Ok((content, first.map(whole).transpose()?))
}

/// Writes a charge and returns its number.
fn write_charge(writer: &mut EntryWriter<'_>, paid: &Pending) -> Result<u64, LedgerError> {
    let (seq, key) = (writer.next(), &paid.key);
    let alone = match key.priced.honest() {
        Honest::ALONE => paid.cost.units,
        _ => writer.state().cost(key.priced.alone()).map_err(|e| LedgerError::Wrong(e.to_string()))?.units,
    };
    let total = writer.state().spent().units.checked_add(paid.cost.units);
    writer.write(&Entry::Charge(ChargeEntry {
        seq,
        time_ms: paid.time_ms,
        job: paid.job,
        iteration: paid.iteration,
        chain: key.chain,
        attempt: key.attempt,
        block: paid.block,
        digest: key.digest.0,
        theta: key.theta,
        theta_next: key.theta_next,
        kind: key.priced.kind().code(),
        k_t: key.priced.sensitivity().units(),
        s: key.priced.noise().units(),
        charge: paid.cost.units,
        running_total: total.ok_or_else(|| LedgerError::Wrong("the total is too large".into()))?,
        slack: paid.cost.slack_units,
        components: key.priced.components(),
        honest: key.priced.honest().get(),
        alone,
    }))?;
    Ok(seq)
}
