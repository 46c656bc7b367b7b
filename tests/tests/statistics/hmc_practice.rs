//! Error of `hmc` on generated data of several designs, with all costs charged: the root mean square error of posterior means, in
//! posterior sds, against a simulation of the same pipeline. With few seeds such a figure is accurate to a tenth; the limit is a
//! fifth above it.

use std::ops::Range;

use conclave_common::job::JobSpec;
use conclave_privacy::pass::ModelData;
use conclave_tests::federation::{Federation, Shard};
use conclave_tests::logistic_reference::invert;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Normal, Poisson};

/// The prior sd of every coefficient.
const PRIOR_SD: f64 = 2.5;

#[derive(Clone, Copy, PartialEq)]
enum Family {
    Logistic,
    /// Counts up to this maximum.
    Poisson(f64),
    /// Errors with this sd.
    Linear(f64),
}

/// Distinct records with a leading 1 for the intercept, outcomes in their own units, and their count at each party.
struct Data {
    family: Family,
    rows: Vec<(Vec<f64>, f64, Vec<u64>)>,
}

impl Family {
    /// Returns the mean of an outcome, and its derivative by the linear predictor in units of the variance.
    fn mean(self, eta: f64) -> (f64, f64) {
        match self {
            Self::Logistic => {
                let p = 1.0 / (1.0 + (-eta).exp());
                (p, p * (1.0 - p))
            }
            Self::Poisson(_) => (eta.exp(), eta.exp()),
            Self::Linear(_) => (eta, 1.0),
        }
    }

    fn draw(self, eta: f64, rng: &mut ChaCha20Rng) -> f64 {
        match self {
            Self::Logistic => f64::from(u8::from(rng.random::<f64>() < self.mean(eta).0)),
            Self::Poisson(most) => Poisson::new(eta.exp()).expect("a law").sample(rng).min(most),
            Self::Linear(sd) => (eta + Normal::new(0.0, sd).expect("a law").sample(rng)).clamp(-1.0, 1.0),
        }
    }

    /// Returns an outcome on the scale of a shard.
    fn scaled(self, y: f64) -> f64 {
        if let Self::Poisson(most) = self { 2.0 * y / most - 1.0 } else { y }
    }

    fn precision(self) -> f64 {
        if let Self::Linear(sd) = self { (sd * sd).recip() } else { 1.0 }
    }
}

impl Data {
    /// Returns mode and sds of the pooled posterior by Newton's method; with this many records, mean and mode agree.
    fn posterior(&self) -> (Vec<f64>, Vec<f64>) {
        let d = self.rows[0].0.len();
        let mut theta = vec![0.0; d];
        let mut covariance = Vec::new();
        for _ in 0..25 {
            let mut slope: Vec<f64> = theta.iter().map(|t| -t / (PRIOR_SD * PRIOR_SD)).collect();
            let mut information: Vec<Vec<f64>> =
                (0..d).map(|i| (0..d).map(|j| if i == j { (PRIOR_SD * PRIOR_SD).recip() } else { 0.0 }).collect()).collect();
            for (x, y, counts) in &self.rows {
                let weight = counts.iter().sum::<u64>() as f64 * self.family.precision();
                let (mean, bend) = self.family.mean(x.iter().zip(&theta).map(|(x, t)| x * t).sum());
                for i in 0..d {
                    slope[i] += weight * (y - mean) * x[i];
                    for j in 0..d {
                        information[i][j] += weight * bend * x[i] * x[j];
                    }
                }
            }
            covariance = invert(&information);
            let step: Vec<f64> = covariance.iter().map(|row| row.iter().zip(&slope).map(|(c, g)| c * g).sum()).collect();
            let longest = step.iter().fold(1.0_f64, |most, s| most.max(s.abs()));
            theta.iter_mut().zip(&step).for_each(|(t, s)| *t += s / longest);
        }
        (theta, (0..d).map(|j| covariance[j][j].sqrt()).collect())
    }

