//! Invariance, by enumeration of every state.

#![allow(clippy::unwrap_used)]
use rand::SeedableRng;

use super::*;
use crate::sampler::augmentation::noise::GaussianNoise;
use crate::sampler::augmentation::table_law::{TableLaw, TableSampler};

/// Lattice units of a count.
const UNIT: i64 = 1 << 20;

/// Returns the law of records with two levels, heads 0 and tails 1.
fn coin() -> TableLaw {
    TableLaw::new(2, &[], vec![1.0; 2], UNIT, false)
}

fn heads(p: f64) -> TableSampler {
    coin().prepare(&[p, 1.0 - p], &0.0)
}

/// Builds records of these coins against a release of heads and tails, with noise of s coins on each.
fn records(coins: &[u32], released: [i64; 2], count: Count, s: u64) -> LatentRecords<TableLaw, GaussianNoise> {
    let law = coin();
    let noise = [GaussianNoise { scale: s * UNIT as u64, draws: 1 }; 2];
    let residuals = Residuals::new(&released.map(|n| n * UNIT), &noise).unwrap();
    let mut records = LatentRecords::new(&law, &heads(0.5), residuals, Count::Known(0), ChaCha20Rng::seed_from_u64(1));
    records.kind = count;
    for coin in coins {
        records.proposal[0] = *coin;
        records.weigh_birth(&law);
        let last = records.count;
        records.insert(&law, last);
    }
    records
}

/// Returns the coins of a state, one per bit.
fn coins(bits: usize, n: usize) -> Vec<u32> {
    (0..n).map(|i| (bits >> i & 1) as u32).collect()
}

fn bits(coins: &[u32]) -> usize {
    coins.iter().enumerate().map(|(i, coin)| (*coin as usize) << i).sum()
}

/// Returns the log mass of noise z, in coins, up to a constant.
fn log_noise(z: f64, s: u64) -> f64 {
    -z * z / (2.0 * (s * s) as f64)
}

fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

/// Returns the log likelihood of coins given the probability of heads, plus that of the release given the coins.
fn log_joint(coins: &[u32], p: f64, released: [i64; 2], s: u64) -> f64 {
    let tails = coins.iter().sum::<u32>() as f64;
    let heads = coins.len() as f64 - tails;
    let noise = log_noise(released[0] as f64 - heads, s) + log_noise(released[1] as f64 - tails, s);
    heads * p.ln() + tails * (1.0 - p).ln() + noise
}

fn chance(coin: u32, p: f64) -> f64 {
    if coin == 0 { p } else { 1.0 - p }
}

const THETAS: [f64; 4] = [0.1, 0.35, 0.5, 0.9];

/// Builds the transition of a sweep over all records and theta on a grid, with the acceptance of the code. It must leave the
/// joint law given the release invariant, up to rounding.
#[test]
fn a_sweep_leaves_the_joint_law_unchanged() {
    for (n, released, s) in [(3, [5, -1], 1), (6, [-2, 4], 2), (8, [3, 9], 4), (12, [7, 6], 2), (12, [30, 0], 4)] {
        let (law, states) = (coin(), 1_usize << n);
        let at = |theta: usize, bits: usize| theta * states + bits;
        let weight = |state: usize| log_joint(&coins(state % states, n), THETAS[state / states], released, s).exp();
        let target = normalised((0..THETAS.len() * states).map(weight).collect());
        let mut now = target.clone();
        for record in 0..n {
            let mut next = vec![0.0; now.len()];
            for state in 0..states {
                let held = records(&coins(state, n), released, Count::Known(n), s);
                for to in [0, 1] {
                    let mut moves = Vec::new();
                    law.replacement(&held.values[record..=record], &[to], &mut moves);
                    assert_eq!(moves.is_empty(), held.values[record] == to, "an unchanged component has no move");
                    let accept = held.residuals.log_ratio(&moves).exp().min(1.0);
                    let moved = state & !(1 << record) | (to as usize) << record;
                    for (theta, p) in THETAS.iter().enumerate() {
                        let flow = now[at(theta, state)] * chance(to, *p);
                        next[at(theta, moved)] += flow * accept;
                        next[at(theta, state)] += flow * (1.0 - accept);
                    }
                }
            }
            now = next;
        }
        for state in 0..states {
            let of_coins = |p: &f64| coins(state, n).iter().map(|coin| chance(*coin, *p)).product();
            let given = normalised(THETAS.iter().map(of_coins).collect());
            let mass: f64 = (0..THETAS.len()).map(|theta| now[at(theta, state)]).sum();
            given.iter().enumerate().for_each(|(theta, share)| now[at(theta, state)] = mass * share);
        }
        let off = now.iter().zip(&target).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12, "n {n}, released {released:?}, s {s}: {off}");
    }
}

