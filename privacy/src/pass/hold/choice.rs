//! The log weights of a choice, made of un-noised sums, and the choice by them.

use rand::CryptoRng;

use super::sum::LatticeSum;
use crate::accounting::{Adjacency, Cover};
use crate::mechanism::{LogWeights, QueryKind};

/// Returns the log weights of a choice's candidates, in lattice units. Each is the candidate's sum over the records plus its
/// public number.
///
/// Returns `None` unless there are 1 to [`QueryKind::MAX_CANDIDATES`] sums of one component each, and as many public numbers.
#[must_use]
pub fn log_weights(sums: Vec<LatticeSum>, public: &[i64]) -> Option<LogWeights> {
    let counts = 1..=QueryKind::MAX_CANDIDATES as usize;
    if sums.len() != public.len() || !counts.contains(&sums.len()) || sums.iter().any(|sum| sum.length() != 1) {
        return None;
    }
    let most = sums.iter().map(|sum| sum.between(Adjacency::AddRemove)).max().unwrap_or(0);
    let records = sums.iter().map(LatticeSum::records_per_unit).min().unwrap_or(0);
    let whole = |(sum, public): (LatticeSum, &i64)| Some(sum.into_single()?.saturating_add(*public));
    let weights = sums.into_iter().zip(public).map(whole).collect::<Option<_>>()?;
    Some(LogWeights::new(weights, most, records))
}

impl LogWeights {
    /// Returns whether the charge covers a choice by these log weights: one unit of privacy, with all its records, contributes at
    /// most the charged sensitivity to each, and there is one for each charged candidate.
    fn is_covered(&self, Cover { priced, unit, .. }: &Cover) -> bool {
        priced.kind().candidates().is_some_and(|candidates| candidates as usize == self.weights.len())
            && self.most <= priced.sensitivity().units()
            && self.records >= unit.records_per_person().unwrap_or(1)
    }

    /// Draws a candidate with probability proportional to the exponential of its log weight, and returns its number; `None` if
    /// the charge does not cover these weights.
    ///
    /// Each trial proposes a uniform candidate and accepts it with probability `exp(w - w_max)`. There are
    /// [`TRIALS_PER_CANDIDATE`] trials per candidate. The first accepted candidate is the choice, and the remaining trials still
    /// run, so that the running time reveals almost nothing about the weights. If no trial accepts, which has probability below
    /// 2^-108, further trials run until one does. The law is therefore exact.
    ///
    /// `rng` must be the operating system's generator, or keyed by it.
    ///
    /// Proof: `docs/explanation/proofs.md`, section 2.
    #[must_use]
    pub fn release<R: CryptoRng>(self, charge: &Cover, rng: &mut R) -> Option<u32> {
        self.is_covered(charge).then(|| self.draw(rng))
    }
}
