//! The exponential mechanism over public candidates (McSherry & Talwar 2007).
//!
//! It implements "one posterior sample" (Wang, Fienberg & Smola, *Privacy for Free*, 2015, section 3). The candidates are draws
//! of a public law. Their log weights make the chosen candidate a draw from the posterior.
//!
//! A candidate is drawn with probability proportional to the exponential of its log weight, exactly. Weights are integers, so
//! each acceptance probability of the rejection sampling is the exponential of a dyadic rational. Its coin is thrown by
//! comparing integers, without floats.

use rand::{CryptoRng, Rng};

use super::coins;

/// Binary digits of a log weight after the point: weights are in lattice units, [`super::STEP`].
const DIGITS: u32 = 32;
/// The minimum number of trials of a choice, per candidate. A proposal of the candidate of greatest weight is always accepted.
/// So with `M` candidates the probability that no trial accepts is below `(1 - 1/M)^(75 M) < e^-75 < 2^-108`.
pub const TRIALS_PER_CANDIDATE: u64 = 75;

/// The un-noised log weights of candidates, in lattice units.
///
/// They cannot be printed, compared, copied or serialised: they leave only through a choice.
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
///     weights.weights[0]
/// }
/// ```
/// ```compile_fail
/// # use {conclave_privacy::{accounting::Cover, mechanism::LogWeights}, rand::CryptoRng};
/// // One set of weights, one choice.
/// fn twice(weights: LogWeights, charge: &Cover, rng: &mut impl CryptoRng) -> (Option<u32>, Option<u32>) {
///     (weights.release(charge, rng), weights.release(charge, rng))
/// }
/// ```
/// ```
/// # use {conclave_privacy::{accounting::Cover, mechanism::LogWeights}, rand::CryptoRng};
/// fn once(weights: LogWeights, charge: &Cover, rng: &mut impl CryptoRng) -> Option<u32> {
///     weights.release(charge, rng)
/// }
/// ```
pub struct LogWeights {
    pub(crate) weights: Vec<i64>,
    pub(crate) most: u64,
    pub(crate) records: u32,
}

impl LogWeights {
    /// Creates log weights in lattice units, at least one. One unit of privacy, with up to `records` records, contributes at most
    /// `most` to each.
    pub(crate) fn new(weights: Vec<i64>, most: u64, records: u32) -> Self {
        Self { weights, most, records }
    }

    /// Draws a candidate by all trials.
    pub(crate) fn draw<R: CryptoRng>(&self, rng: &mut R) -> u32 {
        choose(&self.weights, TRIALS_PER_CANDIDATE, rng)
    }

    /// Chooses without a charge, for tests on simulated records only.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn choose<R: CryptoRng>(self, rng: &mut R) -> u32 {
        self.draw(rng)
    }

    /// Creates log weights from any integers, for tests.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn of_units_for_test(units: &[i64]) -> Self {
        Self::new(units.to_vec(), 0, u32::MAX)
    }
}

fn choose<R: Rng>(weights: &[i64], trials: u64, rng: &mut R) -> u32 {
    let candidates = weights.len() as u64;
    let greatest = weights.iter().copied().max().unwrap_or(0);
    let mut accepted = None;
    let mut left = trials * candidates;
    while left > 0 || accepted.is_none() {
        let candidate = coins::uniform_below(candidates.into(), rng) as usize;
        let short = weights.get(candidate).map_or(u64::MAX, |weight| greatest.abs_diff(*weight));
        if bernoulli_exp(short, rng) && accepted.is_none() {
            accepted = Some(candidate);
        }
        left = left.saturating_sub(1);
    }
    // Below 2^16.
    accepted.unwrap_or(0) as u32
}

/// Returns true with probability `exp(-x)`, for `x` in units of 2^-32.
fn bernoulli_exp<R: Rng>(x: u64, rng: &mut R) -> bool {
    const ONE: u64 = 1 << DIGITS;
    coins::bernoulli_exp((x >> DIGITS).into(), ((x & (ONE - 1)).into(), ONE.into()), rng)
}

#[cfg(test)]
#[path = "tests/exponential.rs"]
mod tests;
