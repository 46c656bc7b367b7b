//! Rounds of queries, and the draws that a sampler yields.

use crate::job::Aggregation;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::secagg::{SharedQuery, round_digest};

/// The purpose of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// One search for the mode and the posterior's curvature, shared by all chains.
    Locate,
    /// Chains run; draws are discarded.
    Warmup,
    /// Chains run; draws are kept.
    Sampling,
}

impl Phase {
    /// Returns the name used in statuses.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Locate => "locate",
            Phase::Warmup => "warmup",
            Phase::Sampling => "sampling",
        }
    }
}

/// One query to a party.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The chain, or another slot of the round; part of the query's identity.
    pub chain: u32,
    /// The kind. A ratio is the log-likelihood ratio of `to` against `from`.
    pub kind: QueryKind,
    /// theta; empty for a statistic.
    pub from: Vec<f64>,
    /// theta'; empty for a statistic.
    pub to: Vec<f64>,
    /// Noise scale of each party's release.
    pub noise: NoiseScale,
}

impl Query {
    /// Returns the number of integers in a party's release.
    #[must_use]
    pub fn length(&self) -> usize {
        self.kind.length()
    }
}

/// The values that become readable from the parties' answers to a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opened {
    /// Every answer.
    #[default]
    EachAnswer,
    /// Only the sum of the answers: each is masked, and all masks sum to 0 in 64 bits.
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
    /// The purpose of the round.
    pub phase: Phase,
    /// The queries, at least one. There are fewer than chains if a proposal fell outside the parameter box.
    pub queries: Vec<Query>,
    /// The queries of each party, in the job's order, if every party is asked at points of its own; else empty. They agree in chains and
    /// kinds; [`Self::queries`] are then those of the first party.
    pub apart: Vec<Vec<Query>>,
    /// The values that become readable from the parties' answers.
    pub opened: Opened,
}

impl Round {
    /// Returns the queries that the party with this index answers.
    #[must_use]
    pub fn queries_of(&self, party: usize) -> &[Query] {
        self.apart.get(party).unwrap_or(&self.queries)
    }

    /// Returns the number of integers of a party's answer in a log. A masked answer has one more, the check.
    #[must_use]
    pub fn logged_length(&self) -> usize {
        self.length() + usize::from(self.opened == Opened::SumAlone)
    }

    /// Returns the digest of the round's message to the parties of a roster with this digest. The masks of their answers are
    /// bound to it.
    #[must_use]
    pub fn digest_under(&self, roster: &[u8; 32]) -> [u8; 32] {
        message_digest(roster, self.iteration, &self.queries)
    }

    /// Returns the number of integers that a party releases over all queries.
    #[must_use]
    pub fn length(&self) -> usize {
        self.queries.iter().map(Query::length).sum()
    }
}

/// Returns the digest of a message with these queries to the parties of a roster with this digest; see
/// [`conclave_privacy::secagg::round_digest`].
#[must_use]
pub fn message_digest(roster: &[u8; 32], iteration: u64, queries: &[Query]) -> [u8; 32] {
    let digest = |Query { chain, kind, from, to, noise }: &Query| {
        SharedQuery { chain: *chain, from, to, kind: kind.code(), noise: noise.units() }.digest()
    };
    let digests: Vec<[u8; 32]> = queries.iter().map(digest).collect();
    // A masked message is only ever sent as attempt 0.
    round_digest(roster, iteration, 0, &digests)
}

/// One state of one chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// The chain, from 0.
    pub chain: u32,
    /// True for a draw of the warm-up.
    pub warmup: bool,
    /// The chain's state after the decision.
    pub theta: Vec<f64>,
    /// True if the proposal was accepted.
    pub accepted: bool,
    /// Noisy log acceptance ratio, penalty and prior included. For `barker`, the value compared with 0, correction included. −∞
    /// for a proposal outside the box.
    pub log_alpha: f64,
    /// The round's number.
    pub iteration: u64,
}
