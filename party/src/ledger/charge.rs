//! Charging a message's queries, all or none, and recording their answers.

use std::collections::HashSet;

use conclave_common::accounting::{FilterRefusal, PrivacyFilter, Spent};
use conclave_common::mechanism::{NoiseScale, Sensitivity};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::schema::now;
use super::{ChargeReceipt, Digest, Ledger, LedgerError, Recorded};
use crate::release::Release;

/// One chain's query of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryKey {
    /// Chain within the round.
    pub chain: u32,
    /// Digest of the query's content.
    pub digest: Digest,
    /// Public bound of one record's part, lattice units.
    pub k_t: Sensitivity,
    /// Noise scale, lattice units.
    pub s: NoiseScale,
}

/// What the ledger says to a message.
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

/// Why a message was refused. Nothing is charged by a refusal, and none depends on a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The data's budget doesn't hold the charge.
    #[error("the data's budget: {0}")]
    DataBudget(FilterRefusal),
    /// The job's own cap doesn't hold it.
    #[error("the job's own budget: {0}")]
    JobBudget(FilterRefusal),
    /// The id stands for another query.
    #[error("chain {chain} of this iteration was asked before with another content")]
    Conflict {
        /// The chain.
        chain: u32,
    },
    /// The query is being answered.
    #[error("chain {chain} of this iteration is being answered")]
    InFlight {
        /// The chain.
        chain: u32,
    },
    /// No such job is open.
    #[error("the job is not open")]
    UnknownJob,
}

/// How a query stands before the message is charged.
enum Standing {
    Fresh,
    Answered(i64),
    Recoverable(i64),
}

/// A fresh query's row, priced.
struct Priced {
    seq: i64,
    key: QueryKey,
    charge: i64,
    running_total: i64,
    slack: i64,
}

impl Ledger {
    /// Charges all queries of a message or none, durably, before any record is read.
    ///
    /// A query with the same id and digest as a recorded one gets its recorded answer at no charge; one that was charged
    /// and not answered when this process opened the ledger gets a receipt under its old charge.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database: final for this process.
    pub fn charge(&mut self, job: &str, iteration: u64, queries: &[QueryKey]) -> Result<ChargeOutcome, LedgerError> {
        self.alive()?;
        let result = self.try_charge(job, iteration, queries);
        self.fail_stop(result)
    }

    fn try_charge(&mut self, job: &str, iteration: u64, queries: &[QueryKey]) -> Result<ChargeOutcome, LedgerError> {
        let Some(open) = self.jobs.get(job) else { return Ok(ChargeOutcome::Refused(Refusal::UnknownJob)) };
        let Ok(iteration) = i64::try_from(iteration) else {
            return Ok(ChargeOutcome::Refused(Refusal::DataBudget(FilterRefusal::Overflow)));
        };
        let mut chains = HashSet::new();
        if let Some(twice) = queries.iter().find(|q| !chains.insert(q.chain)) {
            return Ok(ChargeOutcome::Refused(Refusal::Conflict { chain: twice.chain }));
        }
        let mut standings = Vec::with_capacity(queries.len());
        for query in queries {
            match standing(&self.connection, &self.recoverable, open.id, iteration, query)? {
                Ok(standing) => standings.push(standing),
                Err(refusal) => return Ok(ChargeOutcome::Refused(refusal)),
            }
        }
        let fresh: Vec<QueryKey> =
            queries.iter().zip(&standings).filter(|(_, s)| matches!(s, Standing::Fresh)).map(|(q, _)| *q).collect();
        let mut filters = (self.filter.clone(), open.filter.clone());
        let rows = match price(&mut filters, self.last_seq, &fresh) {
            Ok(rows) => rows,
            Err(refusal) => return Ok(ChargeOutcome::Refused(refusal)),
        };
        let id = open.id;
        if let Some(last) = rows.last() {
            write_charges(&mut self.connection, id, iteration, &rows)?;
            self.last_seq = last.seq;
            self.filter = filters.0;
            if let Some(open) = self.jobs.get_mut(job) {
                open.filter = filters.1;
            }
        }
        // From here on the charges are durable.
        let mut charged = rows.iter();
        let grants = queries.iter().zip(standings).filter_map(|(query, standing)| {
            let seq = match standing {
                Standing::Answered(released) => return Some(Grant::Answered(Recorded::new(released))),
                Standing::Recoverable(seq) => {
                    self.recoverable.remove(&seq);
                    seq
                }
                Standing::Fresh => charged.next()?.seq,
            };
            Some(Grant::Charged(ChargeReceipt::mint(seq, self.session, query.k_t, query.s)))
        });
        Ok(ChargeOutcome::Granted(grants.collect()))
    }

