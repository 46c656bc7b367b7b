//! Information bought by a budget: kappa of the law ESS ≈ (kappa/d) (mu / (2 L tau √N))², and two anchors.
//!
//! Sampler, kernels, lattice and noise are the real ones, with fixed seeds. The data consist of few distinct records with
//! multiplicities, so that a pass over a hundred thousand of them takes microseconds.

use std::fmt::Write;

use conclave_common::job::JobSpec;
use conclave_tests::federation::{Federation, Shard};
use conclave_tests::logistic_reference::{cholesky, laplace_covariance};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

/// A posterior on which a test runs chains.
struct Target {
    model: String,
    names: Vec<String>,
    /// Builds new shards, one per party, since shards cannot be copied.
    shards: Box<dyn Fn() -> Vec<Shard> + Sync>,
    parties: usize,
}

impl Target {
    fn job(&self, start: &[f64], sampler: &str, radii: &[f64], privacy: &str) -> JobSpec {
        let table = |values: &[f64]| {
            self.names.iter().zip(values).fold(String::new(), |mut text, (n, v)| {
                let _ = write!(text, "{n} = {v:?}, ");
                text
            })
        };
        let parties: Vec<String> = (0..self.parties).map(|i| format!("\"p{i}\"")).collect();
        let (kind, rest) = sampler.split_once(' ').expect("a proposal and the rest");
        JobSpec::parse(&format!(
            "name = \"information\"\nparties = [{}]\n{}\n[sampler]\n{}\nchains = 1\nstart = {{ {} }}\n\
             proposal = {{ kind = \"{kind}\", radius = {{ {} }} }}\n[privacy]\n{privacy}\n",
            parties.join(", "),
            self.model,
            rest.replace(' ', "\n"),
            table(start).trim_end_matches(", "),
            table(radii).trim_end_matches(", "),
        ))
        .expect("a job")
    }

    /// Returns mean and covariance of the posterior, and each coordinate's conditional sd.
    fn posterior(&self) -> (Vec<f64>, Vec<Vec<f64>>, Vec<f64>) {
        let ones = vec![0.01; self.names.len()];
        let job = self.job(&vec![0.0; ones.len()], "guided draws=1", &ones, "epsilon = 1.0\ndelta = 1e-6");
        let federation = Federation::new(job, (self.shards)(), 0);
        let log_posterior = |t: &[f64]| federation.log_posterior(t);
        let (mean, covariance) = laplace_covariance(&log_posterior, &vec![0.0; self.names.len()]);
        let conditional = |j: usize| {
            let h = 0.3 * covariance[j][j].sqrt();
            let at = |x: f64| {
                let mut t = mean.clone();
                t[j] += x;
                log_posterior(&t)
            };
            h / (2.0 * at(0.0) - at(h) - at(-h)).sqrt()
        };
        let conditional = (0..mean.len()).map(conditional).collect();
        (mean, covariance, conditional)
    }
}

/// Returns shards of distinct outcomes near a normal with this mean and sd, `n` records in total, distributed evenly.
fn normal_shards(n: u64, parties: usize, mean: f64, sd: f64) -> Vec<Shard> {
    let levels: Vec<(f64, f64)> = (-3..=3).map(f64::from).map(|z| (mean + sd * z, (-0.5 * z * z).exp())).collect();
    let total: f64 = levels.iter().map(|l| l.1).sum();
    let per_party = n as f64 / parties as f64;
    let shard = |_| Shard::weighted(levels.iter().map(|(y, w)| (*y, vec![], (w / total * per_party).round() as u64)));
    (0..parties).map(shard).collect()
}

/// A mean with known sd 1 and a slope bound of 4: outcomes in [−3, 5].
fn gaussian(parties: usize) -> Target {
    Target {
        model: "[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\ny = { min = -3, max = 5 }\n\
                [prior]\ndefault = \"normal(-0.25, 2.5)\""
            .into(),
        names: vec!["mean".into()],
        shards: Box::new(move || normal_shards(100_000, parties, 0.0, 0.25)),
        parties,
    }
}

