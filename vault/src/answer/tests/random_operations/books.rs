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

/// A model of the ledger without any persistence.
pub(super) struct Model {
    pub(super) reserve: bool,
    pub(super) limits: (u64, u64),
    pub(super) jobs: Vec<Job>,
}

impl Model {
    pub(super) fn spent(&self) -> u64 {
        self.jobs.iter().map(|job| job.committed).sum()
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
        let fits = |more: u64, back: u64| data - back + more <= limits.0 && this.committed - back + more <= limits.1;
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