    /// Returns each party's records, without the leading 1.
    fn shards(&self) -> Vec<Shard> {
        let parties = self.rows[0].2.len();
        let distinct = self.rows.iter().any(|(_, _, counts)| counts.iter().any(|n| *n > 1));
        let of = |party: usize| {
            let held = self.rows.iter().filter(|(_, _, counts)| counts[party] > 0);
            if distinct {
                return Shard::weighted(held.map(|(x, y, counts)| (self.family.scaled(*y), x[1..].to_vec(), counts[party])));
            }
            let mut data = ModelData { predictors: vec![Vec::new(); self.rows[0].0.len() - 1], ..ModelData::default() };
            for (x, y, _) in held {
                data.outcome.push(self.family.scaled(*y));
                data.predictors.iter_mut().zip(&x[1..]).for_each(|(column, x)| column.push(*x));
            }
            Shard::columns(data)
        };
        (0..parties).map(of).collect()
    }
}

/// Generates `records` records at each party with predictors from `draw`; equal records are counted.
fn data(
    family: Family,
    (parties, records): (usize, u64),
    theta: &[f64],
    rng: &mut ChaCha20Rng,
    mut draw: impl FnMut(&mut ChaCha20Rng) -> Vec<f64>,
) -> Data {
    let mut counts = std::collections::BTreeMap::<Vec<u64>, Vec<u64>>::new();
    for party in 0..parties {
        for _ in 0..records {
            let mut row = draw(rng);
            row.push(family.draw(row.iter().zip(theta).map(|(x, t)| x * t).sum(), rng));
            let key = row.iter().map(|x| x.to_bits()).collect();
            counts.entry(key).or_insert_with(|| vec![0; parties])[party] += 1;
        }
    }
    let row = |(bits, counts): (Vec<u64>, Vec<u64>)| {
        let mut row: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
        let y = row.pop().expect("an outcome");
        (row, y, counts)
    };
    Data { family, rows: counts.into_iter().map(row).collect() }
}

struct Job<'a> {
    parties: usize,
    epsilon: f64,
    /// Name and column of each predictor.
    predictors: &'a [(String, String)],
    /// Further lines of `[sampler]`.
    sampler: &'a str,
}

fn job(Job { parties, epsilon, predictors, sampler }: &Job<'_>, family: Family, seed: u64) -> JobSpec {
    let (kind, outcome) = match family {
        Family::Logistic => ("kind = \"logistic\"".to_owned(), "{ binary = true }".to_owned()),
        Family::Poisson(most) => ("kind = \"poisson\"".to_owned(), format!("{{ min = 0, max = {most} }}")),
        Family::Linear(sd) => (format!("kind = \"linear\"\nsd = {sd}"), "{ min = -1, max = 1 }".to_owned()),
    };
    let parties: Vec<String> = (0..*parties).map(|party| format!("p{party}")).collect();
    let names: Vec<&String> = predictors.iter().map(|(name, _)| name).collect();
    let columns: String = predictors.iter().map(|(name, column)| format!("{name} = {column}\n")).collect();
    let text = format!(
        "name = \"practice\"\nalgorithm = \"hmc\"\nparties = {parties:?}\n[model]\n{kind}\noutcome = \"y\"\npredictors = {names:?}\n\
         [columns]\ny = {outcome}\n{columns}[prior]\ndefault = \"normal(0, {PRIOR_SD})\"\n[sampler]\nseed = {seed}\n{sampler}\n\
         [privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// Runs the job with several seeds; returns the root mean square error of posterior means, in sds, and the mean number of rounds.
fn practice(name: &str, design: &Job<'_>, seeds: Range<u64>, make: impl Fn(&mut ChaCha20Rng) -> Data) -> (f64, f64) {
    let (mut squares, mut worst, mut ratios, mut rhats, mut ess, mut rounds) = (0.0, 0.0_f64, vec![], vec![], vec![], 0.0);
    let (runs, mut means) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        let mut rng = ChaCha20Rng::seed_from_u64(7_000 + seed);
        let data = make(&mut rng);
        let (mean, sd) = data.posterior();
        let spec = job(design, data.family, seed);
        let run = Federation::new(spec, data.shards(), 8_000 + seed).run();
        let mut of_run = 0.0;
        for j in 0..mean.len() {
            let s = run.summary(j);
            of_run += ((s.mean - mean[j]) / sd[j]).powi(2);
            ratios.push(s.sd / sd[j]);
            rhats.push(s.rhat);
            ess.push(s.ess_bulk);
        }
        (squares, means) = (squares + of_run, means + mean.len());
        let of_run = (of_run / mean.len() as f64).sqrt();
        worst = worst.max(of_run);
        rounds += run.rounds.iter().sum::<u64>() as f64;
        println!("{name} {seed}: rounds {:?}, acceptance {:.3}, rms {of_run:.3}", run.rounds, run.acceptance);
    }
    let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let ends = |values: &[f64]| values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    let (rms, rounds) = ((squares / f64::from(means as u32)).sqrt(), rounds / runs as f64);
    println!(
        "{name}: rms {rms:.3} (worst run {worst:.3}), sd ratio {:.3} {:.2?}, R-hat {:.3} to {:.3}, ESS {:.0}, messages {rounds:.0}",
        average(&ratios),
        ends(&ratios),
        average(&rhats),
        ends(&rhats).1,
        average(&ess)
    );
    (rms, rounds)
}

fn seeds(or: u64) -> Range<u64> {
    0..std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(or)
}

fn numeric(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), "{ min = -1, max = 1 }".to_owned())).collect()
}

