//! The discrete Gaussian: detailed balance by enumeration, samples against its probabilities.

use rand::distr::Distribution;

use super::*;

/// Returns the probabilities of the discrete Gaussian at -reach ..= reach.
fn masses(s: f64) -> Vec<(f64, f64)> {
    let reach = (40.0 * s).ceil() as i32 + 1;
    let weight = |z: i32| (-0.5 * (f64::from(z) / s).powi(2)).exp();
    let norm: f64 = (-reach..=reach).map(weight).sum();
    (-reach..=reach).map(|z| (f64::from(z), weight(z) / norm)).collect()
}

/// Returns `E min(1, e^(d + Z - variance/2))` for `Z` with these values and probabilities.
fn acceptance(noise: &[(f64, f64)], step: f64, variance: f64, d: f64) -> f64 {
    noise.iter().map(|(z, p)| p * (d + step * z - 0.5 * variance).min(0.0).exp()).sum()
}

/// Returns the largest departure from detailed balance over several log ratios.
fn imbalance(noise: &[(f64, f64)], step: f64, variance: f64) -> f64 {
    let departure = |d: f64| (acceptance(noise, step, variance, d) - d.exp() * acceptance(noise, step, variance, -d)).abs();
    (0..=60).map(|i| departure(-1.5 + f64::from(i) * 0.0517)).fold(0.0, f64::max)
}

#[test]
fn detailed_balance_is_exact_on_the_lattice() {
    for s in 1..=8 {
        let s = f64::from(s);
        // The step for which s^2 step equals this integer.
        for integer in 1..=6 {
            let step = f64::from(integer) / (s * s);
            let off = imbalance(&masses(s), step, s * s * step * step);
            assert!(off < 1e-13, "s {s}, s^2 g = {integer}: {off}");
        }
    }
}

#[test]
fn detailed_balance_fails_off_the_grid() {
    // The test above would be worthless if it could not detect a wrong grid or a wrong penalty.
    for s in 1..=8 {
        let s = f64::from(s);
        for not_integer in [0.5, 1.5, 2.5] {
            let step = not_integer / (s * s);
            let off = imbalance(&masses(s), step, s * s * step * step);
            assert!(off > 1e-5, "s {s}, s^2 g = {not_integer}: {off}");
        }
        let step = 2.0 / (s * s);
        assert!(imbalance(&masses(s), step, s * s * step * step * 0.9) > 1e-5);
        assert!(imbalance(&masses(s), step, 0.0) > 1e-3);
    }
}

#[test]
fn detailed_balance_survives_parties_with_different_noise() {
    let (a, b) = (masses(2.0), masses(3.0));
    let total: Vec<(f64, f64)> = a.iter().flat_map(|(x, p)| b.iter().map(move |(y, q)| (x + y, p * q))).collect();
    for step in [0.25, 1.0] {
        // 4 g and 9 g are integers for g = 1 but not for g = 1/4.
        let off = imbalance(&total, step, 13.0 * step * step);
        assert_eq!(off < 1e-13, step == 1.0, "{step}: {off}");
    }
}

/// Returns the law of a sum of independent discrete Gaussians with these variances, by direct convolution.
fn masses_of_sum(variances: &[f64]) -> Vec<(f64, f64)> {
    let mut law = vec![1.0];
    for variance in variances {
        let one = masses(variance.sqrt());
        let mut next = vec![0.0; law.len() + one.len() - 1];
        for (at, p) in law.iter().enumerate() {
            for (to, (_, q)) in next[at..].iter_mut().zip(&one) {
                *to += p * q;
            }
        }
        law = next;
    }
    let middle = (law.len() / 2) as f64;
    law.into_iter().enumerate().map(|(at, p)| (at as f64 - middle, p)).collect()
}

