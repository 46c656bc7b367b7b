//! The longest message that a job sends to a party: all queries of a round are one message, which a party reads whole.

use conclave_privacy::mechanism::QueryKind;

use super::error::JobError;
use super::limits::MAX_CHAINS;
use super::spec::JobSpec;
use super::weights::Weights;
use crate::model::{Influence, Leverage, Remainder, SlopeTable};

/// Maximum size of a coordinator's message to a party, in bytes. A job file has at most 64 KiB, so queries alone can be longer.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Maximum number of queries in a message.
pub const MAX_QUERIES: usize = MAX_CHAINS as usize;

/// Upper bounds in bytes: of a message without its queries, of a query without its numbers, and of a number.
const MESSAGE: usize = 128;
const QUERY: usize = 48;
const NUMBER: usize = 8;

/// Upper bounds of a job's messages to a party.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestMessage {
    /// Queries of one message.
    pub queries: usize,
    /// Bytes of one message.
    pub bytes: usize,
}

impl LongestMessage {
    /// Returns an upper bound of the bytes of a message, from the numbers in each of its queries.
    pub fn bytes_of(numbers: impl Iterator<Item = usize>) -> usize {
        MESSAGE + numbers.map(|numbers| QUERY + NUMBER * numbers).sum::<usize>()
    }

    /// Returns true if every party takes such a message.
    #[must_use]
    pub fn fits(self) -> bool {
        self.queries <= MAX_QUERIES && self.bytes <= MAX_MESSAGE
    }
}

impl JobSpec {
    /// Returns upper bounds of the job's messages, from the model's number of parameters, the chains and the kinds of query that the
    /// algorithm makes.
    #[must_use]
    pub fn longest_message(&self) -> LongestMessage {
        let (d, chains) = (self.support.len(), self.sampler.chains as usize);
        let asks = |kind| self.algorithm.asks(kind);
        let parameters = u32::try_from(d).unwrap_or(u32::MAX).min(QueryKind::MAX_ORDER);
        // A point and its scaling, a matrix and a vector at most; with more parameters there is no such query.
        let vector = if d <= QueryKind::MAX_ORDER as usize { d * (d + 2) } else { 0 };
        let of_chains = if self.algorithm.follows_gradients() { chains } else { 1 };
        // The number of queries in a message, and the numbers in each.
        let mut messages = vec![(1, vector)];
        if self.weights != Weights::Never {
            // A score, an information and a table in a frame; of a count, a table of expectations in each, and the own parameter's two.
            let is_count = matches!(self.model.kind(), "poisson" | "negative_binomial");
            let (queries, table) = if is_count { (4, SlopeTable::LENGTH) } else { (3, 0) };
            messages.push((queries, vector + 2 + Influence::MOST_EDGES + table));
        }
        // R, at the end of a query of weighted chains.
        let trace = usize::from(self.weighs_chains());
        if asks(QueryKind::Gradient { parameters }) {
            messages.push((of_chains, vector + trace));
        }
        if asks(QueryKind::Remainder { parameters }) {
            messages.push((chains, 3 * d + if vector > 0 { Remainder::length(d) + trace } else { 0 }));
        }
        if self.algorithm.proposes() && asks(QueryKind::Ratio) || self.runs_dp_hmc() || self.sampler.stochastic.polish > 0 {
            // Beside the chains' own ratios: a count of clipped units, and a second moment.
            let beside = usize::from(self.privacy.clip.is_some()) + usize::from(asks(QueryKind::SecondMoment));
            // The weights of the records follow each step.
            let weights = if self.weighs_chains() { Leverage::length(d) } else { 0 };
            messages.push((chains + beside, 2 * d + weights));
        }
        if asks(QueryKind::Ratio) {
            // The two ratios of a search's step.
            messages.push((2, 2 * d));
        }
        if self.asks(QueryKind::Choice { candidates: 2 }) {
            messages.push((1, d + self.sampler.ops.candidates as usize * (d + 1)));
        }
        if asks(QueryKind::Statistic { component: 0 }) {
            let model = self.build_model();
            let components = model.statistic().filter(|_| model.tables().is_none()).map_or(0, |s| s.ranges().len());
            messages.push((components * if self.algorithm.proposes() { chains } else { 1 }, 0));
        }
        let bytes = |(queries, numbers): &(usize, usize)| LongestMessage::bytes_of(std::iter::repeat_n(*numbers, *queries));
        LongestMessage {
            queries: messages.iter().map(|(queries, _)| *queries).max().unwrap_or(0),
            bytes: messages.iter().map(bytes).max().unwrap_or(0),
        }
    }

    /// Checks that every message of the job fits the limit of a party.
    ///
    /// # Errors
    /// The key to change, and the largest value with which the messages fit.
    pub(super) fn check_messages(&self) -> Result<(), JobError> {
        let longest = self.longest_message();
        if longest.fits() {
            return Ok(());
        }
        let found = format!(
            "all queries of a round are one message, here of up to {} queries and {} bytes, and a party takes at most {MAX_QUERIES} \
             queries and {MAX_MESSAGE} bytes",
            longest.queries, longest.bytes
        );
        let with = |change: &dyn Fn(&mut Self)| {
            let mut other = self.clone();
            change(&mut other);
            other.longest_message().fits()
        };
        let candidates = self.sampler.ops.candidates;
        if self.asks(QueryKind::Choice { candidates }) {
            let fits = |count: u32| with(&|spec: &mut Self| spec.sampler.ops.candidates = count);
            if let Some(most) = largest(candidates, fits) {
                return Err(JobError::new("sampler.candidates", format!("{found}: write at most {most} candidates")));
            }
        }
        let fits = |chains: u32| with(&|spec: &mut Self| spec.sampler.chains = chains);
        Err(match largest(self.sampler.chains, fits) {
            Some(most) => JobError::new("sampler.chains", format!("{found}: run at most {most} chains")),
            None => JobError::new("model", format!("{found}: use a model with fewer parameters")),
        })
    }
}

/// Returns the largest number below `from` that fits, where all smaller ones fit too; `None` if not even 1 does.
fn largest(from: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (1, from);
    if !fits(low) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

#[cfg(test)]
#[path = "tests/messages.rs"]
mod tests;
