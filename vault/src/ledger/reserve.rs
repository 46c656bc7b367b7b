//! Reserve mode charges ahead, in blocks.
//!
//! A block is for one job. It is synced before the first answer that it pays for is computed; its charges and answers are written without a
//! sync and become durable with the next block, with the job's close, or when the party stops. A crash forfeits the unrecorded part of a
//! block. Settling returns the remainder of a block: that charge was never taken, and every taken one is in the same or an earlier synced
//! commit.
//!
//! A block pays for queries that are answered by one integer, as chains ask them round after round: it holds a number of integers, and pays
//! for that number of queries in at most that number of rounds. A vector is asked once or a few times at a part of a budget each: it is
//! charged by itself, as in strict mode, and its answer is on disk before it leaves. A crash forfeits none.
//!
//! Once a block holds no more than one more message, it is settled and the next is written in its place when the reply has left
//! ([`Ledger::catch_up`]), so that a query seldom waits for a sync.

use conclave_privacy::accounting::{Priced, PrivacyFilter, Spent};

use super::error::LedgerError;
use super::events::{Reserve, Settle};
use super::filters::{Filters, Refusal};
use super::handle::Ledger;
use super::query::QueryKey;
use super::receipt::ChargeRow;
use super::settings::Durability;
use super::state::Block;
use super::unwritten::Ahead;