/// Returns the largest relative departure over log ratios in [-3, 3].
fn relative_imbalance(noise: &[(f64, f64)], step: f64, variance: f64) -> f64 {
    let of = |d: f64| {
        let (there, back) = (acceptance(noise, step, variance, d), d.exp() * acceptance(noise, step, variance, -d));
        (there - back).abs() / there.max(back)
    };
    (0..=240).map(|i| of(-3.0 + f64::from(i) * 0.025)).fold(0.0, f64::max)
}

/// Checks section 3 and the table of SECURE-AGGREGATION. For a sum of several parties' noise, balance is exact if each party's
/// own variance times the step is an integer. It is broken if only the sum of the variances satisfies this.
#[test]
fn detailed_balance_of_a_sum_needs_every_partys_noise_on_the_grid() {
    let worst = |step: f64, variances: &[f64]| {
        relative_imbalance(&masses_of_sum(variances), step, step * step * variances.iter().sum::<f64>())
    };
    for (step, variances) in [(1.0, vec![1.0, 4.0, 9.0]), (0.5, vec![2.0, 4.0, 6.0]), (1.0 / 16.0, vec![16.0; 10])] {
        let off = worst(step, &variances);
        assert!(off < 1e-14, "{step}, {variances:?}: {off:e}");
    }
    let broken =
        [(1.0, vec![0.5, 0.5], 4.5e-3), (1.0, vec![0.25; 4], 6.2e-2), (0.5, vec![1.0, 1.0], 1.0e-5), (1.0, vec![1.0, 1.5], 5e-2)];
    for (step, variances, tabled) in broken {
        let off = worst(step, &variances);
        // The page gives two digits, and one for the last row.
        let last = if variances[0] == 1.0 && step == 1.0 { 0.1 } else { 0.015 };
        assert!((off / tabled - 1.0).abs() < last, "{step}, {variances:?}: {off:e}, where the page has {tabled:e}");
    }
}

/// Comparison of a sample with the discrete Gaussian of scale `s`.
struct Fit {
    /// p value of the chi-square test.
    p_value: f64,
    /// Sample variance over the true variance, less 1.
    variance_error: f64,
    /// Standard error of the variance error.
    standard_error: f64,
}

fn fit(draws: &[i64], s: f64) -> Fit {
    let masses = masses(s);
    let n = draws.len() as f64;
    let moment = |k: i32| masses.iter().map(|(z, p)| p * z.powi(k)).sum::<f64>();
    let (variance, fourth) = (moment(2), moment(4));
    let sample: f64 = draws.iter().map(|z| (*z as f64).powi(2)).sum::<f64>() / n;

    // Cells that expect fewer than ten draws are pooled.
    let (mut statistic, mut cells, mut pooled) = (0.0, 0_u32, (0.0, 0.0));
    let mut count = std::collections::HashMap::new();
    draws.iter().for_each(|z| *count.entry(*z).or_insert(0.0) += 1.0);
    for (z, p) in &masses {
        let observed: f64 = count.remove(&(*z as i64)).unwrap_or(0.0);
        if n * p >= 10.0 {
            statistic += (observed - n * p).powi(2) / (n * p);
            cells += 1;
        } else {
            pooled = (pooled.0 + observed, pooled.1 + n * p);
        }
    }
    assert!(count.is_empty(), "draws 40 standard deviations out: {count:?}");
    if pooled.1 >= 1.0 {
        statistic += (pooled.0 - pooled.1).powi(2) / pooled.1;
        cells += 1;
    }
    Fit {
        p_value: statrs::function::gamma::gamma_ur(f64::from(cells - 1) / 2.0, statistic / 2.0),
        variance_error: sample / variance - 1.0,
        standard_error: ((fourth / (variance * variance) - 1.0) / n).sqrt(),
    }
}

fn draws(scale: u64, count: usize, seed: u64) -> Vec<i64> {
    let (noise, mut rng) = (DiscreteGaussian::of_units(scale), ChaCha8Rng::seed_from_u64(seed));
    (0..count).map(|_| noise.sample(&mut rng)).collect()
}