/// A birth or death among lists of up to `most` coins, with the indices, sums and acceptance of the code. The prior of the count
/// is flat up to `most`, where births end.
#[test]
fn a_birth_or_death_leaves_the_law_of_lists_unchanged() {
    for (most, released, s, p) in [(8, [3, 2], 1, 0.3), (8, [-4, 6], 2, 0.5), (9, [6, 3], 4, 0.8)] {
        let (law, count) = (coin(), Count::Unknown { start: 10 });
        let at = |coins: &[u32]| (1_usize << coins.len()) - 1 + bits(coins);
        let lists = || (0..=most).flat_map(|n| (0..1 << n).map(move |bits| coins(bits, n)));
        let target = normalised(lists().map(|list| log_joint(&list, p, released, s).exp()).collect());
        let mut next = vec![0.0; target.len()];
        for list in lists() {
            let (here, n) = (at(&list), list.len());
            let mut stays = target[here];
            let mut flow = |held: &LatentRecords<TableLaw, GaussianNoise>, weight: f64| {
                next[at(&held.values)] += weight;
                stays -= weight;
            };
            for (coin, place) in [0, 1].into_iter().flat_map(|coin| (0..=n).map(move |place| (coin, place))) {
                if n == most {
                    continue;
                }
                let mut held = records(&list, released, count, s);
                held.proposal[0] = coin;
                held.weigh_birth(&law);
                let accept = held.residuals.log_ratio(&held.moves).exp().min(1.0);
                held.insert(&law, place);
                flow(&held, target[here] * 0.5 * chance(coin, p) / (n + 1) as f64 * accept);
            }
            for place in 0..n {
                let mut held = records(&list, released, count, s);
                held.weigh_death(&law, place);
                let accept = held.residuals.log_ratio(&held.moves).exp().min(1.0);
                held.remove(&law, place);
                flow(&held, target[here] * 0.5 / n as f64 * accept);
            }
            next[here] += stays;
        }
        let off = next.iter().zip(&target).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12, "released {released:?}, s {s}: {off}");
    }
}

/// Compares the counts that a chain of births, deaths and updates visits with their exact law: `P(n | a)` is a sum over heads of
/// `Bin(h; n, p) P(a - h) P(b - n + h)`. 100,000 sweeps contain some thousand independent counts; the total variation from the
/// exact law exceeds .05 for one run in 10⁶. A birth without its share of the ratio is .2 off.
#[test]
fn counts_follow_their_law() {
    let (released, s, p, law) = ([6, 8], 2_u64, 0.4, coin());
    let mut held = records(&[], released, Count::Unknown { start: 20 }, s);
    let (mut visits, sampler) = (vec![0.0; 100], heads(p));
    for _ in 0..100_000 {
        held.sweep(&law, &sampler);
        visits[held.count.min(99)] += 1.0;
    }
    let choose = |n: f64, h: f64| libm::lgamma(n + 1.0) - libm::lgamma(h + 1.0) - libm::lgamma(n - h + 1.0);
    let mass = |n: usize| -> f64 {
        let of = |h: usize| {
            let list: Vec<u32> = (0..n).map(|i| u32::from(i >= h)).collect();
            (choose(n as f64, h as f64) + log_joint(&list, p, released, s)).exp()
        };
        (0..=n).map(of).sum()
    };
    let (exact, seen) = (normalised((0..100).map(mass).collect()), normalised(visits));
    let distance: f64 = 0.5 * exact.iter().zip(&seen).map(|(a, b)| (a - b).abs()).sum::<f64>();
    println!("total variation {distance}");
    assert!(distance < 0.05, "{distance}");
}
