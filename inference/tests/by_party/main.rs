//! Parameters by party, from the job file to the draws in one process: the real kernels, lattice, noise and prices.
//!
//! *z* is the error of the posterior mean against the simulated truth, in claimed sds; *c90* is the coverage of the 90 % interval.
//! *sdr* is the claimed sd over that without privacy; *err* is the error of the mean against that without privacy, in sds of the latter.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod problem;

use problem::{BETA, BY_PARTY, Outcome, Run, Shard, Study, exact, job, run, simulate};

/// The figures of one group of parameters over many studies.
#[derive(Default)]
struct Figures {
    z2: f64,
    covered: f64,
    sdr2: f64,
    err2: f64,
    count: f64,
}

impl Figures {
    fn add(&mut self, run: &Run, j: usize, truth: f64, (mean, sd): (f64, f64)) {
        self.z2 += ((run.mean[j] - truth) / run.sd[j]).powi(2);
        self.covered += f64::from(u8::from((run.q05[j]..=run.q95[j]).contains(&truth)));
        self.sdr2 += (run.sd[j] / sd).powi(2);
        self.err2 += ((run.mean[j] - mean) / sd).powi(2);
        self.count += 1.0;
    }

    fn z(&self) -> f64 {
        (self.z2 / self.count).sqrt()
    }

    fn c90(&self) -> f64 {
        self.covered / self.count
    }

    fn sdr(&self) -> f64 {
        (self.sdr2 / self.count).sqrt()
    }

    fn err(&self) -> f64 {
        (self.err2 / self.count).sqrt()
    }

    fn words(&self) -> String {
        format!("z {:.2} c90 {:.3} sdr {:.2} err {:.2}", self.z(), self.c90(), self.sdr(), self.err())
    }
}

/// The figures of many studies.
#[derive(Default)]
struct Found {
    own: Figures,
    shared: Figures,
    mu: Figures,
    adequate: f64,
    /// Sum of squared errors of a two-stage analysis of the parties' own values, in sds without privacy.
    two_stage2: f64,
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("p{i}")).collect()
}

fn shards(study: &Study) -> Vec<&Shard> {
    study.shards.iter().collect()
}

fn over(outcome: Outcome, parties: usize, epsilon: f64, studies: u64, two_stage: bool) -> Found {
    let mut found = Found::default();
    let s = BETA.len();
    for seed in 0..studies {
        let study = simulate(outcome, parties, (500.0, 5000.0), 900 + seed);
        let (mean, sd) = exact(&study);
        let of = |j: usize| (mean[j], sd[j]);
        let run = run(&job(outcome, &names(parties), epsilon, BY_PARTY), outcome, &shards(&study), seed);
        for (i, alpha) in study.alpha.iter().enumerate() {
            found.own.add(&run, 1 + s + i, *alpha, of(1 + s + i));
        }
        (0..s).for_each(|j| found.shared.add(&run, 1 + j, BETA[j], of(1 + j)));
        found.mu.add(&run, 0, outcome.mu(), of(0));
        found.adequate += f64::from(u8::from(run.inference.is_adequate()));
        if two_stage {
            let effects = two_stage_effects(&study, epsilon, 1000 * seed);
            let off = effects.iter().enumerate().map(|(i, effect)| ((effect - mean[1 + s + i]) / sd[1 + s + i]).powi(2));
            found.two_stage2 += off.sum::<f64>();
        }
    }
    let two_stage = (found.two_stage2 / found.own.count).sqrt();
    println!(
        "epsilon {epsilon}, {parties} parties: own {}; shared {}; mu {}; adequate {}/{studies}; two-stage err {two_stage:.2}",
        found.own.words(),
        found.shared.words(),
        found.mu.words(),
        found.adequate
    );
    found
}

/// The parties' intercepts by a two-stage analysis: each party's own noisy-statistics, then a random-effects meta-analysis (DerSimonian
/// and Laird 1986) with shrunk effects.
fn two_stage_effects(study: &Study, epsilon: f64, seed: u64) -> Vec<f64> {
    let alone = |(i, shard): (usize, &Shard)| {
        let spec = job(study.outcome, &names(1), epsilon, "");
        let run = run(&spec, study.outcome, &[shard], seed + i as u64);
        (run.mean[0], run.sd[0] * run.sd[0])
    };
    let each: Vec<(f64, f64)> = study.shards.iter().enumerate().map(alone).collect();
    let weighed = |tau2: f64| {
        let weights: Vec<f64> = each.iter().map(|(_, v)| 1.0 / (v + tau2)).collect();
        let all: f64 = weights.iter().sum();
        (each.iter().zip(&weights).map(|((y, _), w)| w * y).sum::<f64>() / all, weights)
    };
    let (mean, weights) = weighed(0.0);
    let q: f64 = each.iter().zip(&weights).map(|((y, _), w)| w * (y - mean).powi(2)).sum();
    let (all, squares) = (weights.iter().sum::<f64>(), weights.iter().map(|w| w * w).sum::<f64>());
    let tau2 = ((q - (each.len() - 1) as f64) / (all - squares / all)).max(0.0);
    let (mean, _) = weighed(tau2);
    each.iter().map(|(y, v)| (tau2 * y + v * mean) / (tau2 + v)).collect()
}