/// Draws from the exact sampler of libprio-rs 0.18 (MPL-2.0, <https://github.com/divviup/libprio-rs>), which supports fractional
/// scales.
fn libprio(numerator: u128, denominator: u128, count: usize, seed: u64) -> Vec<i64> {
    let scale = prio::dp::Rational::from_unsigned(numerator, denominator).unwrap();
    let (noise, mut rng) = (prio::dp::distributions::DiscreteGaussian::new(scale).unwrap(), ChaCha8Rng::seed_from_u64(seed));
    (0..count).map(|_| i64::try_from(noise.sample(&mut rng)).unwrap()).collect()
}

fn passes(fit: &Fit) -> bool {
    fit.p_value > 1e-6 && fit.variance_error.abs() < 4.95 * fit.standard_error
}

/// A million draws each: a correct sampler fails with a probability of 2e-6 per scale. At a scale 1% too large the variance is 2%
/// too large; 4.95 standard errors are 0.7%, and the error is 14 of them.
#[test]
fn samples_follow_the_discrete_gaussian() {
    for scale in [1, 2, 3, 5, 8, 100] {
        let fit = fit(&draws(scale, 1_000_000, 21), scale as f64);
        assert!(passes(&fit), "s {scale}: p {}, off by {} (se {})", fit.p_value, fit.variance_error, fit.standard_error);
        assert!(fit.variance_error.abs() < 0.007);
    }
}

/// Applies the same test to an independent exact sampler, and to both samplers at a scale 1% too large. That error is 7 and 14
/// standard errors of a variance.
#[test]
fn a_planted_variance_error_is_detected() {
    for scale in [1, 2, 5] {
        let sound = fit(&libprio(scale, 1, 100_000, 22), scale as f64);
        assert!(passes(&sound), "s {scale}: p {}, off by {}", sound.p_value, sound.variance_error);
        let wrong = fit(&libprio(scale * 101, 100, 300_000, 22), scale as f64);
        assert!(!passes(&wrong) && wrong.variance_error > 0.007, "s {scale}: {}", wrong.variance_error);
    }
    let wrong = fit(&draws(101, 1_000_000, 22), 100.0);
    assert!(!passes(&wrong) && wrong.variance_error > 0.007, "{}", wrong.variance_error);
}

/// Possible faults of a sampler built from the same parts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Zero is drawn with either sign.
    TwoZeros,
    /// `s^2` as the denominator where `2 s^2` is correct.
    NoHalf,
    /// The fraction of the exponent is omitted.
    WholeAlone,
    /// The Laplace draw is accepted unchanged.
    NoRejection,
    /// The remainder within a scale is not tested.
    EvenRemainder,
}

fn faulty(scale: u64, fault: Fault, count: usize) -> Vec<i64> {
    use crate::mechanism::coins::{bernoulli_exp, bernoulli_exp_unit, uniform_below};
    let mut rng = ChaCha8Rng::seed_from_u64(26);
    let s = u128::from(scale);
    let mut draw = || loop {
        let rest = uniform_below(s, &mut rng);
        if fault != Fault::EvenRemainder && !bernoulli_exp_unit(rest, s, &mut rng) {
            continue;
        }
        let whole = std::iter::repeat_with(|| bernoulli_exp_unit(1, 1, &mut rng)).take_while(|coin| *coin).count() as u128;
        let (y, negative) = (rest + whole * s, uniform_below(2, &mut rng) == 0);
        if negative && y == 0 && fault != Fault::TwoZeros {
            continue;
        }
        let over = if fault == Fault::NoHalf { s * s } else { 2 * s * s };
        let squared = y.abs_diff(s) * y.abs_diff(s);
        let rest = if fault == Fault::WholeAlone { 0 } else { squared % over };
        if fault == Fault::NoRejection || bernoulli_exp(squared / over, (rest, over), &mut rng) {
            break if negative { -(y as i64) } else { y as i64 };
        }
    };
    (0..count).map(|_| draw()).collect()
}

