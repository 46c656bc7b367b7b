//! A model of the ledger without any persistence.

use std::collections::HashMap;

use conclave_proto::convert::AnswerStatus;

use super::{BLOCK, price, to};
use crate::consent::Standing;

pub(super) type Chain = (u32, u8);

#[derive(Default, Clone, Copy)]
pub(super) struct Block {
    pub(super) first: u64,
    pub(super) held: (u64, u64),
    pub(super) drawn: (u64, u64),
}

/// One job of the model: content and answer by round and chain.
#[derive(Default)]
pub(super) struct Job {
    pub(super) standing: Option<Standing>,
    pub(super) open: bool,
    /// The ledger has it as open, whether or not it was opened since the start.
    pub(super) reserved: bool,
    /// Its cap, lowered to the room that it was opened with.
    pub(super) limit: u64,
    pub(super) committed: u64,
    pub(super) rows: HashMap<(u64, u32), (u8, Option<i64>)>,
    pub(super) block: Option<Block>,
    pub(super) lost: Vec<(u64, u64)>,
}

impl Job {
    /// Returns the unused part of a block.
    pub(super) fn settle(&mut self) {
        if let Some(block) = self.block.take() {
            self.committed -= block.held.0 - block.drawn.0;
        }
    }
}

/// A job without room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    Waits,
    Refused,
}

/// A model of the ledger without any persistence.
pub(super) struct Model {
    pub(super) reserve: bool,
    /// Jobs spend what they find, even where less remains than their cap.
    pub(super) force: bool,
    pub(super) limits: (u64, u64),
    pub(super) jobs: Vec<Job>,
}

impl Model {
    pub(super) fn spent(&self) -> u64 {
        self.jobs.iter().map(|job| job.committed).sum()
    }

    /// Returns the budget that no open job except this one may still spend.
    pub(super) fn free(&self, except: Option<usize>) -> u64 {
        let others = self.jobs.iter().enumerate().filter(|(place, job)| Some(*place) != except && job.reserved);
        let promised = others.map(|(_, job)| if job.open { job.limit } else { self.limits.1 }.saturating_sub(job.committed));
        (self.limits.0 - self.spent()).saturating_sub(promised.sum())
    }

    /// Decides on a job that is to be opened, before its owner's consent: its limit if it has room, else whether it waits.
    pub(super) fn room(&self, job: usize) -> Result<u64, Shortage> {
        let (this, free, left) = (&self.jobs[job], self.free(Some(job)), self.limits.0 - self.spent());
        let cost = self.limits.1 - this.committed;
        match self.force {
            _ if this.open => Ok(this.limit),
            false if this.reserved => Ok(self.limits.1),
            false if cost > left => Err(Shortage::Refused),
            false if free < cost => Err(Shortage::Waits),
            _ => Ok(self.limits.1.min(this.committed + free)),
        }
    }

    pub(super) fn expect(&mut self, job: usize, iteration: u64, attempt: u32, chains: &[Chain], prices: &Prices) -> AnswerStatus {
        let data = self.spent();
        let (this, limits) = (&mut self.jobs[job], self.limits);
        if !this.open {
            let withdrawn = matches!(this.standing, Some(Standing::Revoked));
            return if withdrawn { AnswerStatus::Policy } else { AnswerStatus::UnknownJob };
        }
        let mut need = (0, 0);
        for (chain, content) in chains {
            match this.rows.get(&(iteration, *chain)) {
                Some((known, _)) if known != content => return AnswerStatus::Conflict,
                Some(_) => {}
                None if this.lost.iter().filter(|l| (l.0..l.1).contains(&iteration)).count() > attempt as usize => {
                    return AnswerStatus::Attempt;
                }
                None => need = (need.0 + prices.of(iteration, *chain, *content), need.1 + 1),
            }
        }
        let fits = |more: u64, back: u64| data - back + more <= limits.0 && this.committed - back + more <= this.limit;
        if need.1 == 0 {
        } else if !self.reserve {
            if !fits(need.0, 0) {
                return AnswerStatus::Budget;
            }
            this.committed += need.0;
        } else {
            let pays = |b: &Block| {
                iteration >= b.first
                    && iteration - b.first < b.held.1
                    && need.0 <= b.held.0 - b.drawn.0
                    && need.1 <= b.held.1 - b.drawn.1
            };
            if !this.block.as_ref().is_some_and(pays) {
                let back = this.block.map_or(0, |b| b.held.0 - b.drawn.0);
                let mut times = (u64::from(BLOCK) / need.1).max(1);
                while !fits(times * need.0, back) {
                    if times == 1 {
                        return AnswerStatus::Budget;
                    }
                    times /= 2;
                }
                this.settle();
                this.block = Some(Block { first: iteration, held: (times * need.0, times * need.1), drawn: (0, 0) });
                this.committed += times * need.0;
            }
            let block = this.block.as_mut().unwrap();
            block.drawn = (block.drawn.0 + need.0, block.drawn.1 + need.1);
        }
        AnswerStatus::Released
    }

    pub(super) fn die(&mut self) {
        for job in &mut self.jobs {
            job.open = false;
            if let Some(block) = job.block.take() {
                job.lost.push((block.first, block.first + block.held.1));
            }
        }
    }

    pub(super) fn stop(&mut self) {
        self.jobs.iter_mut().for_each(|job| {
            job.open = false;
            job.settle();
        });
    }
}

/// Prices, computed once: queries have few sizes.
pub(super) struct Prices(pub(super) HashMap<u64, u64>);

impl Prices {
    pub(super) fn new() -> Self {
        let all = (0..3).flat_map(|i| (0..2).flat_map(move |c| (0..2).map(move |k| to(i, c, k))));
        Self(all.map(|to| (to.to_bits(), price(to).2)).collect())
    }

    pub(super) fn of(&self, iteration: u64, chain: u32, content: u8) -> u64 {
        self.0[&to(iteration, chain, content).to_bits()]
    }
}