/// At vanishing noise the means are those without privacy: within .1 sds, and sds within a twentieth.
#[test]
fn without_noise_it_is_the_posterior() {
    let study = simulate(Outcome::Logistic, 8, (500.0, 1500.0), 1);
    let (mean, sd) = exact(&study);
    let run = run(&job(Outcome::Logistic, &names(8), 300.0, BY_PARTY), Outcome::Logistic, &shards(&study), 1);
    assert!(run.inference.is_adequate(), "{:?}", run.inference.reasons);
    for (j, (mean, sd)) in mean.iter().zip(&sd).enumerate() {
        // 2,000 draws: a mean's Monte Carlo error is .022 sds, an sd's .016 of it; four and a half of either are within the bounds.
        assert!((run.mean[j] - mean).abs() < 0.1 * sd && (run.sd[j] / sd - 1.0).abs() < 0.1, "{j}: {} {mean}", run.mean[j]);
    }
}

/// Two coefficients vary; the box of a parameter bounds every party's own.
#[test]
fn slopes_vary_too() {
    let study = simulate(Outcome::Logistic, 3, (3000.0, 5000.0), 2);
    // About half of the mass of the least intercept lies outside.
    let least = study.alpha.iter().copied().fold(f64::INFINITY, f64::min);
    let more = format!("intercept = {{ by = \"party\", min = {least} }}\nx2 = {{ by = \"party\" }}\n");
    let spec = job(Outcome::Logistic, &names(3), 8.0, &more);
    let all = spec.draw_names();
    assert_eq!(
        all[4..],
        ["intercept[p0]", "intercept[p1]", "intercept[p2]", "intercept.sd", "x2[p0]", "x2[p1]", "x2[p2]", "x2.sd"]
    );
    let run = run(&spec, Outcome::Logistic, &shards(&study), 2);
    assert!(run.mean.len() == all.len() && run.q05[4..7].iter().all(|x| *x >= least), "{:?}", run.q05);
    assert_eq!(run.inference.noise_share.iter().filter(|share| share.is_none()).count(), 2);
}

/// Eight parties of 500 to 5,000 records, 100 studies each. With 800 own and 300 shared values a correct program's z is within .14 of 1
/// and its coverage within .05 of .9 with probability above .99; without the noise in the factors z is above 1.5 at epsilon 1 and 3.
#[test]
#[ignore = "minutes"]
fn eight_parties_reach_the_simulated_error() {
    for (epsilon, sdr, two_stage) in [(1.0, 1.6, true), (3.0, 1.10, true), (8.0, 1.03, false)] {
        let found = over(Outcome::Logistic, 8, epsilon, 100, two_stage);
        for figures in [&found.own, &found.shared] {
            assert!((0.85..=1.15).contains(&figures.z()) && (0.85..=0.95).contains(&figures.c90()), "{}", figures.words());
        }
        assert!(found.own.sdr() <= sdr, "{}", found.own.words());
        assert!(!two_stage || found.own.err() <= 0.5 * (found.two_stage2 / found.own.count).sqrt());
        assert!(epsilon < 2.0 || found.adequate >= 95.0, "{}", found.adequate);
    }
}

/// The same of counts at epsilon 3 and 8, 40 studies: z within .2 of 1 with probability above .99 for 120 shared values.
#[test]
#[ignore = "minutes"]
fn counts_by_party_are_calibrated() {
    for epsilon in [3.0, 8.0] {
        let found = over(Outcome::Poisson, 8, epsilon, 40, false);
        for figures in [&found.own, &found.shared] {
            assert!((0.8..=1.2).contains(&figures.z()) && (0.82..=0.97).contains(&figures.c90()), "{}", figures.words());
        }
        assert!(found.adequate >= 36.0, "{}", found.adequate);
    }
}
