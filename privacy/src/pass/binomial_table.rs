//! A binomial table: exact inversion of a binomial law by 128-bit thresholds, with further digits only when these do not decide.
//!
//! With a success probability of `j / 2^20`, the distribution function of `m` trials is a multiple of `2^-(20 m)`. Draw a
//! uniform number of `20 m` binary digits and count the values of the distribution function that it reaches. This count has
//! exactly the binomial law. The first 128 digits decide the count unless they equal those of a threshold, which has a
//! probability of at most `m / 2^128`. In that case the other digits are drawn too. Nothing is rounded, so the accounting needs
//! no error term.
//!
//! Proof: `docs/explanation/proofs.md`, section 2.

use num_bigint::BigUint;
use rand::CryptoRng;
use zeroize::Zeroizing;

use crate::accounting::SamplingProbability;

/// Digits of the first draw.
const DIGITS: u32 = u128::BITS;

/// The law of the number of successes in a fixed number of trials.
pub struct BinomialTable {
    trials: u32,
    probability: SamplingProbability,
    /// For each count below `trials`, the first digits of the probability of at most that count, rounded down.
    thresholds: Vec<u128>,
}

impl BinomialTable {
    /// Creates the law of `trials` trials, a few thousand at most.
    pub(super) fn new(trials: u32, probability: SamplingProbability) -> Self {
        let first_digits = |at_most: BigUint| {
            let digits = match digits(trials).checked_sub(DIGITS) {
                Some(behind) => at_most >> behind,
                None => at_most << (DIGITS - digits(trials)),
            };
            // Fits in 128 bits: only the distribution function at `trials`, which is not stored, is certain to be 1.
            u128::try_from(digits).unwrap_or(u128::MAX)
        };
        Self { trials, probability, thresholds: at_most(trials, probability).map(first_digits).collect() }
    }

    /// Returns the number of trials.
    pub(super) fn trials(&self) -> u32 {
        self.trials
    }

    /// Draws the number of successes.
    pub(super) fn count<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> u32 {
        let first = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let below = self.thresholds.partition_point(|threshold| *threshold < first);
        if self.thresholds.get(below) == Some(&first) { self.count_by_all_digits(first, rng) } else { below as u32 }
    }

    /// Draws the remaining digits of a number with these first ones, and returns how many thresholds the number reaches.
    #[cold]
    fn count_by_all_digits<R: CryptoRng + ?Sized>(&self, first: u128, rng: &mut R) -> u32 {
        let Some(behind) = digits(self.trials).checked_sub(DIGITS) else {
            // The thresholds have no further digits.
            return self.thresholds.partition_point(|threshold| *threshold <= first) as u32;
        };
        let mut bytes = Zeroizing::new(vec![0; behind.div_ceil(8) as usize]);
        rng.fill_bytes(&mut bytes);
        let rest = BigUint::from_bytes_le(&bytes) >> (behind.next_multiple_of(8) - behind);
        let number = (BigUint::from(first) << behind) + rest;
        at_most(self.trials, self.probability).take_while(|threshold| number >= *threshold).count() as u32
    }
}

/// Returns the number of binary digits in which the law's distribution function is exact.
fn digits(trials: u32) -> u32 {
    SamplingProbability::LOG2 * trials
}

/// Yields the probability of at most `count` successes for each count below `trials`, in units of 2 to the minus [`digits`]. The
/// values are exact and ascending.
fn at_most(trials: u32, probability: SamplingProbability) -> impl Iterator<Item = BigUint> {
    let success = u64::from(probability.parts());
    let failure = u64::from(SamplingProbability::ONE.parts()) - success;
    let mut exactly = BigUint::from(failure).pow(trials);
    let mut at_most = BigUint::ZERO;
    (0..trials).map(move |count| {
        at_most += &exactly;
        // Pascal's recursion: the quotient is an integer. Both factors are below 2^32 times 2^20.
        exactly *= u64::from(trials - count) * success;
        exactly /= u64::from(count + 1) * failure.max(1);
        at_most.clone()
    })
}
