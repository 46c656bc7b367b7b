//! A list of operations, created from a seed and shrunk while it still fails.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fixture::{JOBS, KINDS, MASKED};
use super::link::Fate;

/// Direction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    /// A clean stop, as on SIGTERM.
    Stop,
    /// A kill, as by SIGKILL.
    Kill,
}

/// One operation. Numbers of parties and frames are taken modulo their count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// This many steps of random actors with pending work, chosen by the salt.
    Steps { count: u8, salt: u64 },
    /// Breaks a party's connection.
    Cut { party: u8, up: Fate, down: Fate },
    /// Lets a party handle all arrived frames, and then breaks its connection: the answer is lost.
    AnswerLost { party: u8 },
    /// Ends a party; it restarts after the next operations.
    Party { party: u8, death: Death },
    /// Kills a party while it answers, after this many pages of its log.
    KilledAnswering { party: u8, pages: u8 },
    /// Starts a stopped party.
    Start { party: u8 },
    /// Ends and restarts the coordinator, with `commit` of its latest writes committed; its disk may still lose the last rounds.
    Coordinator { death: Death, commit: u8, forget: u8 },
    /// Commits this many writes of the coordinator's store.
    Commit { count: u8 },
    /// Duplicates a frame in transit.
    Twice { party: u8, direction: Direction, at: u8 },
    /// Lets a frame overtake the one before it.
    Overtake { party: u8, direction: Direction, at: u8 },
    /// Stops all traffic on a party's connection for this many steps.
    Delay { party: u8, direction: Direction, steps: u8 },
    /// Cuts a party off for this many seconds, while the others continue.
    Partition { party: u8, seconds: u8 },
    /// Lets time pass.
    Wait { ms: u16 },
    /// Moves the clocks of both sides by this many minutes.
    Clocks { coordinator: i32, parties: i32 },
    /// Submits the second job.
    Submit,
    /// Cancels a job.
    Cancel { job: u8 },
}

/// A list and its configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// The jobs' kinds.
    pub(crate) jobs: Vec<usize>,
    /// Block size of the parties, in reserve mode.
    pub(crate) reserve: Option<u32>,
    pub(crate) noise: u64,
    pub(crate) ops: Vec<Op>,
}

/// Number of noise seeds: few, so that undisturbed runs can be cached.
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

    /// Creates a plan like [`Plan::random`], of masked jobs.
    pub(crate) fn masked(seed: u64) -> Self {
        let plan = Self::random(seed);
        let jobs = plan.jobs.iter().map(|kind| MASKED + kind % (KINDS - MASKED)).collect();
        Self { jobs, ..plan }
    }

    /// Returns the plan without faults.
    pub(crate) fn undisturbed(&self) -> Self {
        Self { ops: vec![Op::Submit], ..self.clone() }
    }

    /// Returns the list without operations that its failure does not need.
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

fn direction(rng: &mut impl Rng) -> Direction {
    if rng.random_bool(0.5) { Direction::Up } else { Direction::Down }
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
        14..=15 => Op::Twice { party, direction: direction(rng), at: rng.random_range(0..4) },
        16..=17 => Op::Overtake { party, direction: direction(rng), at: rng.random_range(0..4) },
        18 => Op::Delay { party, direction: direction(rng), steps: rng.random_range(1..20) },
        19 => Op::Partition { party, seconds: rng.random_range(1..120) },
        20 => Op::Wait { ms: rng.random_range(1..5000) },
        21 => Op::Clocks { coordinator: rng.random_range(-600..600), parties: rng.random_range(-600..600) },
        22 => Op::Submit,
        _ if rng.random_bool(0.3) => Op::Cancel { job: rng.random_range(0..2) },
        _ => Op::Wait { ms: rng.random_range(1..100) },
    }
}
