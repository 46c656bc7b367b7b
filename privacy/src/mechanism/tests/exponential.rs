#![allow(clippy::unwrap_used)]
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::mechanism::Components;
use crate::mechanism::QueryKind;
use crate::pass::LatticeSum;

const ONE: i64 = 1 << DIGITS;

/// Returns the law of a choice.
fn law(weights: &[i64]) -> Vec<f64> {
    let greatest = weights.iter().copied().max().unwrap();
    let part: Vec<f64> = weights.iter().map(|w| (-(greatest.abs_diff(*w) as f64) / ONE as f64).exp()).collect();
    let total: f64 = part.iter().sum();
    part.into_iter().map(|p| p / total).collect()
}

/// Returns Pearson's statistic of `draws` draws against a law, in standard deviations above its mean.
fn excess(law: &[f64], draws: usize, mut draw: impl FnMut() -> u32) -> f64 {
    let mut counts = vec![0_u32; law.len()];
    (0..draws).for_each(|_| counts[draw() as usize] += 1);
    let expected = |p: &f64| p * draws as f64;
    let statistic: f64 = counts.iter().zip(law).map(|(n, p)| (f64::from(*n) - expected(p)).powi(2) / expected(p)).sum();
    let freedom = (law.len() - 1) as f64;
    (statistic - freedom) / (2.0 * freedom).sqrt()
}

/// Returns weights of every size: equal ones, ones that differ slightly, ones of several whole units.
fn spread() -> Vec<i64> {
    (0..16_i64).map(|m| -(m * m * ONE / 40) + (m % 3) * 12_345_678 - 7).collect()
}

/// 100,000 choices by each of the mechanism's parts against their law, with a fixed seed. Pearson's statistic stays within 5 sds
/// of its mean, which a correct program exceeds with a probability of about 1e-4; each planted fault exceeds 12.
#[test]
fn choices_follow_their_law_and_faults_are_detected() {
    let weights = spread();
    let law = law(&weights);
    assert!(law.iter().all(|p| *p > 1e-4));
    let mut rng = ChaCha20Rng::seed_from_u64(41);
    // Few trials suffice: the law does not depend on their number.
    let sound = excess(&law, 100_000, || choose(&weights, 1, &mut rng));
    assert!(sound.abs() < 5.0, "{sound}");
    // The sign of the difference between the greatest weight and a candidate's.
    let greatest = *weights.iter().max().unwrap();
    let turned: Vec<i64> = weights.iter().map(|w| greatest - w).collect();
    assert!(excess(&law, 100_000, || choose(&turned, 1, &mut rng)) > 12.0);
    // An exponent without its fraction, as from a truncated float.
    let cut: Vec<i64> = weights.iter().map(|w| w / ONE * ONE).collect();
    assert!(excess(&law, 100_000, || choose(&cut, 1, &mut rng)) > 12.0);
    // Trials that end without an accepted candidate, with a fixed answer.
    let ended = |rng: &mut ChaCha20Rng| {
        let trial = |rng: &mut ChaCha20Rng| {
            let m = coins::uniform_below(weights.len() as u128, rng);
            bernoulli_exp(greatest.abs_diff(weights[m as usize]), rng).then_some(m as u32)
        };
        (0..3).find_map(|_| trial(rng)).unwrap_or(0)
    };
    assert!(excess(&law, 100_000, || ended(&mut rng)) > 12.0);
}

/// Tests the coin of a weight by itself: 200,000 throws, within 5 standard errors.
#[test]
fn a_weight_falls_with_the_probability_of_its_exponent() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    for x in [0, 1, ONE as u64 / 3, ONE as u64, 3 * ONE as u64 / 2, 5 * ONE as u64 + 17] {
        let (throws, p) = (200_000, (-(x as f64) / ONE as f64).exp());
        let share = (0..throws).filter(|_| bernoulli_exp(x, &mut rng)).count() as f64 / f64::from(throws);
        assert!((share - p).abs() <= 5.0 * (p * (1.0 - p) / f64::from(throws)).sqrt(), "{x}: {share} {p}");
    }
    assert!(!bernoulli_exp(u64::MAX, &mut rng));
}

/// Compares the ledger's allowance for a failed draw with the failure probability of the trials.
#[test]
fn trials_end_in_a_choice() {
    for candidates in [2_u32, 256, QueryKind::MAX_CANDIDATES] {
        let m = f64::from(candidates);
        let ln_none = TRIALS_PER_CANDIDATE as f64 * m * (-1.0 / m).ln_1p();
        assert!(ln_none < -108.0 * std::f64::consts::LN_2);
    }
    // A third fewer trials would not suffice.
    assert!(-(TRIALS_PER_CANDIDATE as f64) * 2.0 / 3.0 > -107.0 * std::f64::consts::LN_2);
    // The greatest weight is chosen even where every other candidate is never accepted in practice.
    let mut weights = vec![i64::MIN / 2; 300];
    weights[177] = 0;
    assert_eq!(LogWeights::new(weights, 0, 1).choose(&mut ChaCha20Rng::seed_from_u64(1)), 177);
}

