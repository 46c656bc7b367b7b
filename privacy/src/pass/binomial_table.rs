//! A binomial table inverts a binomial law exactly: thresholds of 128 bits, and the rest of the digits where those do not decide.
//!
//! With a success probability of `j / 2^20` the distribution function of `m` trials is a whole number of `2^-(20 m)`. A uniform number of
//! `20 m` binary digits so has exactly the law, where as many of those whole numbers are counted as it is not below. Its first 128 digits
//! decide that alone unless they are those of a threshold, once in `2^128 / m` numbers: then the others are drawn too. Nothing is rounded,
//! so a count is binomial without any error that would have to be accounted for.

use num_bigint::BigUint;
use rand::CryptoRng;
use zeroize::Zeroizing;

use crate::accounting::SamplingProbability;

/// Digits that are drawn at once.
const DIGITS: u32 = u128::BITS;

/// The law of how many of some trials succeed.
pub struct BinomialTable {
    trials: u32,
    probability: SamplingProbability,
    /// Of each count below `trials` the first digits of the probability of that many or fewer, rounded down.
    thresholds: Vec<u128>,
}

impl BinomialTable {
    /// The law of so many trials, a few thousand at most.
    pub(super) fn new(trials: u32, probability: SamplingProbability) -> Self {
        let first_digits = |at_most: BigUint| {
            let digits = match digits(trials).checked_sub(DIGITS) {
                Some(behind) => at_most >> behind,
                None => at_most << (DIGITS - digits(trials)),
            };
            // Below 2^128: no count but the last is certain not to be passed.
            u128::try_from(digits).unwrap_or(u128::MAX)
        };
        Self { trials, probability, thresholds: at_most(trials, probability).map(first_digits).collect() }
    }

    /// Number of trials.
    pub(super) fn trials(&self) -> u32 {
        self.trials
    }

    /// How many succeed.
    pub(super) fn count<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> u32 {
        let first = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let below = self.thresholds.partition_point(|threshold| *threshold < first);
        if self.thresholds.get(below) == Some(&first) { self.count_by_all_digits(first, rng) } else { below as u32 }
    }

    /// How many thresholds the number of these first digits is not below.
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

/// Binary digits of the law of so many trials.
fn digits(trials: u32) -> u32 {
    SamplingProbability::LOG2 * trials
}

/// Of each count below `trials` the probability of that many or fewer, in units of 2 to the minus [`digits`]: exact, and ascending.
fn at_most(trials: u32, probability: SamplingProbability) -> impl Iterator<Item = BigUint> {
    let success = u64::from(probability.parts());
    let failure = u64::from(SamplingProbability::ONE.parts()) - success;
    let mut exactly = BigUint::from(failure).pow(trials);
    let mut at_most = BigUint::ZERO;
    (0..trials).map(move |count| {
        at_most += &exactly;
        // Pascal: the quotient is a whole number. Both factors are below 2^32 times 2^20.
        exactly *= u64::from(trials - count) * success;
        exactly /= u64::from(count + 1) * failure.max(1);
        at_most.clone()
    })
}
