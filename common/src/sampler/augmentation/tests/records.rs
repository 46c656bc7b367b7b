//! Invariance, by enumeration of every state.

#![allow(clippy::unwrap_used)]
use std::sync::OnceLock;

use rand::SeedableRng;

use super::*;
use crate::job::JobSpec;
use crate::model::StatisticGrid;
use crate::sampler::augmentation::line_law::{Line, LineLaw, LineSampler};
use crate::sampler::augmentation::noise::Noise;

/// A coin's lattice units.
const UNIT: i64 = 1 << 32;

fn coin() -> &'static LineLaw {
    static LAW: OnceLock<LineLaw> = OnceLock::new();
    LAW.get_or_init(|| {
    let job = "name = \"c\"\nparties = [\"a\"]\nmodel = { kind = \"bernoulli\", outcome = \"y\" }\n\
               columns = { y = { binary = true } }\nprivacy = { epsilon = 1.0, delta = 1e-6 }\n";
    let spec = JobSpec::parse(job).unwrap();
    LineLaw::new(Line::Bernoulli, spec.priors[0], StatisticGrid::new((0.0, 1.0)).unwrap(), spec.build_model())
    })
}

/// These coins, against a release of so many heads, and of so many records where the count is unknown, at noise of s coins.
fn records(coins: &[f64], heads: i64, count: Option<i64>, s: u64) -> LatentRecords<LineLaw> {
    let law = coin();
    let noise = [Noise::DiscreteGaussian { scale: s << 32 }; 2];
    let answers = [heads * UNIT, count.unwrap_or(0) * UNIT];
    let length = 1 + usize::from(count.is_some());
    let residuals = Residuals::new(&answers[..length], &noise[..length]).unwrap();
    let kind = match count {
        None => Count::Known(0),
        Some(n) => Count::Released { component: 1, unit: UNIT, start: n as usize },
    };
    let kind_at_start = if count.is_some() { Count::Released { component: 1, unit: UNIT, start: 0 } } else { kind };
    let rng = ChaCha20Rng::seed_from_u64(1);
    let mut records = LatentRecords::new(law, &LineSampler::Bernoulli(0.5), residuals, kind_at_start, rng);
    records.kind = kind;
    for coin in coins {
        records.proposal[0] = *coin;
        records.weigh_birth(law);
        let last = records.count;
        records.insert(law, last);
    }
    records
}

/// The coins of a state, a bit each.
fn coins(bits: usize, n: usize) -> Vec<f64> {
    (0..n).map(|i| (bits >> i & 1) as f64).collect()
}

fn bits(coins: &[f64]) -> usize {
    coins.iter().enumerate().map(|(i, coin)| (*coin as usize) << i).sum()
}

/// Log mass of noise z coins, up to a constant.
fn log_noise(z: f64, s: u64) -> f64 {
    -z * z / (2.0 * (s * s) as f64)
}

fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

const THETAS: [f64; 4] = [0.1, 0.35, 0.5, 0.9];

/// A sweep over all records and theta on a grid, as a transition of the joint law of both given the release, with the acceptance of the
/// code. It leaves that law as it is, to rounding.
#[test]
fn a_sweep_leaves_the_joint_law_unchanged() {
    for (n, heads, s) in [(3, 5, 1), (6, -2, 2), (8, 3, 4), (12, 7, 2), (12, 30, 4)] {
        let law = coin();
        let states = 1_usize << n;
        let at = |theta: usize, bits: usize| theta * states + bits;
        let target = normalised(
            (0..THETAS.len() * states)
                .map(|state| {
                    let (p, coins) = (THETAS[state / states], coins(state % states, n));
                    let sum: f64 = coins.iter().sum();
                    p.powf(sum) * (1.0 - p).powf(n as f64 - sum) * log_noise(heads as f64 - sum, s).exp()
                })
                .collect(),
        );
        let mut now = target.clone();
        for record in 0..n {
            let mut next = vec![0.0; now.len()];
            for state in 0..states {
                let held = records(&coins(state, n), heads, None, s);
                for to in [0.0, 1.0] {
                    let mut moves = Vec::new();
                    law.replacement(&held.values[record..=record], &[to], &mut moves);
                    let accept = held.residuals.log_ratio(&moves).exp().min(1.0);
                    let moved = state & !(1 << record) | (to as usize) << record;
                    for (theta, p) in THETAS.iter().enumerate() {
                        let flow = now[at(theta, state)] * if to == 1.0 { *p } else { 1.0 - p };
                        next[at(theta, moved)] += flow * accept;
                        next[at(theta, state)] += flow * (1.0 - accept);
                    }
                }
            }
            now = next;
        }
        for state in 0..states {
            let sum: f64 = coins(state, n).iter().sum();
            let given = normalised(THETAS.iter().map(|p| p.powf(sum) * (1.0 - p).powf(n as f64 - sum)).collect());
            let mass: f64 = (0..THETAS.len()).map(|theta| now[at(theta, state)]).sum();
            given.iter().enumerate().for_each(|(theta, share)| now[at(theta, state)] = mass * share);
        }
        let off = now.iter().zip(&target).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12, "n {n}, {heads} heads, s {s}: {off}");
    }
}