#[test]
fn weights_are_sums_and_public_parts() {
    let sum = |units| LatticeSum::from_units_for_test(units);
    let weights = crate::pass::log_weights(vec![sum(5), sum(i64::MAX)], &[-7, 1]).unwrap();
    assert_eq!(weights.weights, [-2, i64::MAX]);
    assert!(crate::pass::log_weights(vec![sum(5)], &[1, 2]).is_none());
    assert!(crate::pass::log_weights(Vec::new(), &[]).is_none());
    assert!(
        crate::pass::log_weights(vec![LatticeSum::of_components_for_test(Components::new(&[1, 2]).unwrap())], &[0]).is_none()
    );
}

/// Returns the log probabilities of a choice for the shard `data` of a Bernoulli model on `thetas`, in lattice units clamped at
/// `k`.
fn of_bernoulli(ones: i64, records: i64, units: &[(i64, i64)], public: &[i64]) -> Vec<f64> {
    let weights: Vec<i64> = units.iter().zip(public).map(|((one, none), p)| ones * one + (records - ones) * none + p).collect();
    let greatest = weights.iter().copied().max().unwrap();
    let logs: Vec<f64> = weights.iter().map(|w| -(greatest.abs_diff(*w) as f64) / ONE as f64).collect();
    let total = logs.iter().map(|l| l.exp()).sum::<f64>().ln();
    logs.into_iter().map(|l| l - total).collect()
}

/// Returns the range of the log ratio of two laws, and the most expensive kink of their trade-off curve, as a mu.
fn between(p: &[f64], q: &[f64]) -> (f64, f64) {
    let mut ratios: Vec<(f64, f64, f64)> = p.iter().zip(q).map(|(p, q)| (q - p, p.exp(), q.exp())).collect();
    ratios.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut steepest = 0.0_f64;
    for at in 1..ratios.len() {
        let sums = |part: &[(f64, f64, f64)]| part.iter().fold((0.0, 0.0), |(a, b), (_, p, q)| (a + p, b + q));
        let (below, above) = (sums(&ratios[..at]), sums(&ratios[at..]));
        steepest = steepest.max(quantile(below.1, above.1) - quantile(below.0, above.0));
    }
    (ratios[0].0 - ratios[ratios.len() - 1].0, steepest)
}

/// Returns the normal quantile of `p`, given `1 - p` as well.
fn quantile(p: f64, rest: f64) -> f64 {
    if p > rest {
        return -quantile(rest, p);
    }
    let (mut under, mut over) = (-40.0, 40.0);
    for _ in 0..200 {
        let middle: f64 = 0.5 * (under + over);
        if 0.5 * libm::erfc(-middle * std::f64::consts::FRAC_1_SQRT_2) < p { under = middle } else { over = middle }
    }
    over
}

/// Enumerates the whole law of 50 records and 256 candidates for all neighbours. No log ratio has a wider range than 4 K g, and
/// no kink costs more than the charged mu. With two candidates, records at either end and balancing weights, both are attained.
#[test]
fn the_law_of_neighbours_stays_within_its_price() {
    let thetas: Vec<f64> = (0..256).map(|m| 0.05 + 0.9 * f64::from(m) / 255.0).collect();
    let lattice = |x: f64| (x * ONE as f64).round() as i64;
    let from = 0.5_f64;
    let units: Vec<(i64, i64)> =
        thetas.iter().map(|theta| (lattice((theta / from).ln()), lattice(((1.0 - theta) / (1.0 - from)).ln()))).collect();
    let k = units.iter().flat_map(|(one, none)| [one.abs(), none.abs()]).max().unwrap();
    let (range, public) = (4.0 * k as f64 / ONE as f64, vec![0; units.len()]);
    let mu = crate::accounting::bounded_range::mu(range);
    let mut widest = (0.0_f64, 0.0_f64);
    for ones in 0..50 {
        let (wide, mu_found) = between(&of_bernoulli(ones, 50, &units, &public), &of_bernoulli(ones + 1, 50, &units, &public));
        widest = (widest.0.max(wide), widest.1.max(mu_found));
    }
    assert!(widest.0 <= range && widest.1 <= mu, "{widest:?} {range} {mu}");
    // As in the second review of the design: 5.89 of 9.21, .41 of 4.66.
    assert!((widest.0 - 5.89).abs() < 0.05 && (range - 9.21).abs() < 0.03, "{widest:?} {range}");

    let k = ONE / 2;
    for records in [1_i64, 7] {
        // A record adds K to one candidate and -K to the other, or vice versa.
        let units = [(k, -k), (-k, k)];
        let public = [-(records - 1) * k + (records - 1) * k, 0];
        let ones = (records - 1) / 2;
        let (wide, mu_found) =
            between(&of_bernoulli(ones, records, &units, &public), &of_bernoulli(ones + 1, records, &units, &public));
        let (range, mu) = (4.0 * 0.5, crate::accounting::bounded_range::mu(2.0));
        assert!((wide - range).abs() < 1e-9, "{wide}");
        assert!((mu_found - mu).abs() < 1e-8 && mu_found <= mu, "{mu_found} {mu}");
    }
}