/// Draws treatment, and dose and age on grids of `points` points, correlated where `near` is a distance.
fn treated(rng: &mut ChaCha20Rng, points: u32, near: Option<f64>) -> Vec<f64> {
    let place = |rng: &mut ChaCha20Rng| 2.0 * f64::from(rng.random_range(0..points)) / f64::from(points - 1) - 1.0;
    loop {
        let (dose, age) = (place(rng), place(rng));
        let weight = near.map_or(1.0, |near| (-0.5 * ((dose - age) / near).powi(2)).exp());
        if rng.random::<f64>() < weight {
            return vec![1.0, f64::from(rng.random_range(0..2_u8)), dose, age];
        }
    }
}

fn three_predictors() -> Vec<(String, String)> {
    let mut predictors = vec![("treated".to_owned(), "{ binary = true }".to_owned())];
    predictors.extend(numeric(&["dose", "age"]));
    predictors
}

/// Runs a design in which dose and age have a correlation of .84.
fn correlated((name, sampler): (&str, &str), records: u64, seeds: Range<u64>) -> f64 {
    let predictors = three_predictors();
    let design = Job { parties: 3, epsilon: 3.0, predictors: &predictors, sampler };
    let theta = [-0.3, -0.5, 0.4, 0.6];
    let make = |rng: &mut ChaCha20Rng| data(Family::Logistic, (3, records), &theta, rng, |rng| treated(rng, 9, Some(0.35)));
    practice(name, &design, seeds, make).0
}

#[test]
#[ignore = "heavy: run by .ci/exhaustive"]
fn correlated_predictors_reach_the_simulated_error() {
    let rms = correlated(("correlated, 3 x 100000", ""), 100_000, seeds(20));
    println!("found {rms:.3}, expected 0.085");
    assert!(rms < 1.2 * 0.085, "{rms}");
}

/// One chain, since the budget has draws for one only: single runs are .02 to .8 off, so the figure takes a hundred runs.
#[test]
#[ignore = "heavy: run by .ci/exhaustive"]
fn few_correlated_records_reach_the_simulated_error() {
    let rms = correlated(("correlated, 3 x 10000, one chain", "chains = 1"), 10_000, seeds(100));
    println!("found {rms:.3}, expected 0.26");
    let four = correlated(("correlated, 3 x 10000, four chains", ""), 10_000, seeds(100));
    println!("found {four:.3} with four chains");
    assert!(rms < 1.2 * 0.26, "{rms}");
}

#[test]
#[ignore = "heavy: run by .ci/exhaustive"]
fn counts_reach_the_simulated_error() {
    let predictors = three_predictors();
    let design = Job { parties: 3, epsilon: 3.0, predictors: &predictors, sampler: "" };
    let make = |rng: &mut ChaCha20Rng| {
        data(Family::Poisson(6.0), (3, 100_000), &[0.3, -0.3, 0.3, 0.4], rng, |rng| treated(rng, 7, None))
    };
    let (rms, _) = practice("counts up to 6, 3 x 100000", &design, seeds(20), make);
    println!("found {rms:.3}, expected 0.121");
    assert!(rms < 1.2 * 0.121, "{rms}");
}