/// A logistic regression on `predictors` two-level predictors at ±`level`, in a balanced fraction of the design, with or without
/// an intercept.
fn logistic(intercept: bool, predictors: usize, level: f64, parties: usize) -> Target {
    const EFFECTS: [f64; 5] = [0.4, -0.5, 0.3, 0.2, -0.2];
    let names: Vec<String> = (1..=predictors).map(|j| format!("x{j}")).collect();
    let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
    let columns: Vec<String> = names.iter().map(|n| format!("{n} = {{ min = -1, max = 1 }}")).collect();
    let shards = move || {
        let runs = 1u32 << (predictors - 1);
        let mut cells = Vec::new();
        for run in 0..runs {
            let mut signs: Vec<f64> = (0..predictors - 1).map(|j| if run >> j & 1 == 1 { 1.0 } else { -1.0 }).collect();
            signs.push(signs.iter().product());
            let constant = if intercept { -0.3 } else { 0.0 };
            let eta = constant + signs.iter().zip(EFFECTS).map(|(s, b)| s * b).sum::<f64>();
            let count = 100_000.0 / f64::from(runs) / parties as f64;
            let ones = count / (1.0 + (-eta).exp());
            let x: Vec<f64> = signs.iter().map(|s| s * level).collect();
            cells.push((1.0, x.clone(), ones.round() as u64));
            cells.push((0.0, x, (count - ones).round() as u64));
        }
        (0..parties).map(|_| Shard::weighted(cells.iter().cloned())).collect()
    };
    Target {
        model: format!(
            "[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [{}]\nintercept = {intercept}\n[columns]\n\
             y = {{ binary = true }}\n{}",
            quoted.join(", "),
            columns.join("\n")
        ),
        names: intercept.then(|| "intercept".to_owned()).into_iter().chain(names).collect(),
        shards: Box::new(shards),
        parties,
    }
}

/// Runs `count` independent pieces on two threads.
fn pieces<T: Send>(count: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let mut results: Vec<(u64, T)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|t| {
                let one = &one;
                scope.spawn(move || (t..count).step_by(2).map(|i| (i, one(i))).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().expect("a piece")).collect()
    });
    results.sort_by_key(|r| r.0);
    results.into_iter().map(|r| r.1).collect()
}

/// Returns the steps per effective draw about a known mean, with Sokal's window at six times the integrated autocorrelation time.
fn integrated_time(x: &[f64], mean: f64) -> f64 {
    let centred: Vec<f64> = x.iter().map(|x| x - mean).collect();
    let covariance = |lag: usize| centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / (x.len() - lag) as f64;
    let (variance, mut tau) = (covariance(0), 0.5);
    for lag in 1..x.len() / 4 {
        tau += covariance(lag) / variance;
        if lag as f64 >= 6.0 * tau {
            break;
        }
    }
    2.0 * tau
}

struct Kappa {
    value: f64,
    standard_error: f64,
}

/// Estimates kappa. With a bound L‖step‖, linear in the step, and noise variance sigma²/N at each of N parties, a run costs each
/// of them mu² = Σ (2 L ‖step‖)² N / sigma². The law solved for kappa is then ESS d tau² sigma² / Σ‖step‖², whatever L and N are.
///
/// Sixteen independent runs give the mean and its standard error. Each starts at the posterior mean and warms up.
fn kappa(target: &Target, proposal: &str, noise_sd: f64, radius: f64, steps: u64) -> Kappa {
    const RUNS: u64 = 16;
    let (mean, _, sd) = target.posterior();
    let d = mean.len();
    let radii: Vec<f64> = sd.iter().map(|s| radius * s).collect();
    let one = |run: u64| {
        let sampler = format!("{proposal} seed={run} draws={} warmup=100", steps / RUNS);
        let privacy = format!("epsilon = 1.0\ndelta = 1e-6\nnoise_sd = {noise_sd}");
        let mut federation = Federation::new(target.job(&mean, &sampler, &radii, &privacy), (target.shards)(), 700 + run);
        federation.budget = f64::INFINITY; // kappa is per step, whatever the number of steps
        let run = federation.run();
        let one = |j: usize| {
            // Every coordinate moves once per sweep.
            let sweeps: Vec<f64> = run.draws[j][0].iter().skip(d - 1).step_by(d).copied().collect();
            let step = (radius * sd[j]).powi(2) * (1.0 + 0.01 / 3.0);
            sd[j].powi(2) * noise_sd.powi(2) / (step * integrated_time(&sweeps, mean[j]))
        };
        (0..d).map(one).sum::<f64>() / d as f64
    };
    let values = pieces(RUNS, one);
    let value = values.iter().sum::<f64>() / RUNS as f64;
    let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
    Kappa { value, standard_error: (variance / RUNS as f64).sqrt() }
}