    /// Makes answers durable; only then may they be sent. In the order given.
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
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut recorded = Vec::with_capacity(releases.len());
        {
            let mut insert = transaction.prepare_cached("INSERT INTO answers (seq, released) VALUES (?1, ?2)")?;
            for release in releases {
                let ((seq, session), released) = release.into_parts();
                if session != self.session {
                    return Err(LedgerError::NotCharged);
                }
                insert.execute((seq, released))?;
                recorded.push(Recorded::new(released));
            }
        }
        transaction.commit()?;
        Ok(recorded)
    }
}

fn standing(
    connection: &Connection,
    recoverable: &HashSet<i64>,
    job: i64,
    iteration: i64,
    query: &QueryKey,
) -> Result<Result<Standing, Refusal>, LedgerError> {
    let mut select = connection.prepare_cached(
        "SELECT c.seq, c.digest, c.k_t, c.s, a.released FROM charges c LEFT JOIN answers a ON a.seq = c.seq
         WHERE c.job = ?1 AND c.iteration = ?2 AND c.chain = ?3",
    )?;
    let row = select
        .query_row((job, iteration, query.chain), |row| {
            let content: ([u8; 32], u64, u64) = (row.get(1)?, row.get(2)?, row.get(3)?);
            Ok((row.get::<_, i64>(0)?, content, row.get::<_, Option<i64>>(4)?))
        })
        .optional()?;
    let Some((seq, content, released)) = row else { return Ok(Ok(Standing::Fresh)) };
    let same = content == (query.digest.0, query.k_t.units(), query.s.units());
    Ok(match released {
        _ if !same => Err(Refusal::Conflict { chain: query.chain }),
        Some(released) => Ok(Standing::Answered(released)),
        None if recoverable.contains(&seq) => Ok(Standing::Recoverable(seq)),
        None => Err(Refusal::InFlight { chain: query.chain }),
    })
}

/// Prices fresh queries against the data's filter and the job's; the caller keeps the filters once the rows are durable.
fn price((data, job): &mut (PrivacyFilter, PrivacyFilter), last_seq: i64, fresh: &[QueryKey]) -> Result<Vec<Priced>, Refusal> {
    let overflow = |_| Refusal::DataBudget(FilterRefusal::Overflow);
    let mut rows = Vec::with_capacity(fresh.len());
    for (key, seq) in fresh.iter().zip(last_seq + 1..) {
        let before = data.spent();
        data.try_charge(&[(key.k_t, key.s)]).map_err(Refusal::DataBudget)?;
        job.try_charge(&[(key.k_t, key.s)]).map_err(Refusal::JobBudget)?;
        let after: Spent = data.spent();
        rows.push(Priced {
            seq,
            key: *key,
            charge: i64::try_from(after.units - before.units).map_err(overflow)?,
            running_total: i64::try_from(after.units).map_err(overflow)?,
            slack: i64::try_from(after.slack_units - before.slack_units).map_err(overflow)?,
        });
    }
    Ok(rows)
}

/// One transaction, synced by its commit. A second writer, should there ever be one, collides on `seq`.
fn write_charges(connection: &mut Connection, job: i64, iteration: i64, rows: &[Priced]) -> Result<(), LedgerError> {
    let time = now();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut insert = transaction.prepare_cached(
            "INSERT INTO charges (seq, time, job, iteration, chain, digest, k_t, s, charge, running_total, slack)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        for row in rows {
            let QueryKey { chain, digest, k_t, s } = &row.key;
            insert.execute((
                row.seq,
                &time,
                job,
                iteration,
                chain,
                digest.0,
                k_t.units(),
                s.units(),
                row.charge,
                row.running_total,
                row.slack,
            ))?;
        }
    }
    transaction.commit()?;
    Ok(())
}
