//! A list of operations: made from a seed, and made shorter while it still fails.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fixture::{JOBS, KINDS, MASKED};
use super::link::Fate;

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    /// As on SIGTERM.
    Stop,
    /// As by kill -9.
    Kill,
}

/// One operation. Parties and frames are counted modulo what is there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// So many steps of whoever has something to do, picked by the salt.
    Steps { count: u8, salt: u64 },
    /// A party's connection breaks.
    Cut { party: u8, up: Fate, down: Fate },
    /// A party takes in hand what has arrived, and then its connection breaks: the answer is lost.
    AnswerLost { party: u8 },
    /// A party ends; it starts again after the next operations.
    Party { party: u8, death: Death },
    /// A party is killed while it answers, after so many pages of its log.
    KilledAnswering { party: u8, pages: u8 },
    /// A party that is down starts.
    Start { party: u8 },
    /// The coordinator ends and starts, with so many of its latest writes committed; its disk may forget the last rounds all the same.
    Coordinator { death: Death, commit: u8, forget: u8 },
    /// The coordinator's store commits so many writes.
    Commit { count: u8 },
    /// A frame on the way comes twice.
    Twice { party: u8, way: Way, at: u8 },
    /// A frame overtakes the one before.
    Overtake { party: u8, way: Way, at: u8 },
    /// A party's connection stands still for so many steps.
    Delay { party: u8, way: Way, steps: u8 },
    /// A party is cut off for so many seconds, in which the others go on.
    Partition { party: u8, seconds: u8 },
    /// Time passes.
    Wait { ms: u16 },
    /// The clocks of both sides jump by so many minutes.
    Clocks { coordinator: i32, parties: i32 },
    /// The second job is submitted.
    Submit,
    /// The analyst ends a job.
    Cancel { job: u8 },
}

/// A list and what it is played on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Kinds of the jobs.
    pub(crate) jobs: Vec<usize>,
    /// The parties' block, in reserve mode.
    pub(crate) reserve: Option<u32>,
    pub(crate) noise: u64,
    pub(crate) ops: Vec<Op>,
}

/// Seeds of noise: few, so that undisturbed runs can be kept.
const NOISES: u64 = 4;

impl Plan {
    pub(crate) fn random(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let number = if rng.random_bool(0.25) { JOBS } else { 1 };
        let jobs = (0..number).map(|_| rng.random_range(0..KINDS)).collect();
        let reserve = rng.random_bool(0.25).then(|| rng.random_range(1..12));
        let noise = rng.random_range(0..NOISES);
        let faults = rng.random_range(5..=14);
        let mut ops = Vec::new();
        for _ in 0..faults {
            ops.push(Op::Steps { count: rng.random_range(1..24), salt: rng.next_u64() });
            ops.push(fault(&mut rng));
        }
        Self { seed, jobs, reserve, noise, ops }
    }

    /// As [`Plan::random`], of jobs whose answers leave masked.
    pub(crate) fn masked(seed: u64) -> Self {
        let plan = Self::random(seed);
        let jobs = plan.jobs.iter().map(|kind| MASKED + kind % (KINDS - MASKED)).collect();
        Self { jobs, ..plan }
    }

    /// The same without faults.
    pub(crate) fn undisturbed(&self) -> Self {
        Self { ops: vec![Op::Submit], ..self.clone() }
    }

    /// The list without what it fails without.
    pub(crate) fn shrink(mut self, mut fails: impl FnMut(&Self) -> bool) -> Self {
        let mut size = self.ops.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < self.ops.len() {
                let mut fewer = self.clone();
                fewer.ops.drain(at..(at + size).min(self.ops.len()));
                if fails(&fewer) {
                    self = fewer;
                } else {
                    at += size;
                }
            }
            size /= 2;
        }
        self
    }
}

fn fate(rng: &mut impl Rng) -> Fate {
    [Fate::Lost, Fate::Late, Fate::Silent][rng.random_range(0..3)]
}

fn way(rng: &mut impl Rng) -> Way {
    if rng.random_bool(0.5) { Way::Up } else { Way::Down }
}

fn death(rng: &mut impl Rng) -> Death {
    if rng.random_bool(0.25) { Death::Stop } else { Death::Kill }
}

fn fault(rng: &mut impl Rng) -> Op {
    let party = rng.random_range(0..3);
    match rng.random_range(0..24) {
        0..=2 => Op::Cut { party, up: fate(rng), down: fate(rng) },
        3..=4 => Op::AnswerLost { party },
        5..=6 => Op::Party { party, death: death(rng) },
        7..=8 => Op::KilledAnswering { party, pages: rng.random_range(0..16) },
        9 => Op::Start { party },
        10..=12 => {
            let forget = if rng.random_bool(0.2) { rng.random_range(1..5) } else { 0 };
            Op::Coordinator { death: death(rng), commit: rng.random_range(0..20), forget }
        }
        13 => Op::Commit { count: rng.random_range(1..30) },
        14..=15 => Op::Twice { party, way: way(rng), at: rng.random_range(0..4) },
        16..=17 => Op::Overtake { party, way: way(rng), at: rng.random_range(0..4) },
        18 => Op::Delay { party, way: way(rng), steps: rng.random_range(1..20) },
        19 => Op::Partition { party, seconds: rng.random_range(1..120) },
        20 => Op::Wait { ms: rng.random_range(1..5000) },
        21 => Op::Clocks { coordinator: rng.random_range(-600..600), parties: rng.random_range(-600..600) },
        22 => Op::Submit,
        _ if rng.random_bool(0.3) => Op::Cancel { job: rng.random_range(0..2) },
        _ => Op::Wait { ms: rng.random_range(1..100) },
    }
}
