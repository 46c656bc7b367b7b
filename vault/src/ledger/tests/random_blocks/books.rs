//! A model of a ledger with blocks, in plain integers and without any persistence.

use std::collections::HashMap;
use std::ops::Range;

/// Job, round, chain.
pub(super) type Id = (usize, u64, u32);
/// mu² in units of 2^-48, and the reserve of delta in units of 2^-60.
pub(super) type Units = (u64, u64);

/// The price of one query, or of a block of places for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price {
    pub(super) units: Units,
    /// Places of the block; `None` for a query that pays for itself.
    pub(super) places: Option<usize>,
}

/// One chain's query; its content is the number of its price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) chain: u32,
    pub(super) content: u8,
    pub(super) what: usize,
}

/// The state of a charged query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stands {
    /// Its receipt is out. In reserve mode it is not written yet where charge written ahead covers it.
    InFlight {
        written: bool,
    },
    /// Charged by a process that is gone.
    Left,
    Answered(Vec<i64>),
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) asked: Asked,
    pub(super) stands: Stands,
}

/// Charge written ahead.
#[derive(Debug, Clone)]
struct Ahead {
    first: u64,
    held: u64,
    /// Maximal number of its queries.
    queries: u64,
    taken: (u64, u64),
}

/// A block of places, and the queries that have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) what: usize,
    pub(super) places: Vec<Id>,
}

#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) limits: Units,
    pub(super) entered: bool,
    pub(super) open: bool,
    pub(super) spent: Units,
    pub(super) blocks: Vec<Opened>,
    ahead: Option<Ahead>,
    lost: Vec<Range<u64>>,
}

impl Job {
    pub(super) fn new(limits: Units) -> Self {
        Self { limits, entered: false, open: false, spent: (0, 0), blocks: Vec::new(), ahead: None, lost: Vec::new() }
    }

    /// Returns the unused part of charge written ahead.
    fn settle(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            self.spent.0 -= ahead.held - ahead.taken.0;
        }
    }

    /// Takes a place, or opens a block.
    fn place(&mut self, id: Id, what: usize, price: Price) {
        let places = price.places.unwrap_or(0);
        let free = self.blocks.iter_mut().rev().find(|block| block.what == what && block.places.len() < places);
        match free {
            Some(block) => block.places.push(id),
            None => {
                self.spent = add(self.spent, price.units);
                self.blocks.push(Opened { what, places: vec![id] });
            }
        }
    }
}

pub(super) fn add(a: Units, b: Units) -> Units {
    (a.0 + b.0, a.1 + b.1)
}

fn within(a: Units, limits: Units) -> bool {
    a.0 <= limits.0 && a.1 <= limits.1
}

pub(super) struct Books {
    /// Queries for which charge is written ahead, in reserve mode.
    pub(super) ahead: Option<u64>,
    /// `M` and `D`.
    pub(super) limits: Units,
    pub(super) prices: Vec<Price>,
    pub(super) jobs: Vec<Job>,
    pub(super) rows: HashMap<Id, Row>,
}

impl Books {
    pub(super) fn spent(&self) -> Units {
        self.jobs.iter().fold((0, 0), |sum, job| add(sum, job.spent))
    }

    /// Returns the number of crashes that may have lost an answer of this round.
    pub(super) fn attempt(&self, job: usize, iteration: u64) -> u32 {
        self.jobs[job].lost.iter().filter(|lost| lost.contains(&iteration)).count() as u32
    }

