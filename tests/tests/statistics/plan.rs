//! Forecasts of `plan` against runs of parties in one process.

use conclave_common::job::JobSpec;
use conclave_inference::planner::{Guess, Plan, plan};
use conclave_tests::federation::{Federation, Run, Shard};

fn job(model: &str, sampler: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nparties = [\"a\", \"b\", \"c\"]\n{model}\n[sampler]\nchains = 4\ndraws = 10_000_000\n{sampler}\n\
         [privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a job to the end of its budget, and plans it from a normal approximation of the posterior, computed without privacy.
fn both(spec: &JobSpec, shard: impl Fn() -> Shard, start: &[f64]) -> (Plan, Run, u64) {
    let mut federation = Federation::new(spec.clone(), (0..3).map(|_| shard()).collect(), 11);
    let (mean, covariance) = normal_approximation(&|theta| federation.log_posterior(theta), start);
    let guess = Guess { records: federation.records(), mean, covariance };
    let plan = plan(spec, &guess).expect("a plan");
    let run = federation.run();
    assert!(run.stopped_by_budget && plan.stopped_by == "budget");
    let rounds = run.rounds.iter().sum();
    (plan, run, rounds)
}

/// Returns mode and inverse curvature by Newton's method on central differences: with this many records, log posteriors are
/// nearly quadratic.
fn normal_approximation(log_posterior: &dyn Fn(&[f64]) -> f64, start: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let (d, h) = (start.len(), 1e-3_f64);
    let at = |theta: &[f64], moves: &[(usize, f64)]| {
        let mut theta = theta.to_vec();
        moves.iter().for_each(|(j, sign)| theta[*j] += sign * h);
        log_posterior(&theta)
    };
    let mut theta = start.to_vec();
    let mut covariance = Vec::new();
    for _ in 0..20 {
        let gradient: Vec<f64> = (0..d).map(|j| (at(&theta, &[(j, 1.0)]) - at(&theta, &[(j, -1.0)])) / (2.0 * h)).collect();
        let curvature = |i: usize, j: usize| {
            let mixed = |a: f64, b: f64| at(&theta, &[(i, a), (j, b)]);
            -(mixed(1.0, 1.0) - mixed(1.0, -1.0) - mixed(-1.0, 1.0) + mixed(-1.0, -1.0)) / (4.0 * h * h)
        };
        let information: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| curvature(i, j)).collect()).collect();
        covariance = inverse(information);
        for (x, row) in theta.iter_mut().zip(&covariance) {
            *x += row.iter().zip(&gradient).map(|(c, g)| c * g).sum::<f64>();
        }
    }
    (theta, covariance)
}

/// Returns the inverse by Gauss–Jordan elimination.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let d = matrix.len();
    let mut out: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for i in 0..d {
        let pivot = matrix[i][i];
        for rows in [&mut matrix, &mut out] {
            rows[i].iter_mut().for_each(|x| *x /= pivot);
        }
        for k in (0..d).filter(|k| *k != i) {
            let factor = matrix[k][i];
            for rows in [&mut matrix, &mut out] {
                let row = rows[i].clone();
                rows[k].iter_mut().zip(row).for_each(|(x, y)| *x -= factor * y);
            }
        }
    }
    out
}

/// Checks that expected effective draws are within a factor of 2 of the run's, which are known to 10% to 20%.
fn assert_ess(what: &str, plan: &Plan, run: &Run) {
    for (j, row) in plan.ess.iter().enumerate() {
        let chains: Vec<&[f64]> = run.draws[j].iter().map(Vec::as_slice).collect();
        let found = conclave_inference::diagnostics::ess(&chains);
        eprintln!("{what}, {}: ESS {found:.0}, planned {:.0}, kappa {:.3}", row.name, row.ess, row.kappa);
        assert!((0.5..2.0).contains(&(row.ess / found)), "{what}, {}: {found} against {row:?}", row.name);
    }
    let difference = plan.acceptance_rate - run.acceptance;
    eprintln!("{what}: acceptance {:.3}, planned {:.3}", run.acceptance, plan.acceptance_rate);
    assert!(difference.abs() < 0.04, "{what}: acceptance {} against {}", run.acceptance, plan.acceptance_rate);
}

const MEAN: &str = "[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\ny = { min = -3, max = 5 }";

/// Returns outcomes of mean 1 and sd near 1 on a grid, on the model's scale.
fn outcomes() -> Shard {
    let weight = |k: i32| (3e5 * (-0.5 * (f64::from(k) / 4.0).powi(2)).exp() / (4.0 * 2.5066)).round() as u64;
    Shard::weighted((-12..=12).map(|k| (f64::from(k) / 16.0, Vec::new(), weight(k))))
}

/// A fixed radius without jitter: every query costs the same, and the number of rounds is predicted exactly.
#[test]
fn rounds_of_a_fixed_radius_are_exact() {
    let spec = job(MEAN, "warmup = 20\nstart = { mean = 0.0 }\nproposal = { kind = \"guided\", radius = 0.000115, jitter = 0 }");
    let (plan, run, rounds) = both(&spec, outcomes, &[0.0]);
    eprintln!("gaussian_mean: {rounds} rounds, planned {}", plan.iterations);
    assert_eq!(plan.iterations, rounds);
    assert_ess("gaussian_mean", &plan, &run);
}

/// The job itself finds radii and mode.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn rounds_of_a_job_that_finds_its_own_radii_are_close() {
    let logistic = "[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\", \"z\"]\n[columns]\ny = { binary = true }\n\
        x = { binary = true }\nz = { min = 0, max = 2 }";
    let bernoulli = "[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }";
    let cells = || {
        let levels = [0.0, 1.0].into_iter().flat_map(|x| [-1.0, 0.0, 1.0].map(|z| (x, z)));
        Shard::weighted(levels.flat_map(|(x, z): (f64, f64)| {
            let p = 1.0 / (1.0 + (0.4 - 0.7 * x - 0.5 * z).exp());
            let ones = (40_000.0 * p) as u64;
            [(1.0, vec![x, z], ones), (0.0, vec![x, z], 40_000 - ones)]
        }))
    };
    let coin = || Shard::weighted([(1.0, Vec::new(), 30_000), (0.0, Vec::new(), 70_000)]);
    let (plan, run, rounds) = both(&job(logistic, "warmup = 50"), cells, &[-0.4, 0.7, 0.5]);
    check_near("logistic", &plan, &run, rounds);
    let (plan, run, rounds) = both(&job(bernoulli, "warmup = 50\nstart = { p = 0.3 }"), coin, &[0.3]);
    check_near("bernoulli", &plan, &run, rounds);
}

fn check_near(what: &str, plan: &Plan, run: &Run, rounds: u64) {
    eprintln!("{what}: {rounds} rounds, planned {}", plan.iterations);
    assert!((plan.iterations as f64 / rounds as f64 - 1.0).abs() < 0.1, "{what}: {rounds} rounds, planned {}", plan.iterations);
    assert_ess(what, plan, run);
}
