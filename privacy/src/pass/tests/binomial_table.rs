//! Counts from the table against the binomial law in integers, with numbers at and away from its thresholds.

use std::convert::Infallible;

use num_bigint::BigUint;
use rand::{SeedableRng, TryCryptoRng, TryRng};
use rand_chacha::ChaCha20Rng;

use crate::accounting::SamplingProbability;
use crate::pass::binomial_table::BinomialTable;

/// A generator of exactly these bytes.
struct Scripted(std::vec::IntoIter<u8>);

impl Scripted {
    /// Creates it from the first digits, drawn together, and the others.
    fn new(first: u128, rest: &[u8]) -> Self {
        let words = [(first >> 64) as u64, first as u64].map(u64::to_le_bytes).concat();
        Self([&words, rest].concat().into_iter())
    }
}

impl TryRng for Scripted {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        panic!("counts are drawn from 64 bits at a time")
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill_with(|| self.0.next().expect("no more digits than are needed"));
        Ok(())
    }
}

impl TryCryptoRng for Scripted {}

fn probability(parts: u32) -> SamplingProbability {
    SamplingProbability::from_parts(parts).unwrap()
}

/// Returns, for each count below `trials`, the probability of at most that count, in units of 2^(-20 trials), by Pascal's
/// triangle.
fn law(trials: u32, parts: u32) -> Vec<BigUint> {
    let mut row = vec![BigUint::from(1_u32)];
    for _ in 0..trials {
        let mut next = vec![BigUint::ZERO; row.len() + 1];
        for (successes, weight) in row.iter().enumerate() {
            next[successes] += weight * ((1 << 20) - parts);
            next[successes + 1] += weight * parts;
        }
        row = next;
    }
    let mut sum = BigUint::ZERO;
    let mut sums: Vec<BigUint> = row
        .into_iter()
        .map(|weight| {
            sum += weight;
            sum.clone()
        })
        .collect();
    assert_eq!(sums.pop(), Some(BigUint::from(1_u32) << (20 * trials)));
    sums
}

/// Returns the count for a number of `20 trials` digits (at least 128): how many of the law's sums it reaches.
fn count(table: &BinomialTable, number: &BigUint) -> u32 {
    let trials = table.trials();
    let behind = (20 * trials).saturating_sub(128);
    let first = u128::try_from(if 20 * trials < 128 { number << (128 - 20 * trials) } else { number >> behind }).unwrap();
    let rest = (number % (BigUint::from(1_u32) << behind)) << (behind.next_multiple_of(8) - behind);
    let mut bytes = rest.to_bytes_le();
    bytes.resize(behind.div_ceil(8) as usize, 0);
    table.count(&mut Scripted::new(first, &bytes))
}

/// At every sum, and one unit below it, the count follows the law; in between it does by monotonicity.
#[test]
fn a_count_has_the_binomial_law_to_the_last_digit() {
    for (trials, parts) in
        [(1, 1), (1, (1 << 20) - 1), (3, 77), (6, 1 << 19), (7, 5), (8, 1 << 19), (29, 12_345), (97, 1), (150, 999_999)]
    {
        let (table, law) = (BinomialTable::new(trials, probability(parts)), law(trials, parts));
        let one = BigUint::from(1_u32);
        for (successes, sum) in (0..).zip(&law) {
            assert_eq!(count(&table, &(sum - &one)), successes, "{trials} {parts}: below the sum of {successes}");
            assert_eq!(count(&table, sum), successes + 1, "{trials} {parts}: at the sum of {successes}");
        }
        assert_eq!(count(&table, &BigUint::ZERO), 0);
        assert_eq!(count(&table, &((&one << (20 * trials)) - &one)), trials);
    }
}

#[test]
fn certain_success_counts_all() {
    for trials in [1, 6, 7, 1024] {
        let table = BinomialTable::new(trials, SamplingProbability::ONE);
        for number in [0_u32, 1, 12_345] {
            assert_eq!(count(&table, &BigUint::from(number)), trials);
        }
    }
}

/// A whole group's table: the law's mean and variance, `m q` and `m q (1 - q)`, in exact arithmetic over its sums.
#[test]
fn a_whole_groups_law_has_the_binomial_moments() {
    let (trials, parts) = (1024_u32, 52_429_u32);
    let table = BinomialTable::new(trials, probability(parts));
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let draws = 20_000;
    let counts: Vec<f64> = (0..draws).map(|_| f64::from(table.count(&mut rng))).collect();
    let q = f64::from(parts) / f64::from(1 << 20);
    let (mean, variance) = (1024.0 * q, 1024.0 * q * (1.0 - q));
    let found = counts.iter().sum::<f64>() / f64::from(draws);
    let spread = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / f64::from(draws);
    // Standard errors: sqrt(variance / draws) and, approximately, variance sqrt(2 / draws); six of them.
    assert!((found - mean).abs() < 6.0 * (variance / f64::from(draws)).sqrt(), "{found} {mean}");
    assert!((spread / variance - 1.0).abs() < 6.0 * (2.0 / f64::from(draws)).sqrt(), "{spread} {variance}");
}
