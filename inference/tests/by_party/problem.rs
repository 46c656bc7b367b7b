//! Simulated studies of parties that differ, their jobs in one process, and their posterior without privacy.

use conclave_common::job::JobSpec;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler::{self, Inference, Next, Totals};
use conclave_privacy::accounting::{PrivacyFilter, PrivacyUnit};
use conclave_privacy::pass::ModelData;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Poisson, StandardNormal};

pub(super) const PRIOR_SD: f64 = 2.5;
/// The simulated coefficients: the intercept's sd over parties, and the shared ones.
pub(super) const TAU: f64 = 0.5;
pub(super) const BETA: [f64; 3] = [0.5, -0.3, 0.8];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    Logistic,
    Poisson,
}

impl Outcome {
    pub(super) fn mu(self) -> f64 {
        match self {
            Self::Logistic => -1.0,
            Self::Poisson => -0.5,
        }
    }
}

/// One party's records: design rows with the intercept's 1 first, and outcomes.
pub(super) struct Shard {
    pub(super) x: Vec<Vec<f64>>,
    pub(super) y: Vec<f64>,
}

pub(super) struct Study {
    pub(super) outcome: Outcome,
    pub(super) shards: Vec<Shard>,
    /// Each party's intercept.
    pub(super) alpha: Vec<f64>,
}

pub(super) struct Run {
    pub(super) mean: Vec<f64>,
    pub(super) sd: Vec<f64>,
    pub(super) q05: Vec<f64>,
    pub(super) q95: Vec<f64>,
    pub(super) inference: Inference,
}

fn normal(rng: &mut ChaCha20Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Parties with sizes log-uniform between two limits, whose patients differ in their mean predictors.
pub(super) fn simulate(outcome: Outcome, parties: usize, (least, most): (f64, f64), seed: u64) -> Study {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut study = Study { outcome, shards: Vec::new(), alpha: Vec::new() };
    for _ in 0..parties {
        let n = (least.ln() + (most / least).ln() * rng.random::<f64>()).exp() as usize;
        let alpha = outcome.mu() + TAU * normal(&mut rng);
        let mean: Vec<f64> = BETA.iter().map(|_| 0.15 * normal(&mut rng)).collect();
        let mut shard = Shard { x: Vec::new(), y: Vec::new() };
        for _ in 0..n {
            let x: Vec<f64> = mean.iter().map(|m| (2.0 * rng.random::<f64>() - 1.0 + m).clamp(-1.0, 1.0)).collect();
            let eta = alpha + x.iter().zip(BETA).map(|(x, b)| x * b).sum::<f64>();
            shard.y.push(match outcome {
                Outcome::Logistic => f64::from(u8::from(rng.random::<f64>() < 1.0 / (1.0 + (-eta).exp()))),
                Outcome::Poisson => Poisson::new(eta.exp()).unwrap().sample(&mut rng).min(MOST_COUNT),
            });
            shard.x.push([vec![1.0], x].concat());
        }
        study.alpha.push(alpha);
        study.shards.push(shard);
    }
    study
}

/// Declared bound of a count, which hardly any exceeds.
pub(super) const MOST_COUNT: f64 = 10.0;

pub(super) fn job(outcome: Outcome, parties: &[String], epsilon: f64, more: &str) -> JobSpec {
    let (kind, y) = match outcome {
        Outcome::Logistic => ("logistic", "binary = true".to_owned()),
        Outcome::Poisson => ("poisson", format!("min = 0, max = {MOST_COUNT}")),
    };
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"noisy-statistics\"\nparties = {parties:?}\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
         predictors = [\"x1\", \"x2\", \"x3\"]\n[prior]\ndefault = \"normal(0, {PRIOR_SD})\"\n[columns]\ny = {{ {y} }}\n\
         x1 = {{ min = -1, max = 1 }}\nx2 = {{ min = -1, max = 1 }}\nx3 = {{ min = -1, max = 1 }}\n[sampler]\nchains = 2\ndraws = 1000\n\
         [privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n[parameters]\n{more}"
    ))
    .unwrap()
}