    /// Charges a message if it is admissible; returns true if it is.
    pub(super) fn charge(&mut self, job: usize, iteration: u64, message: &[Asked]) -> bool {
        let twice = (1..message.len()).any(|at| message[..at].iter().any(|other| other.chain == message[at].chain));
        if twice || !self.jobs[job].open {
            return false;
        }
        let mut fresh = Vec::new();
        for asked in message {
            match self.rows.get(&(job, iteration, asked.chain)) {
                None => fresh.push(*asked),
                Some(row) if row.asked != *asked || matches!(row.stands, Stands::InFlight { .. }) => return false,
                Some(_) => {}
            }
        }
        let alone = |asked: &Asked| self.prices[asked.what].places.is_none();
        let (after, written) = match self.ahead {
            _ if fresh.is_empty() => (Some((self.jobs[job].clone(), false)), true),
            Some(queries) if fresh.iter().all(alone) => (self.charge_ahead(job, iteration, &fresh, queries), false),
            _ => (self.charge_each(job, iteration, &fresh), true),
        };
        let Some((after, settled)) = after else { return false };
        if settled {
            self.forget(job);
        }
        self.jobs[job] = after;
        for asked in fresh {
            self.rows.insert((job, iteration, asked.chain), Row { asked, stands: Stands::InFlight { written } });
        }
        for asked in message {
            if let Some(row) = self.rows.get_mut(&(job, iteration, asked.chain)).filter(|row| row.stands == Stands::Left) {
                row.stands = Stands::InFlight { written: true };
            }
        }
        true
    }

    /// Returns the job after each query has paid for itself or got a place, and charge written ahead was settled; `None` where a
    /// limit is exceeded.
    fn charge_each(&self, job: usize, iteration: u64, fresh: &[Asked]) -> Option<(Job, bool)> {
        let mut after = self.jobs[job].clone();
        after.settle();
        for asked in fresh {
            let price = self.prices[asked.what];
            match price.places {
                None => after.spent = add(after.spent, price.units),
                // All blocks of a job are of the first one's kind.
                Some(_) if after.blocks.first().is_some_and(|first| first.what != asked.what) => return None,
                Some(_) => after.place((job, iteration, asked.chain), asked.what, price),
            }
        }
        self.holds(job, &after).then_some((after, true))
    }

    /// The job once charge written ahead has paid, from the existing one or from a new one as large as the limits hold.
    fn charge_ahead(&self, job: usize, iteration: u64, fresh: &[Asked], queries: u64) -> Option<(Job, bool)> {
        let need: u64 = fresh.iter().map(|asked| self.prices[asked.what].units.0).sum();
        let count = fresh.len() as u64;
        let mut after = self.jobs[job].clone();
        if let Some(ahead) = &mut after.ahead {
            let covers = iteration >= ahead.first && iteration - ahead.first < ahead.queries;
            let taken = (ahead.taken.0 + need, ahead.taken.1 + count);
            if covers && taken.0 <= ahead.held && taken.1 <= ahead.queries {
                ahead.taken = taken;
                return Some((after, false));
            }
        }
        after.settle();
        let mut times = (queries / count).max(1);
        loop {
            let mut filled = after.clone();
            filled.spent.0 += times * need;
            filled.ahead = Some(Ahead { first: iteration, held: times * need, queries: times * count, taken: (need, count) });
            if self.holds(job, &filled) {
                return Some((filled, true));
            }
            if times == 1 {
                return None;
            }
            times /= 2;
        }
    }

    /// Returns true if all limits hold with this job.
    fn holds(&self, job: usize, after: &Job) -> bool {
        let others = self.jobs.iter().enumerate().filter(|(at, _)| *at != job);
        let all = others.fold(after.spent, |sum, (_, other)| add(sum, other.spent));
        within(after.spent, after.limits) && within(all, self.limits)
    }

    /// Invalidates the receipts of a job that are not written.
    fn forget(&mut self, job: usize) {
        self.rows.retain(|id, row| id.0 != job || row.stands != Stands::InFlight { written: false });
    }

    pub(super) fn close(&mut self, job: usize) {
        self.jobs[job].settle();
        self.jobs[job].open = false;
        self.forget(job);
    }

    /// Ends the process: killed, so that charge written ahead counts as spent, or cleanly.
    pub(super) fn end(&mut self, killed: bool) {
        for job in &mut self.jobs {
            if let Some(ahead) = job.ahead.take_if(|_| killed) {
                job.lost.push(ahead.first..ahead.first + ahead.queries);
            }
            job.settle();
        }
        self.rows.retain(|_, row| row.stands != Stands::InFlight { written: false });
        for row in self.rows.values_mut().filter(|row| row.stands == Stands::InFlight { written: true }) {
            row.stands = Stands::Left;
        }
    }
}
