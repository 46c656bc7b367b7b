//! Poisson sampling: each unit of privacy is in the hidden sample with the same public probability, independently of all others.
//!
//! Units are cut into groups. How many of a group are in the sample is drawn from the exact binomial law ([`BinomialTable`]), and which of
//! them by drawing places until so many different ones are hit: given the count every set of that size is as likely as any other. Both steps
//! are exact on a generator whose bits are, so a sample is Poisson's to the last digit: nothing has to be added to any delta for how it is
//! made. It takes time in proportion to the sample, and a sixty-fourth of the shard.
//!
//! Nothing here sees a record. Which units a sample has, and how many, must stay hidden: given either, a release tells more than a block was
//! charged for.

use std::ops::Range;

use rand::CryptoRng;
use zeroize::Zeroizing;

use super::binomial_table::BinomialTable;
use crate::accounting::SamplingProbability;

/// Units of a group: a whole number of words.
const GROUP: u32 = 1 << 10;
const WORD: u64 = u64::BITS as u64;

/// The law of samples of a number of units.
pub struct PoissonSampling {
    units: u64,
    probability: SamplingProbability,
    /// Of a whole group; `None` where there is none.
    group: Option<BinomialTable>,
    /// Of the units behind the last whole group.
    rest: Option<BinomialTable>,
}

impl PoissonSampling {
    /// Samples of so many units, each of which is in one with this probability. Takes some milliseconds.
    #[must_use]
    pub fn new(units: u64, probability: SamplingProbability) -> Self {
        let table = |trials: u64| (trials > 0).then(|| BinomialTable::new(trials as u32, probability));
        let group = table(if units < GROUP.into() { 0 } else { GROUP.into() });
        Self { units, probability, group, rest: table(units % u64::from(GROUP)) }
    }

    /// Samples as large as one of these ever is, but once in 2^100: of `q n` units on average, `q n + 12 sqrt(q n) + 64` by Bernstein's
    /// inequality. For whoever measures how long the slowest answer takes.
    #[must_use]
    pub fn at_its_largest(&self) -> Self {
        let mean = self.probability.get() * self.units as f64;
        let most = (mean + 12.0 * mean.sqrt() + 64.0) / self.units.max(1) as f64;
        Self::new(self.units, SamplingProbability::at_least(most.min(1.0)).unwrap_or(SamplingProbability::ONE))
    }

    /// Number of units that samples are of.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// A sample, independent of all others.
    ///
    /// The generator must be cryptographic and seeded by the operating system: whoever foresees a sample has no noise of sampling before him.
    pub fn sample<R: CryptoRng + ?Sized>(&self, rng: &mut R) -> HiddenSample {
        // Allocated once, and as large for every sample.
        let mut words = Zeroizing::new(vec![0; self.units.div_ceil(WORD) as usize]);
        let mut groups = words.chunks_mut((GROUP / u64::BITS) as usize);
        let whole = self.group.iter().cycle().take((self.units / u64::from(GROUP)) as usize);
        for (table, group) in whole.chain(&self.rest).zip(&mut groups) {
            choose(table, group, rng);
        }
        HiddenSample { words, units: self.units }
    }
}

/// Marks the places of a group that are in the sample; none is marked yet.
fn choose<R: CryptoRng + ?Sized>(table: &BinomialTable, group: &mut [u64], rng: &mut R) {
    let (size, count) = (table.trials(), table.count(rng));
    // Of more than half the others are drawn: no more than about two draws find a new one.
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

/// A number from 0 to below `size`, at least 1, each as likely.
fn below<R: CryptoRng + ?Sized>(size: u32, rng: &mut R) -> u32 {
    let digits = size.next_power_of_two() - 1;
    loop {
        let number = rng.next_u32() & digits;
        if number < size {
            return number;
        }
    }
}

/// The units that one release adds up: used for one release, and overwritten when it goes.
///
/// Whoever sees it knows what the release's price takes to be hidden. So it can't be copied, compared, printed or serialised.
///
/// ```compile_fail
/// # use conclave_privacy::pass::HiddenSample;
/// fn twice(sample: HiddenSample) -> (HiddenSample, HiddenSample) {
///     (sample.clone(), sample)
/// }
/// ```
#[must_use = "a sample that is not used was drawn for nothing"]
pub struct HiddenSample {
    /// One bit for each unit.
    words: Zeroizing<Vec<u64>>,
    units: u64,
}

impl HiddenSample {
    /// Number of units that it is a sample of; its own size is nobody's to know.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The numbers of its units within `units`, ascending.
    pub fn within(&self, units: Range<u64>) -> impl Iterator<Item = u64> + '_ {
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
    /// Its units, for tests on made-up records alone.
    #[must_use]
    pub fn open_for_test(&self) -> Vec<u64> {
        self.within(0..self.units).collect()
    }
}