/// Nine numeric predictors and two columns of six levels, whose corners are too many to list. The simulation found .162 with
/// frames around 0, as here, and .121 with frames around their own centre, which needs all corners.
#[test]
#[ignore = "heavy: run by .ci/exhaustive"]
fn twenty_parameters_reach_the_simulated_error() {
    let mut predictors = numeric(&["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8"]);
    let levels = "{ levels = [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\"] }";
    predictors.extend(["f", "g"].map(|name| (name.to_owned(), levels.to_owned())));
    let design = Job { parties: 3, epsilon: 3.0, predictors: &predictors, sampler: "" };
    let theta: Vec<f64> = (0..20).map(|j| if j == 0 { -0.3 } else { 0.5 * f64::from(j as u32 * 7).sin() }).collect();
    let row = |rng: &mut ChaCha20Rng| {
        let mut row = vec![1.0];
        row.extend((0..9).map(|_| rng.random_range(-1.0..1.0)));
        for _ in 0..2 {
            let mut u = rng.random::<f64>();
            let level = [0.3, 0.25, 0.2, 0.12, 0.08, 0.05].iter().position(|p| {
                u -= p;
                u < 0.0
            });
            row.extend((1..6).map(|l| f64::from(u8::from(level == Some(l)))));
        }
        row
    };
    let make = |rng: &mut ChaCha20Rng| data(Family::Logistic, (3, 100_000), &theta, rng, row);
    let (rms, _) = practice("twenty parameters, 3 x 100000", &design, seeds(5), make);
    println!("found {rms:.3}, expected 0.162, or 0.121 with a centre");
    assert!(rms < 1.2 * 0.162, "{rms}");
}

/// An anchor: 100,000 records at four parties, an intercept and four predictors, epsilon 8, and the steps of 400 messages. The
/// whole budget would pay for four times as many, with half the error.
#[test]
#[ignore = "heavy: run by .ci/exhaustive"]
fn the_anchor_of_gradients() {
    let predictors = numeric(&["a", "b", "c", "d"]);
    let design = Job { parties: 4, epsilon: 8.0, predictors: &predictors, sampler: "draws = 180" };
    let row = |rng: &mut ChaCha20Rng| {
        let mut row = vec![1.0];
        row.extend((0..4).map(|_| rng.random_range(-1.0..1.0)));
        row
    };
    let make = |rng: &mut ChaCha20Rng| data(Family::Logistic, (4, 25_000), &[0.2, 0.4, -0.4, 0.2, -0.1], rng, row);
    let (rms, messages) = practice("the anchor", &design, seeds(16), make);
    println!("found {rms:.3} in {messages:.0} messages, limit 0.15 in 400");
    assert!(rms < 0.15 && messages <= 400.0, "{rms} {messages}");
}

/// A Gaussian posterior of ten coefficients, at one party and epsilon 15: linear regression with known residual sd.
#[test]
#[ignore = "heavy: run by .ci/exhaustive"]
fn a_gaussian_posterior_of_ten() {
    let predictors = numeric(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
    let design = Job { parties: 1, epsilon: 15.0, predictors: &predictors, sampler: "" };
    let row = |rng: &mut ChaCha20Rng| {
        let mut row = vec![1.0];
        row.extend((0..9).map(|_| rng.random_range(-1.0..1.0)));
        row
    };
    let theta = [0.05, 0.03, -0.04, 0.02, 0.06, -0.05, 0.01, 0.03, -0.02, 0.04];
    let make = |rng: &mut ChaCha20Rng| data(Family::Linear(0.3), (1, 100_000), &theta, rng, row);
    let (rms, _) = practice("a Gaussian of ten", &design, seeds(10), make);
    println!("found {rms:.3}, limit 0.10");
    assert!(rms < 0.1, "{rms}");
}
