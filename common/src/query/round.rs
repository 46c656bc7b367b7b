//! What the sampler asks and yields.

use crate::job::Aggregation;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::secagg::{SharedQuery, round_digest};

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding the mode and the posterior's curvature, one search for all chains.
    Locate,
    /// Chains run; draws are set apart.
    Warmup,
    /// Chains run; draws are kept.
    Sampling,
}

impl Phase {
    /// The name in statuses.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Locate => "locate",
            Phase::Warmup => "warmup",
            Phase::Sampling => "sampling",
        }
    }
}

/// One question to every party.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The chain, or the slot of another question of the round; part of the query's identity.
    pub chain: u32,
    /// What is asked; a ratio is the log-likelihood ratio of `to` against `from`.
    pub kind: QueryKind,
    /// theta; empty where a statistic is asked.
    pub from: Vec<f64>,
    /// theta'; empty where a statistic is asked.
    pub to: Vec<f64>,
    /// Noise scale of each party's release.
    pub noise: NoiseScale,
}

impl Query {
    /// Number of integers that a party releases to it.
    #[must_use]
    pub fn length(&self) -> usize {
        self.kind.length()
    }
}

/// What is opened of the parties' answers to a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opened {
    /// Every answer by itself.
    #[default]
    EachAnswer,
    /// Their sum alone: each is masked, and the masks of all of them together come to 0 in 64 bits.
    SumAlone,
}

impl From<&Aggregation> for Opened {
    fn from(aggregation: &Aggregation) -> Self {
        if aggregation.is_secure() { Self::SumAlone } else { Self::EachAnswer }
    }
}

/// One message to every party.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Number of the message, from 0; part of each query's identity.
    pub iteration: u64,
    /// What it is for.
    pub phase: Phase,
    /// At least one query; fewer than there are chains when a proposal fell outside the parameter box.
    pub queries: Vec<Query>,
    /// What is opened of the parties' answers.
    pub opened: Opened,
}

impl Round {
    /// Number of integers that a party's answer has in a log: where answers are masked, a mask of nothing follows them.
    #[must_use]
    pub fn logged_length(&self) -> usize {
        self.length() + usize::from(self.opened == Opened::SumAlone)
    }

    /// The digest of its message to the parties of a roster of this digest: what the masks of their answers belong to.
    #[must_use]
    pub fn digest_under(&self, roster: &[u8; 32]) -> [u8; 32] {
        message_digest(roster, self.iteration, &self.queries)
    }

    /// Number of integers that a party releases to it, over all of its queries.
    #[must_use]
    pub fn length(&self) -> usize {
        self.queries.iter().map(Query::length).sum()
    }
}

/// The digest of a message of these queries to the parties of a roster of this digest; see [`conclave_privacy::secagg::round_digest`].
#[must_use]
pub fn message_digest(roster: &[u8; 32], iteration: u64, queries: &[Query]) -> [u8; 32] {
    let question = |Query { chain, kind, from, to, noise }: &Query| {
        SharedQuery { chain: *chain, from, to, kind: kind.code(), noise: noise.units() }.digest()
    };
    let questions: Vec<[u8; 32]> = queries.iter().map(question).collect();
    // A masked message is asked in one attempt for ever.
    round_digest(roster, iteration, 0, &questions)
}

/// One state of one chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// The chain, from 0.
    pub chain: u32,
    /// Whether it belongs to the warm-up.
    pub warmup: bool,
    /// The chain's state after the decision.
    pub theta: Vec<f64>,
    /// Whether the proposal was accepted.
    pub accepted: bool,
    /// Noisy log acceptance ratio, penalty and prior included; by `barker` what was compared with 0, correction included. −∞ for a proposal
    /// outside the box.
    pub log_alpha: f64,
    /// The round's number.
    pub iteration: u64,
}