/// Each omitted part of the sampler is detected in 500,000 draws at every scale; with all parts, the same words give the same
/// draws.
#[test]
fn planted_faults_of_the_law_are_detected() {
    for scale in [1, 2, 5, 100] {
        assert_eq!(faulty(scale, Fault::None, 1_000), draws(scale, 1_000, 26));
        for fault in [Fault::TwoZeros, Fault::NoHalf, Fault::WholeAlone, Fault::NoRejection, Fault::EvenRemainder] {
            // A single point has no remainder, and among a hundred or more a zero is only one in 250.
            if scale > 1 || fault != Fault::EvenRemainder {
                assert!(!passes(&fit(&faulty(scale, fault, 500_000), scale as f64)), "{scale}: {fault:?}");
            }
        }
    }
}

/// Tests scales at which no lattice point is drawn twice. A thousand cells have equal probability under the rounded normal law,
/// which equals the discrete one to 1e-12 at 2^20 and above. The lowest bits are tested, which a float's noise would lack, and
/// moments. Each statistic of a correct sampler is within 5 standard deviations except once in 200,000 times. The upper tails
/// of a chi-square are heavier than a normal law's.
#[test]
fn production_noise_has_the_right_law_down_to_its_lowest_bits() {
    use statrs::distribution::{ContinuousCDF, Normal};
    const CELLS: usize = 1_000;
    const LOW: [u32; 5] = [0, 8, 16, 24, 32];
    let standard = Normal::standard();
    let scales = [1 << 20, NoiseScale::from_sd(1.0104).unwrap().units(), 3 << 40, 1 << 50];
    for scale in scales.map(|units| NoiseScale::from_units(units).unwrap()) {
        let (noise, mut rng) = (DiscreteGaussian::new(scale), ChaCha8Rng::seed_from_u64(23));
        let n = 500_000;
        let draws: Vec<i64> = (0..n).map(|_| noise.sample(&mut rng)).collect();
        let excess = |counts: &[u32]| {
            let (expected, freedom) = (f64::from(n) / counts.len() as f64, counts.len() as f64 - 1.0);
            let statistic: f64 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
            (statistic - freedom) / (2.0 * freedom).sqrt()
        };
        let (mut cells, mut bits) = (vec![0; CELLS], vec![vec![0; 256]; LOW.len()]);
        for draw in &draws {
            cells[((standard.cdf(*draw as f64 / scale.units() as f64) * CELLS as f64) as usize).min(CELLS - 1)] += 1;
            bits.iter_mut().zip(LOW).for_each(|(bits, low)| bits[(draw >> low & 255) as usize] += 1);
        }
        assert!(excess(&cells).abs() < 5.0, "{scale:?}: {}", excess(&cells));
        // Only bits far below the scale.
        for (bits, low) in bits.iter().zip(LOW).filter(|(_, low)| scale.units() >> (low + 12) > 0) {
            assert!(excess(bits).abs() < 5.0, "{scale:?}, from {low}: {}", excess(bits));
        }
        let z = || draws.iter().map(|draw| *draw as f64 / scale.units() as f64);
        let moment = |k: i32| z().map(|z| z.powi(k)).sum::<f64>() / f64::from(n);
        let root = f64::from(n).sqrt();
        assert!(moment(1).abs() < 5.0 / root, "{}", moment(1));
        assert!((moment(2) - 1.0).abs() < 5.0 * 2_f64.sqrt() / root, "{}", moment(2));
        assert!((moment(4) - 3.0).abs() < 5.0 * 96_f64.sqrt() / root, "{}", moment(4));
        // One in 15,787 exceeds 4.
        let far = z().filter(|z| z.abs() > 4.0).count() as f64;
        let expected = f64::from(n) * 2.0 * standard.cdf(-4.0);
        assert!((far - expected).abs() < 5.0 * expected.sqrt(), "{far} {expected}");
    }
}
