//! Posteriors given one noisy release, compared with sums and integrals.
//!
//! Tolerances are 5 Monte Carlo standard errors of the mean, from batch means, and 12% of the sd. A correct chain passes with
//! near certainty (the seeds are fixed). A chain that takes the release as exact, or the clamped values as the records', fails
//! both.

#![allow(clippy::unwrap_used)]

use super::fixtures::{chains_on, job};
use crate::sampler::augmentation::chain::Sweep;
use conclave_privacy::mechanism::NoiseScale;

/// Lattice units in half the width of a statistic's range.
const UNIT: f64 = 4_294_967_296.0;
/// Lattice units of a count.
const COUNT: f64 = 1_048_576.0;

/// Returns draws of one parameter: `sweeps` of each chain after 300.
fn draws(mut chains: Vec<Box<dyn Sweep>>, parameter: usize, sweeps: usize) -> Vec<f64> {
    let run = |chain: &mut Box<dyn Sweep>| {
        (0..300).for_each(|_| drop(chain.sweep()));
        (0..sweeps).map(|_| chain.sweep().theta[parameter]).collect::<Vec<f64>>()
    };
    chains.iter_mut().flat_map(run).collect()
}

/// Returns mean and sd of a law with this unnormalised log density on a grid.
fn moments(grid: impl Iterator<Item = f64>, log_density: impl Fn(f64) -> f64) -> (f64, f64) {
    let points: Vec<(f64, f64)> = grid.map(|x| (x, log_density(x))).collect();
    let most = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let sum = |f: &dyn Fn(f64) -> f64| points.iter().map(|(x, log)| f(*x) * (log - most).exp()).sum::<f64>();
    let mean = sum(&|x| x) / sum(&|_| 1.0);
    (mean, (sum(&|x| (x - mean) * (x - mean)) / sum(&|_| 1.0)).sqrt())
}

fn check(what: &str, draws: &[f64], (mean, sd): (f64, f64)) {
    let n = draws.len() as f64;
    let found = draws.iter().sum::<f64>() / n;
    let spread = (draws.iter().map(|x| (x - found) * (x - found)).sum::<f64>() / n).sqrt();
    let batches: Vec<f64> = draws.chunks(draws.len() / 40).map(|b| b.iter().sum::<f64>() / b.len() as f64).collect();
    let between = batches.iter().map(|b| (b - found) * (b - found)).sum::<f64>() / (batches.len() - 1) as f64;
    let error = (between / batches.len() as f64).sqrt();
    println!("{what}: mean {found:.5} of {mean:.5} (± {error:.5}), sd {spread:.5} of {sd:.5}");
    assert!((found - mean).abs() < 5.0 * error && error < 0.08 * sd, "{what}: mean");
    assert!((spread / sd - 1.0).abs() < 0.12, "{what}: sd");
}

fn grid(low: f64, high: f64) -> impl Iterator<Item = f64> {
    (0..2_000).map(move |i| low + (high - low) * (f64::from(i) + 0.5) / 2_000.0)
}

