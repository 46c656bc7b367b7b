//! The exponential mechanism over public candidates (McSherry & Talwar 2007): Wang, Fienberg & Smola, *Privacy for Free* (2015), section 3,
//! "one posterior sample", where the candidates are draws of a public law and the log weights make one of them a draw of the posterior.
//!
//! A candidate is drawn in proportion to the exponential of its log weight, exactly: weights are integers, so that the acceptance probability
//! of rejection sampling has a dyadic rational in its exponent, and the coin of that probability is thrown by comparing integers alone. No float is in
//! it.

use rand::Rng;

use super::coins;
use super::sum::LatticeSum;

/// Binary digits of a log weight behind the point: weights are in lattice units, [`super::STEP`].
const DIGITS: u32 = 32;
/// Trials for each candidate that a choice makes in any case. One of them at least is accepted but with a probability of less than
/// `(1 - 1/M)^(75 M) < e^-75 < 2^-108`, as the candidate of the greatest weight always is.
pub const TRIALS_PER_CANDIDATE: u64 = 75;

/// The un-noised log weights of candidates, in lattice units.
///
/// They cannot be printed, compared, copied or serialised: the only way out is a choice.
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::LogWeights;
/// fn shown(weights: LogWeights) -> String {
///     format!("{weights:?}")
/// }
/// ```
/// ```compile_fail
/// # use conclave_privacy::mechanism::LogWeights;
/// fn read(weights: LogWeights) -> i64 {
///     weights.0[0]
/// }
/// ```
/// ```compile_fail
/// # use {conclave_privacy::mechanism::LogWeights, rand::Rng};
/// // One set of weights, one choice.
/// fn twice(weights: LogWeights, rng: &mut impl Rng) -> (u32, u32) {
///     (weights.choose(rng), weights.choose(rng))
/// }
/// ```
/// ```
/// # use {conclave_privacy::mechanism::LogWeights, rand::Rng};
/// fn once(weights: LogWeights, rng: &mut impl Rng) -> u32 {
///     weights.choose(rng)
/// }
/// ```
pub struct LogWeights(Vec<i64>);

impl LogWeights {
    /// The weights of candidates: a sum over the records of each, and what is public of it. Each in lattice units; `None` where there is not
    /// one sum of a single component and one public number for each of 1 to [`super::QueryKind::MAX_CANDIDATES`] candidates.
    #[must_use]
    pub fn new(sums: Vec<LatticeSum>, public: &[i64]) -> Option<Self> {
        let counts = 1..=super::QueryKind::MAX_CANDIDATES as usize;
        if sums.len() != public.len() || !counts.contains(&sums.len()) || sums.iter().any(|sum| sum.length() != 1) {
            return None;
        }
        let whole = |(sum, public): (LatticeSum, &i64)| Some(sum.into_single()?.saturating_add(*public));
        sums.into_iter().zip(public).map(whole).collect::<Option<_>>().map(Self)
    }

    /// How many candidates there are; public.
    #[must_use]
    pub fn candidates(&self) -> usize {
        self.0.len()
    }

    /// The number of a candidate, drawn in proportion to the exponential of its log weight.
    ///
    /// A candidate is taken at random and accepted with probability `exp(w - w_max)`, [`TRIALS_PER_CANDIDATE`] times as often as there are
    /// candidates: the first that is accepted is the choice, and the trials after it are made all the same, so that the time of a choice tells
    /// next to nothing of the weights. Were none accepted, which happens to nobody, it would go on until one is: the law is exact.
    ///
    /// `rng` must be the operating system's, or keyed by it.
    #[must_use]
    pub fn choose<R: Rng>(self, rng: &mut R) -> u32 {
        choose(&self.0, TRIALS_PER_CANDIDATE, rng)
    }

    /// Any numbers as weights, for tests.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn of_units_for_test(units: &[i64]) -> Self {
        Self(units.to_vec())
    }
}

fn choose<R: Rng>(weights: &[i64], trials: u64, rng: &mut R) -> u32 {
    let candidates = weights.len() as u64;
    let greatest = weights.iter().copied().max().unwrap_or(0);
    let mut accepted = None;
    let mut left = trials * candidates;
    while left > 0 || accepted.is_none() {
        let candidate = coins::below(candidates.into(), rng) as usize;
        let short = weights.get(candidate).map_or(u64::MAX, |weight| greatest.abs_diff(*weight));
        if falls(short, rng) && accepted.is_none() {
            accepted = Some(candidate);
        }
        left = left.saturating_sub(1);
    }
    // Below 2^16.
    accepted.unwrap_or(0) as u32
}

/// True with probability `exp(-x)`, `x` in units of 2^-32.
fn falls<R: Rng>(x: u64, rng: &mut R) -> bool {
    const ONE: u64 = 1 << DIGITS;
    coins::falls((x >> DIGITS).into(), ((x & (ONE - 1)).into(), ONE.into()), rng)
}

#[cfg(test)]
#[path = "tests/exponential.rs"]
mod tests;