/// A birth or death among lists of up to `most` coins, with the places, sums and acceptance of the code. The prior of the count is flat up
/// to `most`, where births end.
#[test]
fn a_birth_or_death_leaves_the_law_of_lists_unchanged() {
    for (most, heads, count, s, p) in [(8, 3, 5, 1, 0.3), (8, -4, 2, 2, 0.5), (9, 6, 9, 4, 0.8)] {
        let law = coin();
        let first = |n: usize| (1_usize << n) - 1;
        let at = |coins: &[f64]| first(coins.len()) + bits(coins);
        let lists = || (0..=most).flat_map(|n| (0..1 << n).map(move |bits| coins(bits, n)));
        let target = normalised(
            lists()
                .map(|list| {
                    let (n, sum) = (list.len() as f64, list.iter().sum::<f64>());
                    let noise = log_noise(heads as f64 - sum, s) + log_noise(count as f64 - n, s);
                    f64::powf(p, sum) * f64::powf(1.0 - p, n - sum) * noise.exp()
                })
                .collect(),
        );
        let mut next = vec![0.0; target.len()];
        for list in lists() {
            let (here, n) = (at(&list), list.len());
            let mut stays = target[here];
            let mut flow = |held: LatentRecords<LineLaw>, weight: f64| {
                next[at(&held.values)] += weight;
                stays -= weight;
            };
            for (coin, place) in [0.0, 1.0].into_iter().flat_map(|coin| (0..=n).map(move |place| (coin, place))) {
                let mut held = records(&list, heads, Some(count), s);
                held.proposal[0] = coin;
                held.weigh_birth(law);
                let accept = held.residuals.log_ratio(&held.moves).exp().min(1.0);
                let chance = 0.5 * (if coin == 1.0 { p } else { 1.0 - p }) / (n + 1) as f64;
                if n < most {
                    held.insert(law, place);
                    flow(held, target[here] * chance * accept);
                }
            }
            for place in 0..n {
                let mut held = records(&list, heads, Some(count), s);
                held.weigh_death(law, place);
                let accept = held.residuals.log_ratio(&held.moves).exp().min(1.0);
                held.remove(law, place);
                flow(held, target[here] * 0.5 / n as f64 * accept);
            }
            next[here] += stays;
        }
        let off = next.iter().zip(&target).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12, "{heads} heads of {count}, s {s}: {off}");
    }
}

/// The count that a chain of births, deaths and updates visits, against its exact law: `P(n | a)` is a sum over heads of
/// `Bin(h; n, p) P(a - h) P(b - n)`. Bounds: 60,000 sweeps hold at least 3,000 independent counts, whose empirical law is within .05 of
/// the exact one in total variation but for one run in 10⁶; a birth that forgot its share of the ratio is .2 off.
#[test]
fn counts_follow_their_law() {
    let (heads, count, s, p, law) = (6, 14, 2_u64, 0.4, coin());
    let mut held = records(&[], heads, Some(count), s);
    let mut visits = vec![0.0; 200];
    for _ in 0..60_000 {
        held.sweep(law, &LineSampler::Bernoulli(p));
        visits[held.count.min(199)] += 1.0;
    }
    let choose = |n: f64, h: f64| libm::lgamma(n + 1.0) - libm::lgamma(h + 1.0) - libm::lgamma(n - h + 1.0);
    let mass = |n: usize| -> f64 {
        let n = n as f64;
        let of = |h: f64| choose(n, h) + h * p.ln() + (n - h) * (1.0 - p).ln() + log_noise(heads as f64 - h, s);
        (0..=n as usize).map(|h| (of(h as f64) + log_noise(count as f64 - n, s)).exp()).sum()
    };
    let (exact, seen) = (normalised((0..200).map(mass).collect()), normalised(visits));
    let distance: f64 = 0.5 * exact.iter().zip(&seen).map(|(a, b)| (a - b).abs()).sum::<f64>();
    assert!(distance < 0.05, "{distance}");
}
