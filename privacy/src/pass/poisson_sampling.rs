//! Poisson sampling: each unit of privacy is in the hidden sample with the same public probability, independently of all others.
//!
//! Units are divided into groups. The number of sampled units of a group is drawn from the exact binomial law
//! ([`BinomialTable`]). Uniform places are then drawn until that many distinct ones are marked, so every subset of that size is
//! equally likely. Both steps are exact given uniform random bits, so the sample is exactly Poisson and the sampler uses no
//! delta. The running time is proportional to the sample plus a sixty-fourth of the shard.
//!
//! This module sees no record. The sampled units and their number must stay hidden: knowledge of either would make a release
//! reveal more than its block was charged for.
//!
//! Proof: `docs/explanation/proofs.md`, section 2.

use std::ops::Range;

use rand::CryptoRng;
use zeroize::Zeroizing;

use super::binomial_table::BinomialTable;
use crate::accounting::SamplingProbability;

/// Units per group, a multiple of the word size.
const GROUP: u32 = 1 << 10;
const WORD: u64 = u64::BITS as u64;

/// The law of a Poisson sample of a fixed number of units.
pub struct PoissonSampling {
    units: u64,
    /// The probability that samples are charged for.
    charged: SamplingProbability,
    /// The law of a whole group; `None` if there is no whole group.
    group: Option<BinomialTable>,
    /// The law of the units after the last whole group.
    rest: Option<BinomialTable>,
}

impl PoissonSampling {
    /// Prepares samples of `units` units at this probability. Takes a few milliseconds.
    #[must_use]
    pub fn new(units: u64, probability: SamplingProbability) -> Self {
        let table = |trials: u64| (trials > 0).then(|| BinomialTable::new(trials as u32, probability));
        let group = table(if units < GROUP.into() { 0 } else { GROUP.into() });
        Self { units, charged: probability, group, rest: table(units % u64::from(GROUP)) }
    }

    /// Returns a sampling law of larger probability, whose mean size is `q n + 12 sqrt(q n) + 64` units, or `n` if that is
    /// less. By Bernstein's inequality, a sample of the given law exceeds that size with a probability below 2^-100. The
    /// returned law serves to measure the slowest answer on simulated records: its samples state the probability of the given
    /// law, so that they are answered like those of a job.
    #[must_use]
    pub fn at_largest_size(&self) -> Self {
        let mean = self.charged.get() * self.units as f64;
        let most = (mean + 12.0 * mean.sqrt() + 64.0) / self.units.max(1) as f64;
        let larger = SamplingProbability::at_least(most.min(1.0)).unwrap_or(SamplingProbability::ONE);
        Self { charged: self.charged, ..Self::new(self.units, larger) }
    }

    /// Returns the number of units that are sampled from.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Draws a sample, independent of all others.
    ///
    /// The generator must be cryptographic and keyed by the operating system: sampling gives no protection against anyone who can
    /// predict the sample.
    pub fn sample<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> HiddenSample {
        // Allocated once, at the same size for every sample.
        let mut words = Zeroizing::new(vec![0; self.units.div_ceil(WORD) as usize]);
        let mut groups = words.chunks_mut((GROUP / u64::BITS) as usize);
        let whole = self.group.iter().cycle().take((self.units / u64::from(GROUP)) as usize);
        for (table, group) in whole.chain(&self.rest).zip(&mut groups) {
            choose(table, group, rng);
        }
        HiddenSample { words, units: self.units, probability: self.charged }
    }
}

/// Marks the sampled places of a group. No place may be marked on entry.
fn choose<R: CryptoRng + ?Sized>(table: &BinomialTable, group: &mut [u64], rng: &mut R) {
    let (size, count) = (table.trials(), table.count(rng));
    // If more than half are sampled, draws the complement instead, so that about two draws at most find a new place.
    let left_out = count > size / 2;
    let mut missing = if left_out { size - count } else { count };
    while missing > 0 {
        let place = below(size, rng);
        let (word, bit) = (&mut group[(place / u64::BITS) as usize], 1 << (place % u64::BITS));
        missing -= u32::from(*word & bit == 0);
        *word |= bit;
    }
    if left_out {
        for (word, first) in group.iter_mut().zip((0..).step_by(u64::BITS as usize)) {
            let places = (size - first).min(u64::BITS);
            *word = !*word & (u64::MAX >> (u64::BITS - places));
        }
    }
}

/// Returns a uniform number below `size`, which is at least 1.
fn below<R: CryptoRng + ?Sized>(size: u32, rng: &mut R) -> u32 {
    let digits = size.next_power_of_two() - 1;
    loop {
        let number = rng.next_u32() & digits;
        if number < size {
            return number;
        }
    }
}

/// The units that one release sums. A sample is used for one release, and its memory is then overwritten.
///
/// Anyone who sees it knows what the release's price assumes to be hidden. So it cannot be copied, compared, printed or
/// serialised.
///
/// ```compile_fail
/// # use conclave_privacy::pass::HiddenSample;
/// fn twice(sample: HiddenSample) -> (HiddenSample, HiddenSample) {
///     (sample.clone(), sample)
/// }
/// ```
#[must_use = "an unused sample is wasted"]
pub struct HiddenSample {
    /// One bit for each unit.
    words: Zeroizing<Vec<u64>>,
    units: u64,
    probability: SamplingProbability,
}

impl HiddenSample {
    /// Returns the number of units that are sampled from. The size of the sample itself is secret.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Returns the public probability of each unit to be sampled that the sample is charged for.
    #[must_use]
    pub fn probability(&self) -> SamplingProbability {
        self.probability
    }

    /// Returns the numbers of the sampled units within `units`, ascending.
    pub(in crate::pass) fn within(&self, units: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let units = units.start.min(self.units)..units.end.min(self.units);
        let words = units.start / WORD..units.end.div_ceil(WORD);
        let of_word = move |at: u64| {
            let mut word = self.words[at as usize];
            std::iter::from_fn(move || {
                let place = word.trailing_zeros();
                word &= word.wrapping_sub(1);
                (place < u64::BITS).then_some(at * WORD + u64::from(place))
            })
        };
        words.flat_map(of_word).filter(move |unit| units.contains(unit))
    }
}

#[cfg(any(test, feature = "test-util"))]
impl HiddenSample {
    /// Returns the sampled units, for tests on simulated records only.
    #[must_use]
    pub fn open_for_test(&self) -> Vec<u64> {
        self.within(0..self.units).collect()
    }
}