pub(super) const BY_PARTY: &str = "intercept = { by = \"party\" }\n";

/// Runs a job of these parties in one process. Each spends its whole cap, and no more.
pub(super) fn run(spec: &JobSpec, outcome: Outcome, shards: &[&Shard], seed: u64) -> Run {
    let scaled = |y: &f64| match outcome {
        Outcome::Logistic => *y,
        Outcome::Poisson => 2.0 * y / MOST_COUNT - 1.0,
    };
    let shard = |shard: &&Shard| {
        let column = |j: usize| shard.x.iter().map(|x| x[j]).collect();
        let outcome = shard.y.iter().map(scaled).collect();
        (ModelData { outcome, predictors: (1..4).map(column).collect(), ..ModelData::default() }, PrivacyUnit::default())
    };
    let shards: Vec<_> = shards.iter().map(shard).collect();
    let mut parties = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut sampler = sampler::build(spec, &parties.metadata()).unwrap();
    let mut draws = Vec::new();
    while let Next::Ask(round) = sampler.next_round().unwrap() {
        let Answer::Released(releases) = parties.answer(&round).unwrap() else { panic!("beyond the budget") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        draws.extend(sampler.take_draws());
    }
    let limit = PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units();
    for (_, units) in parties.spent() {
        assert!(units <= limit && units as f64 > 0.999 * limit as f64, "{units} of {limit}");
    }
    let d = draws[0].theta.len();
    let column = |j: usize| {
        let mut values: Vec<f64> = draws.iter().map(|draw| draw.theta[j]).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let columns: Vec<Vec<f64>> = (0..d).map(column).collect();
    let mean: Vec<f64> = columns.iter().map(|c| c.iter().sum::<f64>() / c.len() as f64).collect();
    let sd = columns.iter().zip(&mean).map(|(c, m)| (c.iter().map(|x| (x - m).powi(2)).sum::<f64>() / c.len() as f64).sqrt());
    let quantile = |part: f64| columns.iter().map(|c| c[(part * c.len() as f64) as usize]).collect();
    Run { sd: sd.collect(), q05: quantile(0.05), q95: quantile(0.95), mean, inference: sampler.report().inference.unwrap() }
}

/// Means and sds of the posterior without privacy, in the order of a draw: intercept, shared coefficients, each party's intercept, sd.
///
/// Each party's likelihood is expanded at the hierarchical mean. Given the sd, all other parameters are one Gaussian, whose precision
/// matrix is set up entry by entry, with nothing integrated out; the sd is integrated on a grid.
pub(super) fn exact(study: &Study) -> (Vec<f64>, Vec<f64>) {
    let (n, s) = (study.shards.len(), BETA.len());
    let mut theta = vec![vec![0.0; s + 1]; n];
    let mut found = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let factors: Vec<_> = study.shards.iter().zip(&theta).map(|(shard, at)| expand(study.outcome, shard, at)).collect();
        found = on_grid(&factors, n, s);
        let mean = &found.0;
        let next: Vec<Vec<f64>> = (0..n).map(|i| [&[mean[1 + s + i]][..], &mean[1..=s]].concat()).collect();
        let moved = next.iter().flatten().zip(theta.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        theta = next;
        if moved < 1e-9 {
            break;
        }
    }
    found
}

/// `A` and `h` of one party's likelihood `exp(-½ u'Au + h'u)` around a point.
type Expanded = (Vec<Vec<f64>>, Vec<f64>);

fn expand(outcome: Outcome, shard: &Shard, at: &[f64]) -> Expanded {
    let d = at.len();
    let (mut a, mut h) = (vec![vec![0.0; d]; d], vec![0.0; d]);
    for (x, y) in shard.x.iter().zip(&shard.y) {
        let eta: f64 = x.iter().zip(at).map(|(x, b)| x * b).sum();
        let (mean, weight) = match outcome {
            Outcome::Logistic => {
                let p = 1.0 / (1.0 + (-eta).exp());
                (p, p * (1.0 - p))
            }
            Outcome::Poisson => (eta.exp(), eta.exp()),
        };
        for i in 0..d {
            h[i] += x[i] * (y - mean + weight * eta);
            (0..d).for_each(|j| a[i][j] += weight * x[i] * x[j]);
        }
    }
    (a, h)
}

fn on_grid(factors: &[Expanded], n: usize, s: usize) -> (Vec<f64>, Vec<f64>) {
    let order = 1 + s + n;
    let (mut logs, mut parts) = (Vec::new(), Vec::new());
    for step in 0..120 {
        // Finer near 0: the square of an even grid.
        let edge = |k: usize| 3.0 * (k as f64 / 120.0).powi(2);
        let (tau, width) = (0.5 * (edge(step) + edge(step + 1)), edge(step + 1) - edge(step));
        let tight = tau.powi(-2);
        let (mut p, mut b) = (vec![vec![0.0; order]; order], vec![0.0; order]);
        (0..=s).for_each(|j| p[j][j] += PRIOR_SD.powi(-2));
        for (i, (a, h)) in factors.iter().enumerate() {
            let place = |j: usize| if j == 0 { 1 + s + i } else { j };
            for (j, row) in a.iter().enumerate() {
                b[place(j)] += h[j];
                row.iter().enumerate().for_each(|(k, value)| p[place(j)][place(k)] += value);
            }
            let own = 1 + s + i;
            p[own][own] += tight;
            p[0][0] += tight;
            p[own][0] -= tight;
            p[0][own] -= tight;
        }
        let (lower, half_log) = cholesky(&p);
        let mean = solve(&lower, &b);
        let variance: Vec<f64> = (0..order)
            .map(|j| {
                let unit: Vec<f64> = (0..order).map(|i| f64::from(u8::from(i == j))).collect();
                solve(&lower, &unit)[j]
            })
            .collect();
        let quadratic: f64 = mean.iter().zip(&b).map(|(m, b)| m * b).sum();
        logs.push(0.5 * quadratic - half_log - n as f64 * tau.ln() - 0.5 * tau * tau + width.ln());
        parts.push((mean, variance, tau));
    }
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|l| (l - top).exp()).collect();
    let all: f64 = weights.iter().sum();
    let of = |value: &dyn Fn(usize) -> (f64, f64)| {
        let (mut first, mut second) = (0.0, 0.0);
        for (g, weight) in weights.iter().enumerate() {
            let (mean, variance) = value(g);
            first += weight / all * mean;
            second += weight / all * (variance + mean * mean);
        }
        (first, (second - first * first).max(0.0).sqrt())
    };
    let mut found: Vec<(f64, f64)> = (0..order).map(|j| of(&|g| (parts[g].0[j], parts[g].1[j]))).collect();
    found.push(of(&|g| (parts[g].2, 0.0)));
    found.into_iter().unzip()
}

fn cholesky(p: &[Vec<f64>]) -> (Vec<Vec<f64>>, f64) {
    let d = p.len();
    let mut lower = vec![vec![0.0; d]; d];
    let mut half_log = 0.0;
    for i in 0..d {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            lower[i][j] = if i == j { (p[i][i] - known).sqrt() } else { (p[i][j] - known) / lower[j][j] };
        }
        half_log += lower[i][i].ln();
    }
    (lower, half_log)
}

fn solve(lower: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let d = b.len();
    let mut x = b.to_vec();
    for i in 0..d {
        let known: f64 = (0..i).map(|k| lower[i][k] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i][i];
    }
    for i in (0..d).rev() {
        let known: f64 = (i + 1..d).map(|k| lower[k][i] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i][i];
    }
    x
}
