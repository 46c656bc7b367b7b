//! Samples are Poisson's: counts and places by chi-square, and independence of units, groups and releases.

use crate::accounting::SamplingProbability;
use crate::pass::{HiddenSample, PoissonSampling};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, Discrete};

fn probability(q: f64) -> SamplingProbability {
    SamplingProbability::at_least(q).unwrap()
}

fn samples(units: u64, q: f64, releases: usize, seed: u64) -> Vec<Vec<u64>> {
    let sampling = PoissonSampling::new(units, probability(q));
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..releases).map(|_| sampling.sample(&mut rng).open_for_test()).collect()
}

/// Checks both tail probabilities of a chi-square: neither is below 1e-7 if the law is right.
fn is_ordinary(found: f64, degrees: f64) -> bool {
    let law = ChiSquared::new(degrees).unwrap();
    law.sf(found) > 1e-7 && law.cdf(found) > 1e-7
}

#[test]
fn units_are_ascending_different_and_of_the_shard() {
    for units in [0, 1, 5, 63, 64, 65, 1023, 1024, 1025, 2048, 3000] {
        for q in [1e-6, 0.01, 0.5, 0.99, 1.0] {
            for sample in samples(units, q, 20, units) {
                assert!(sample.windows(2).all(|pair| pair[0] < pair[1]));
                assert!(sample.last().is_none_or(|last| *last < units));
                assert!(q < 1.0 || sample.len() as u64 == units);
            }
        }
    }
}

/// Counts of whole groups and of the remainder after the last one, against the binomial law.
#[test]
fn counts_of_groups_are_binomial() {
    for (q, seed) in [(0.003, 1), (0.3, 2), (0.97, 3)] {
        let (releases, units) = (4000, 2 * 1024 + 300);
        let samples = samples(units, q, releases, seed);
        for group in [0..1024, 1024..2048, 2048..units] {
            let size = group.end - group.start;
            let mut seen = vec![0_u32; size as usize + 1];
            for sample in &samples {
                seen[sample.iter().filter(|unit| group.contains(unit)).count()] += 1;
            }
            // The law's exact q: a multiple of 2^-20.
            let law = Binomial::new(probability(q).get(), size).unwrap();
            let (mut statistic, mut cells, mut expected, mut observed) = (0.0, 0.0, 0.0, 0.0);
            for (count, seen) in seen.iter().enumerate() {
                expected += law.pmf(count as u64) * releases as f64;
                observed += f64::from(*seen);
                // Counts are pooled until five are expected.
                if expected >= 5.0 {
                    statistic += (observed - expected).powi(2) / expected;
                    (cells, expected, observed) = (cells + 1.0, 0.0, 0.0);
                }
            }
            assert!(cells > 5.0 && is_ordinary(statistic, cells), "{q} {group:?}: {statistic} of {cells}");
        }
    }
}

/// Every place, and every two adjacent places, are in a sample with the right frequency: within and across groups.
#[test]
fn places_are_alike_and_independent() {
    for (q, seed) in [(0.02, 4), (0.25, 5), (0.8, 6)] {
        let (units, releases) = (1024 + 700_u64, 3000);
        let p = probability(q).get();
        let mut alone = vec![0_u32; units as usize];
        let mut beside = vec![0_u32; units as usize];
        for sample in samples(units, q, releases, seed) {
            let mut within = vec![false; units as usize];
            sample.iter().for_each(|unit| within[*unit as usize] = true);
            for unit in 0..units as usize {
                alone[unit] += u32::from(within[unit]);
                beside[unit] += u32::from(within[unit] && within[(unit + 1) % units as usize]);
            }
        }
        let spread = |seen: &[u32], p: f64| {
            let mean = p * releases as f64;
            seen.iter().map(|n| (f64::from(*n) - mean).powi(2) / (mean * (1.0 - p))).sum::<f64>()
        };
        assert!(is_ordinary(spread(&alone, p), units as f64), "{q}: {}", spread(&alone, p));
        // Neighbouring pairs share a unit. The mean of each square stays 1, and the sum's standard deviation grows by a factor
        // below 2.
        let pairs = spread(&beside, p * p) - units as f64;
        assert!(pairs.abs() < 6.0 * 2.0 * (2.0 * units as f64).sqrt(), "{q}: {pairs}");
    }
}

/// Two releases share a binomial part of all places; a reused sample would share all of it.
#[test]
fn releases_have_samples_of_their_own() {
    for (q, seed) in [(0.05, 7), (0.5, 8)] {
        let (units, releases) = (2500_u64, 400);
        let samples = samples(units, q, releases, seed);
        let shared: usize =
            samples.chunks(2).map(|two| two[0].iter().filter(|unit| two[1].binary_search(unit).is_ok()).count()).sum();
        let (places, p) = (units as f64 * releases as f64 / 2.0, probability(q).get().powi(2));
        assert!((shared as f64 - places * p).abs() < 6.0 * (places * p * (1.0 - p)).sqrt(), "{q}: {shared}");
        assert!(samples.windows(2).all(|two| two[0] != two[1]));
    }
}

/// The lowest possible probability, and the highest below 1: one unit in a million is in a sample, or out of it.
#[test]
fn the_ends_of_the_probability() {
    let (units, releases) = (1_u64 << 20, 60);
    for (parts, left_out) in [(1, false), ((1 << 20) - 1, true)] {
        let sampling = PoissonSampling::new(units, SamplingProbability::from_parts(parts).unwrap());
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let rare = |sample: HiddenSample| {
            let sampled = sample.within(0..units).count() as u64;
            if left_out { units - sampled } else { sampled }
        };
        let total: u64 = (0..releases).map(|_| rare(sampling.sample(&mut rng))).sum();
        // Poisson with mean 60: outside of 20 to 115 less than once in 10^8 times.
        assert!((20..=115).contains(&total), "{parts}: {total}");
    }
}

/// A part of a sample equals the whole sample in that range.
#[test]
fn parts_of_a_sample() {
    let sampling = PoissonSampling::new(3000, probability(0.3));
    let sample = sampling.sample(&mut ChaCha20Rng::seed_from_u64(10));
    let all = sample.open_for_test();
    for (from, to) in [(0, 3000), (0, 0), (1, 64), (63, 65), (64, 128), (1000, 2999), (2999, 3000), (2990, 9999), (5000, 6000)] {
        let part: Vec<u64> = sample.within(from..to).collect();
        assert_eq!(part, all.iter().copied().filter(|unit| (from..to).contains(unit)).collect::<Vec<_>>(), "{from} {to}");
    }
}

#[test]
fn the_largest_sample_is_rarely_exceeded() {
    for (units, q) in [(1_000_000_u64, 0.001), (100_000, 0.2), (50, 0.5)] {
        let sampling = PoissonSampling::new(units, probability(q));
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        let mean = q * units as f64;
        let largest = sampling.at_largest_size().sample(&mut rng).within(0..units).count() as f64;
        let ordinary = sampling.sample(&mut rng).within(0..units).count() as f64;
        // Within six standard deviations of the intended value; all units where there are no more.
        let most = (mean + 12.0 * mean.sqrt() + 64.0).min(units as f64);
        assert!((largest - most).abs() <= 6.0 * most.sqrt() && ordinary <= most, "{units} {q}: {largest} {ordinary} {most}");
    }
}