impl Ledger {
    /// Pays fresh queries from the job's block, or from a new one.
    pub(super) fn charge_to_block(
        &mut self,
        job: &str,
        iteration: u64,
        fresh: &[QueryKey],
        block: u32,
    ) -> Result<Result<Vec<ChargeRow>, Refusal>, LedgerError> {
        let costs = match self.price(fresh) {
            Ok(costs) => costs,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(need) = costs.iter().try_fold(Spent::default(), |sum, cost| sum.plus(*cost)) else {
            return Ok(Err(Refusal::DataBudget(conclave_privacy::accounting::FilterRefusal::Overflow)));
        };
        let Some(seq) = self.jobs.get(job).map(|open| open.seq) else { return Ok(Err(Refusal::UnknownJob)) };
        if !self.block_holds(job, iteration, need)
            && let Err(refusal) = self.next_block(
                job,
                iteration,
                &fresh.iter().map(|key| key.priced).collect::<Vec<_>>(),
                times(block, fresh.len()),
                1,
            )?
        {
            return Ok(Err(refusal));
        }
        let Some(paying) = self.state.job(job).and_then(|job| job.block) else { return Ok(Err(Refusal::UnknownJob)) };
        if let Some(open) = self.jobs.get_mut(job) {
            open.taken = open.taken.plus(need).unwrap_or(paying.held);
        }
        if !self.block_holds(job, iteration + 1, and_half(need)) {
            self.ahead = Some(Ahead { job: job.to_owned(), iteration, releases: fresh.iter().map(|key| key.priced).collect() });
        }
        let paid: Vec<_> = fresh.iter().copied().zip(costs).collect();
        Ok(Ok(self.keep_pending(seq, paying.seq, iteration, &paid)))
    }

    /// Writes the next block ahead, where the last message has nearly used up its job's; returns true where it tried. Not while an answer
    /// that a block has paid for is still to be recorded: settling would forfeit it.
    ///
    /// Only a whole block: near the end of a budget the old one may hold more than the remaining budget, and charge without a query is not
    /// to be withheld from other jobs. And none of a single query, which could pay for no round after the last.
    pub(super) fn reserve_ahead(&mut self) -> Result<bool, LedgerError> {
        let Some(Ahead { job, iteration, releases }) = self.ahead.take() else { return Ok(false) };
        let Durability::Reserve { block: queries } = self.durability else { return Ok(false) };
        let (Some(open), Some(block)) = (self.jobs.get(&job), self.state.job(&job).and_then(|job| job.block)) else {
            return Ok(false);
        };
        let whole = times(queries, releases.len());
        if open.taken != block.used || whole * releases.len() < 2 {
            return Ok(false);
        }
        // Where it is refused, the job learns of it when it asks for more than its block still holds. Pricing a block takes time in any
        // case.
        let _ = self.next_block(&job, iteration, &releases, whole, whole)?;
        Ok(true)
    }

    /// Returns the cost of each query, whatever the remaining budget.
    fn price(&self, fresh: &[QueryKey]) -> Result<Vec<Spent>, Refusal> {
        let mut meter = self.meter.clone();
        let mut costs = Vec::with_capacity(fresh.len());
        for key in fresh {
            let before = meter.spent();
            meter.try_charge(&[key.priced]).map_err(Refusal::DataBudget)?;
            costs.push(meter.spent().minus(before));
        }
        Ok(costs)
    }

    /// Returns true where the job's block pays for this too. A block covers the rounds from its first on, one per integer that it holds:
    /// after a crash these are the rounds whose answers may be lost.
    fn block_holds(&self, job: &str, iteration: u64, need: Spent) -> bool {
        let (Some(open), Some(state)) = (self.jobs.get(job), self.state.job(job)) else { return false };
        let Some(block) = state.block else { return false };
        let covered = iteration >= block.iteration && iteration - block.iteration < block.held.draws;
        let left = block.held.minus(open.taken);
        covered && need.units <= left.units && need.slack_units <= left.slack_units && need.draws <= left.draws
    }

    /// Settles the job's block and reserves the next, in one synced commit: `most` times this message, or fewer where the budget holds no
    /// more, down to `least`.
    fn next_block(
        &mut self,
        job: &str,
        iteration: u64,
        message: &[Priced],
        most: usize,
        least: usize,
    ) -> Result<Result<(), Refusal>, LedgerError> {
        let Some(seq) = self.jobs.get(job).map(|open| open.seq) else { return Ok(Err(Refusal::UnknownJob)) };
        let Some(mut filters) = self.filters_after_settling(job) else { return Ok(Err(Refusal::UnknownJob)) };
        let mut times = most;
        let held = loop {
            match filters.try_charge(&message.repeat(times)) {
                Ok(held) => break held,
                Err(refusal) if times <= least => return Ok(Err(refusal)),
                Err(_) => times = (times / 2).max(least),
            }
        };
        let settle = self.settle(job, Settle::FULL);
        let reserve = Reserve { iteration, units: held.units, slack: held.slack_units, draws: held.draws };
        self.write(true, |writer| {
            if let Some(settle) = &settle {
                writer.event(Settle::KIND, seq, &settle.body())?;
            }
            writer.event(Reserve::KIND, seq, &reserve.body())
        })?;
        self.keep_filters(job, filters);
        self.ahead = None;
        if let Some(open) = self.jobs.get_mut(job) {
            open.taken = Spent::default();
        }
        Ok(Ok(()))
    }

    /// Returns the filters after the job's block has returned its unused charge.
    pub(super) fn filters_after_settling(&self, job: &str) -> Option<Filters> {
        let (filters, open) = (self.filters(job)?, self.jobs.get(job)?);
        let Some(block) = self.state.job(job).and_then(|job| job.block) else { return Some(filters) };
        let back = block.held.minus(open.taken);
        let less = |filter: PrivacyFilter| {
            let spent = filter.spent().minus(back);
            filter.with_spent(spent)
        };
        Some(Filters {
            data: less(filters.data),
            // A block's releases are opened by themselves: they cost the same there.
            alone: filters.alone.map(less),
            analyst: filters.analyst.map(less),
            job: less(filters.job),
        })
    }

    /// Makes the entry that settles the job's block, if it has one, and updates the filters. Taken and unrecorded charge is forfeited: its
    /// answer may have been computed.
    pub(super) fn settle(&mut self, job: &str, why: &str) -> Option<Settle> {
        let block = self.state.job(job)?.block?;
        let (Some(filters), Some(open)) = (self.filters_after_settling(job), self.jobs.get(job)) else { return None };
        let settle = settled(&block, open.taken, why);
        // Their receipts are void from here on.
        self.pending.retain(|_, pending| pending.block != block.seq);
        self.keep_filters(job, filters);
        Some(settle)
    }

    /// Makes the entries that settle every open block.
    pub(super) fn settle_all(&mut self, why: &str) -> Vec<(u64, Settle)> {
        let jobs: Vec<(String, u64)> = self.jobs.iter().map(|(id, open)| (id.clone(), open.seq)).collect();
        jobs.into_iter().filter_map(|(job, seq)| Some((seq, self.settle(&job, why)?))).collect()
    }
}

/// Bounds the cost of the message after one of this cost: prices of proposals vary by about this factor.
fn and_half(need: Spent) -> Spent {
    let more = |n: u64| n.saturating_add(n.div_ceil(2));
    Spent { units: more(need.units), slack_units: more(need.slack_units), draws: more(need.draws), ..need }
}

/// Returns the number of messages of this length that make a block of `queries` queries.
fn times(queries: u32, message: usize) -> usize {
    (queries as usize / message.max(1)).max(1)
}

fn settled(block: &Block, taken: Spent, why: &str) -> Settle {
    let Spent { units, slack_units: slack, draws, .. } = taken.minus(block.used);
    Settle { block: block.seq, units, slack, draws, why: why.to_owned() }
}