/// Compares both proposals with MATH.md's figures, 0.45–0.46 and 0.33. The limits are more than three standard errors of 3% below
/// them; one global sign gives the guided walk 0.31, and a random sign 0.33.
fn compare(target: &Target) {
    let guided = kappa(target, "guided", 1.75, 0.44, 480_000);
    let plain = kappa(target, "componentwise", 2.4, 0.6, 640_000);
    for (name, k) in [("guided", &guided), ("componentwise", &plain)] {
        println!("d = {}, {name}: kappa {:.3} ± {:.3}", target.names.len(), k.value, k.standard_error);
        assert!(k.standard_error <= 0.03 * k.value, "{name}: {} of {}", k.standard_error, k.value);
    }
    println!("guided over componentwise: {:.2}", guided.value / plain.value);
    assert!(guided.value >= 0.40 && plain.value >= 0.29 && guided.value / plain.value >= 1.2);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn kappa_of_a_gaussian_mean() {
    compare(&gaussian(1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn kappa_of_a_logistic_regression_of_four() {
    compare(&logistic(true, 3, 1.0, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn kappa_of_a_logistic_regression_of_five() {
    compare(&logistic(true, 4, 1.0, 1));
}

/// Results of chains at (8, 1e-6): root mean square error of posterior means in posterior sds, ratio of the mean variance to the
/// posterior's, iterations and acceptance.
struct ChainResults {
    error: f64,
    variance_ratio: f64,
    iterations: f64,
    acceptance: f64,
}

/// Runs independent chains, each with a whole budget and a start drawn from the posterior.
fn chains_at_epsilon_8(target: &Target, chains: u64, draws: u64) -> ChainResults {
    let (mean, covariance, sd) = target.posterior();
    let root = cholesky(&covariance);
    let d = mean.len();
    let radii: Vec<f64> = sd.iter().map(|s| 0.44 * s).collect();
    let one = |chain: u64| {
        let mut rng = ChaCha20Rng::seed_from_u64(9_000 + chain); // apart from the chains' seeds
        let z: Vec<f64> = (0..d).map(|_| StandardNormal.sample(&mut rng)).collect();
        let start: Vec<f64> =
            mean.iter().zip(&root).map(|(m, row)| m + row.iter().zip(&z).map(|(r, z)| r * z).sum::<f64>()).collect();
        let sampler = format!("guided seed={chain} draws={draws} warmup=0");
        let job = target.job(&start, &sampler, &radii, "epsilon = 8.0\ndelta = 1e-6");
        let run = Federation::new(job, (target.shards)(), 800 + chain).run();
        let n = run.draws[0][0].len() as f64;
        let (mut squares, mut variances) = (0.0, 0.0);
        for j in 0..d {
            let x = &run.draws[j][0];
            squares += (x.iter().sum::<f64>() / n - mean[j]).powi(2) / covariance[j][j] / d as f64;
            // About the known mean.
            variances += x.iter().map(|x| (x - mean[j]).powi(2)).sum::<f64>() / n / covariance[j][j] / d as f64;
        }
        [squares, variances, n, run.acceptance]
    };
    let all = pieces(chains, one);
    let average = |k: usize| all.iter().map(|c| c[k]).sum::<f64>() / chains as f64;
    let results =
        ChainResults { error: average(0).sqrt(), variance_ratio: average(1), iterations: average(2), acceptance: average(3) };
    println!(
        "{} chains of {:.0}: rms error {:.3} sd, variance ratio {:.3}, acceptance {:.3}",
        chains, results.iterations, results.error, results.variance_ratio, results.acceptance
    );
    results
}

/// Simulated: 14,660 iterations and 0.046 sd. With twenty chains the rms error is known to 16%, the variance ratio to about 1.2%.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_anchor_of_a_gaussian_mean() {
    let results = chains_at_epsilon_8(&gaussian(4), 20, 20_000);
    assert!((results.iterations / 14_660.0 - 1.0).abs() < 0.02, "{}", results.iterations);
    assert!(results.error <= 0.065 && (results.variance_ratio - 1.0).abs() <= 0.05);
    assert!((results.acceptance - 0.37).abs() < 0.02);
}

/// Simulated: 0.245 sd after 2,457 iterations, acceptance 0.364. Predictors at ±0.22, with a norm below 1/2, give about the
/// posterior sd of 0.031 at which a budget covers that number with a bound of 1 per unit step. The savings from this design's own
/// smaller bound are not spent. With thirty errors their root mean square is known to 13%.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_anchor_of_a_logistic_regression() {
    let target = logistic(false, 5, 0.22, 4);
    println!("posterior sds given the others: {:.4?}", target.posterior().2);
    let results = chains_at_epsilon_8(&target, 6, 2_457);
    assert!((results.iterations - 2_457.0).abs() < 0.5, "the budget holds that many: {}", results.iterations);
    assert!(results.error <= 0.35 && (results.acceptance - 0.364).abs() < 0.02);
}

/// Two predictors that agree in 95 of 100 records: a coefficient's conditional sd is a third of its own sd, and moves along the
/// coordinates are short. Rotated moves go further, but each costs more: their bound is √2 per unit of length, and cost grows
/// with squared length. They therefore save time and not budget. Measured: 4.9 times the effective draws in the same iterations,
/// and 1.18 times per unit of budget. The limits are half of the first, which unrotated moves miss with 1, and no great loss in
/// the second. The effective draws along coordinates, about 120, are known to a fifth.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn rotated_moves_save_iterations_where_predictors_are_correlated() {
    let target = Target {
        shards: Box::new(|| {
            let cell = |x: f64, z: f64, n: f64| {
                let ones = n / (1.0 + f64::exp(0.3 - 0.5 * x + 0.4 * z));
                [(1.0, vec![x, z], ones.round() as u64), (0.0, vec![x, z], (n - ones).round() as u64)]
            };
            let pairs = [(1.0, 1.0, 47_500.0), (-1.0, -1.0, 47_500.0), (1.0, -1.0, 2_500.0), (-1.0, 1.0, 2_500.0)];
            vec![Shard::weighted(pairs.into_iter().flat_map(|(x, z, n)| cell(x, z, n)))]
        }),
        ..logistic(true, 2, 1.0, 1)
    };
    let (mean, covariance, _) = target.posterior();
    let run = |rotate: u64| {
        let mut job = target.job(&mean, "guided draws=40000 warmup=600", &[0.1; 3], "epsilon = 8.0\ndelta = 1e-6");
        job.sampler.radius = conclave_common::job::Radius::Auto;
        job.sampler.rotate = rotate == 1;
        job.sampler.chains = 4;
        let mut federation = Federation::new(job, (target.shards)(), 600);
        federation.budget = f64::INFINITY;
        let run = federation.run();
        for j in 0..3 {
            let (s, sd) = (run.summary(j), covariance[j][j].sqrt());
            println!(
                "rotate {rotate}: ESS {:.0}, mean off by {:+.2} MCSE, sd ratio {:.3}",
                s.ess_bulk,
                (s.mean - mean[j]) / s.mcse_mean,
                s.sd / sd
            );
            assert!((s.mean - mean[j]).abs() < 4.5 * s.mcse_mean && (s.sd / sd - 1.0).abs() < 4.0 / (2.0 * s.ess_bulk).sqrt());
        }
        let ess = run.summary(1).ess_bulk;
        [ess, ess / federation.mu_squared]
    };
    let gain = pieces(2, run);
    let [for_iterations, for_budget] = [0, 1].map(|k| gain[1][k] / gain[0][k]);
    println!("effective draws, rotated over unrotated: {for_iterations:.2} per iteration, {for_budget:.2} per unit of budget");
    assert!(for_iterations > 2.5 && for_budget > 0.6);
}