/// Returns the log of the sum of exponentials.
fn log_sum(logs: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = logs.collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

fn log_choose(n: f64, k: f64) -> f64 {
    libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
}

fn units(value: f64) -> i64 {
    (value * UNIT).round() as i64
}

fn counts(values: &[f64]) -> Vec<i64> {
    values.iter().map(|value| (value * COUNT).round() as i64).collect()
}

fn scale(units: f64) -> NoiseScale {
    NoiseScale::from_units((units / 65_536.0).round() as u64 * 65_536).unwrap()
}

const COIN: &str = "kind = \"bernoulli\"\noutcome = \"y\"";

/// Two parties of different sizes: p(a | p) is the product of their sums over heads.
#[test]
fn two_coins_of_unlike_parties() {
    let (s, releases) = (3.0, [(9.4, 40_usize), (-3.1, 5)]);
    for prior in ["p = \"beta(2, 5)\"", "p = \"uniform(0.1, 0.6)\""] {
        let spec = job(2, COIN, "y = { binary = true }", prior, "chains = 2", 1.0);
        let log_density = |p: f64| {
            let of = |(a, n): &(f64, usize)| {
                let n = *n as f64;
                let one = |h: f64| log_choose(n, h) + h * p.ln() + (n - h) * (1.0 - p).ln() - (a - h) * (a - h) / (2.0 * s * s);
                log_sum((0..=n as usize).map(|h| one(h as f64)))
            };
            let beta = if prior.contains("beta") { p.ln() + 4.0 * (1.0 - p).ln() } else { 0.0 };
            releases.iter().map(of).sum::<f64>() + beta
        };
        let (low, high) = if prior.contains("beta") { (0.0, 1.0) } else { (0.1, 0.6) };
        let given: Vec<(Vec<i64>, Option<usize>)> = releases.iter().map(|(a, n)| (vec![units(*a)], Some(*n))).collect();
        check(prior, &draws(chains_on(&spec, scale(s * UNIT), &given), 0, 12_000), moments(grid(low, high), log_density));
    }
}

/// Counts clamped at 6, with mean 4: a conjugate prior, and one that takes a walk. The law of the sum of clamped counts is the
/// convolution of their masses.
#[test]
fn clamped_counts() {
    let (n, s, released) = (12_usize, 4.0, 55.0);
    let model = "kind = \"poisson_mean\"\noutcome = \"y\"";
    for (prior, log_prior) in [
        ("rate = \"gamma(2, 0.5)\"", (|x: f64| x.ln() - 0.5 * x) as fn(f64) -> f64),
        ("rate = \"half_normal(5)\"", |x| -x * x / 50.0),
        ("rate = \"lognormal(1, 0.8)\"", |x| -x.ln() - (x.ln() - 1.0) * (x.ln() - 1.0) / 1.28),
    ] {
        let spec = job(1, model, "y = { min = 0, max = 6 }", prior, "chains = 2", 1.0);
        let log_density = |rate: f64| {
            let mut mass = vec![(-rate).exp()];
            (1..6).for_each(|k| mass.push(mass[k - 1] * rate / k as f64));
            mass.push((1.0 - mass.iter().sum::<f64>()).max(0.0));
            let mut sums = vec![1.0];
            for _ in 0..n {
                let mut longer = vec![0.0; sums.len() + 6];
                for (i, a) in sums.iter().enumerate() {
                    mass.iter().enumerate().for_each(|(k, b)| longer[i + k] += a * b);
                }
                sums = longer;
            }
            let fit = |(sum, mass): (usize, &f64)| mass.ln() - (released - sum as f64).powi(2) / (2.0 * s * s);
            log_prior(rate) + log_sum(sums.iter().enumerate().map(fit))
        };
        let given = [(vec![(released / 6.0 * UNIT) as i64], Some(n))];
        check(prior, &draws(chains_on(&spec, scale(s / 6.0 * UNIT), &given), 0, 12_000), moments(grid(0.0, 25.0), log_density));
    }
}

/// Normal outcomes, a third of them clamped at the upper bound; the law of the sum of two clamped values by a double integral.
#[test]
fn clamped_normal_outcomes() {
    let (sd, s, released) = (0.8, 0.25, 1.7);
    let model = "kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 0.8";
    for (prior, log_prior) in [
        ("mean = \"normal(0.2, 0.7)\"", (|x: f64| -(x - 0.2) * (x - 0.2) / 0.98) as fn(f64) -> f64),
        // Restricted to a box: clamped values carry little information against a heavy tail.
        ("mean = \"student_t(3, 0, 0.5)\"\n[parameters]\nmean = { min = -2, max = 2 }", |x| {
            if x.abs() < 2.0 { -2.0 * (1.0 + x * x / 0.75).ln() } else { f64::NEG_INFINITY }
        }),
    ] {
        // Lattice units are relative to half the range's width of 2.
        let spec = job(1, model, "y = { min = -1, max = 1 }", prior, "chains = 2", 1.0);
        let log_density = |mean: f64| {
            let steps = 400;
            let width = 2.0 / f64::from(steps);
            let cdf = |x: f64| 0.5 * libm::erfc(-(x - mean) / sd / 2.0_f64.sqrt());
            // The clamped law on a grid, with its masses at the ends.
            let mut points: Vec<(f64, f64)> = (0..steps)
                .map(|i| {
                    let low = -1.0 + width * f64::from(i);
                    (low + width / 2.0, cdf(low + width) - cdf(low))
                })
                .collect();
            points.extend([(-1.0, cdf(-1.0)), (1.0, 1.0 - cdf(1.0))]);
            let noise = |sum: f64| (-(released - sum) * (released - sum) / (2.0 * s * s)).exp();
            let of = |(x, p): &(f64, f64)| p * points.iter().map(|(y, q)| q * noise(x + y)).sum::<f64>();
            log_prior(mean) + points.iter().map(of).sum::<f64>().ln()
        };
        let given = [(vec![(released / 2.0 * UNIT) as i64], Some(2))];
        let coarse = (0..160).map(|i| -4.0 + 10.0 * (f64::from(i) + 0.5) / 160.0);
        check(prior, &draws(chains_on(&spec, scale(s / 2.0 * UNIT), &given), 0, 25_000), moments(coarse, log_density));
    }
}

const LEVELS: &str = "kind = \"multinomial\"\noutcome = \"y\"";

/// Returns the log density of p where h, t and u of n records are heads, tails and unusable, observed with noise. With a flat
/// prior on the share of unusable records, every u is equally likely.
fn log_levels(p: f64, n: usize, released: [f64; 3], s: f64) -> f64 {
    let noise = |seen: f64, truth: usize| -(seen - truth as f64).powi(2) / (2.0 * s * s);
    let one = |u: usize, h: usize| {
        let (usable, heads) = ((n - u) as f64, h as f64);
        log_choose(usable, heads) + heads * p.ln() + (usable - heads) * (1.0 - p).ln() - (n as f64 + 1.0).ln()
            + noise(released[0], h)
            + noise(released[1], n - u - h)
            + noise(released[2], u)
    };
    log_sum((0..=n).flat_map(|u| (0..=n - u).map(move |h| (u, h))).map(|(u, h)| one(u, h)))
}

/// Two levels of a multinomial: 30 records, or a number that only the release informs.
#[test]
fn two_levels_of_known_and_of_unknown_number() {
    let (s, released) = (2.0, [4.0, 21.0, 2.5]);
    let spec = job(1, LEVELS, "y = { levels = [\"h\", \"t\"] }", "p = \"dirichlet(2, 3)\"", "chains = 2", 1.0);
    let log_prior = |p: f64| p.ln() + 2.0 * (1.0 - p).ln();
    for known in [Some(30), None] {
        let numbers = known.map_or(0..=70, |n: usize| n..=n);
        let log_density = |p: f64| log_sum(numbers.clone().map(|n| log_levels(p, n, released, s))) + log_prior(p);
        let coarse = (0..150).map(|i| (f64::from(i) + 0.5) / 150.0);
        let chains = chains_on(&spec, scale(s * COUNT), &[(counts(&released), known)]);
        check(&format!("{known:?}"), &draws(chains, 0, 15_000), moments(coarse, log_density));
    }
}

/// Naive Bayes with one binary feature and five records, compared with a sum over all tables.
#[test]
fn a_table_of_two_by_two() {
    let (n, s, released) = (5_usize, 1.0, [3.2, 1.4, -0.3, 0.6, 0.8]);
    let model = "kind = \"naive_bayes\"\noutcome = \"c\"\npredictors = [\"x\"]";
    let spec = job(1, model, "c = { binary = true }\nx = { binary = true }", "", "chains = 2", 1.0);
    assert_eq!(spec.model.parameter_names(), ["c[0]", "c[1]", "x[0|0]", "x[1|0]", "x[0|1]", "x[1|1]"]);
    // Given a table, the law is Dirichlet(2): each cell's mean share is known, and the tables' weights are Dirichlet-multinomial.
    let (mut weight, mut class, mut level) = (0.0, 0.0, 0.0);
    let log_beta = |a: f64, b: f64| libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    for u in 0..=n {
        let m = n - u;
        for (a, b, c) in (0..=m).flat_map(|a| (0..=m - a).flat_map(move |b| (0..=m - a - b).map(move |c| (a, b, c)))) {
            let cells = [a, b, c, m - a - b - c, u].map(|k| k as f64);
            let table = &cells[..4];
            let arrangements = libm::lgamma(m as f64 + 1.0) - table.iter().map(|k| libm::lgamma(k + 1.0)).sum::<f64>();
            let (zero, one) = (table[0] + table[1], table[2] + table[3]);
            let law = log_beta(2.0 + zero, 2.0 + one)
                + log_beta(2.0 + table[0], 2.0 + table[1])
                + log_beta(2.0 + table[2], 2.0 + table[3]);
            let noise: f64 = cells.iter().zip(released).map(|(k, r)| -(r - k) * (r - k) / (2.0 * s * s)).sum();
            let w = (arrangements + law + noise).exp();
            weight += w;
            class += w * (2.0 + zero) / (4.0 + m as f64);
            level += w * (2.0 + table[0]) / (4.0 + zero);
        }
    }
    for (parameter, exact) in [(0, class / weight), (2, level / weight)] {
        let draws = draws(chains_on(&spec, scale(s * COUNT), &[(counts(&released), Some(n))]), parameter, 20_000);
        let found = draws.iter().sum::<f64>() / draws.len() as f64;
        // 40,000 draws of sd below .2, one in ten of them independent: a standard error of .003.
        assert!((found - exact).abs() < 0.012, "{parameter}: {found} of {exact}");
    }
}
