//! Theorem 1 of Yıldırım, *On the use of penalty MCMC for differential privacy*, as an experiment. The variance of the noise is
//! fixed, the walk is truncated at c n^-1/2 (assumption A3), and the chain makes k(n) = floor(k0 n / log n) iterations. Measures
//! the acceptance, and the mean squared error of the chain's posterior mean, against n, for a beta-Bernoulli and a logistic model
//! of one owner (Algorithm 1).
//!
//! Sampler, kernels, lattice and noise are the real ones. `cargo run --release -p conclave-tests --example fixed_noise -- FOLDER`
//! writes `fixed_noise.csv` and `fixed_noise.svg` there.

use std::fmt::Write;
use std::path::Path;

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::gaussian_dp;
use conclave_tests::federation::{Federation, Shard};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// Noise variance of one iteration.
const VARIANCE: f64 = 1.0;
/// Factor of the number of iterations, k0 in k0 n / log n.
const K0: f64 = 2.0;
/// Independent data sets and runs at each n.
const RUNS: u64 = 40;
const SIZES: [u64; 5] = [1_000, 3_000, 10_000, 30_000, 100_000];
const DELTA: f64 = 1e-6;
const TRUTH_P: f64 = 0.3;
/// Intercept and slope; the predictor is one of [`XS`] with equal probability.
const TRUTH: [f64; 2] = [-0.5, 1.0];
const XS: [f64; 5] = [-1.0, -0.5, 0.0, 0.5, 1.0];

/// The measurements at one n.
struct Row {
    n: u64,
    k: u64,
    acceptance: f64,
    /// Mean of (estimate − truth)² and of (estimate − exact posterior mean)², both divided by the posterior variance.
    to_truth: f64,
    to_posterior: f64,
    epsilon: f64,
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let models: [(&str, Experiment); 2] = [("beta-Bernoulli", bernoulli), ("logistic", logistic)];
    let mut csv = String::from("model,n,k,acceptance,mse,mse_over_variance,mse_to_posterior_over_variance,epsilon\n");
    let mut all = Vec::new();
    for (name, run) in models {
        let rows: Vec<Row> = SIZES.iter().map(|&n| measure(n, run, &mut csv, name)).collect();
        all.push((name, rows));
    }
    print!("{csv}");
    std::fs::write(Path::new(&folder).join("fixed_noise.csv"), &csv)?;
    std::fs::write(Path::new(&folder).join("fixed_noise.svg"), svg(&all))
}

/// One run: its acceptance, mu² spent, and for the last parameter the squared errors against truth and posterior mean, and the
/// posterior variance.
struct Outcome {
    acceptance: f64,
    mu_squared: f64,
    to_truth: f64,
    to_posterior: f64,
    variance: f64,
}

/// A run with this number of records and this seed.
type Experiment = fn(u64, u64) -> Outcome;

fn iterations(n: u64) -> u64 {
    (K0 * n as f64 / (n as f64).ln()) as u64
}

fn measure(n: u64, run: Experiment, csv: &mut String, name: &str) -> Row {
    let outcomes: Vec<Outcome> = (0..RUNS).map(|seed| run(n, seed)).collect();
    let mean = |f: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(f).sum::<f64>() / RUNS as f64;
    let row = Row {
        n,
        k: iterations(n),
        acceptance: mean(&|o| o.acceptance),
        to_truth: mean(&|o| o.to_truth / o.variance),
        to_posterior: mean(&|o| o.to_posterior / o.variance),
        epsilon: gaussian_dp::epsilon(mean(&|o| o.mu_squared).sqrt(), DELTA),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        csv,
        "{name},{n},{},{:.4},{:.3e},{:.3},{:.4},{:.2}",
        row.k,
        row.acceptance,
        mean(&|o| o.to_truth),
        row.to_truth,
        row.to_posterior,
        row.epsilon
    );
    row
}

fn job(n: u64, model: &str, columns: &str, prior: &str, start: &str, radius: &str) -> JobSpec {
    let (k, sd) = (iterations(n), VARIANCE.sqrt());
    JobSpec::parse(&format!(
        "name = \"fixed noise\"\nparties = [\"a\"]\n[model]\n{model}\n[columns]\n{columns}\n[prior]\n{prior}\n[sampler]\nchains = 1\n\
         draws = {k}\nwarmup = 0\nstart = {{ {start} }}\nproposal = {{ kind = \"truncated_walk\", radius = {{ {radius} }} }}\n\
         [privacy]\nepsilon = 1000.0\ndelta = {DELTA}\nnoise_sd = {sd}\n"
    ))
    .unwrap_or_else(|e| panic!("{e}"))
}

fn finish(mut job: JobSpec, shard: Shard, seed: u64, truth: f64, (mean, variance): (f64, f64)) -> Outcome {
    // The walk's own randomness must differ between runs, as the noise does.
    job.sampler.seed = seed;
    let mut federation = Federation::new(job, vec![shard], seed);
    federation.budget = f64::INFINITY; // the cost is measured, not limited
    let run = federation.run();
    let draws = run.draws.last().map_or(&[][..], |chains| &chains[0]);
    let estimate = draws.iter().sum::<f64>() / draws.len() as f64;
    Outcome {
        acceptance: run.acceptance,
        mu_squared: federation.mu_squared,
        to_truth: (estimate - truth).powi(2),
        to_posterior: (estimate - mean).powi(2),
        variance,
    }
}

fn bernoulli(n: u64, seed: u64) -> Outcome {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let ones = (0..n).filter(|_| rng.random::<f64>() < TRUTH_P).count() as u64;
    let shard = Shard::weighted([(1.0, vec![], ones), (0.0, vec![], n - ones)]);
    // On the logit scale the posterior sd is 1 / sqrt(n p (1 - p)), which is the radius of the walk.
    let radius = format!("p = {}", (n as f64 * TRUTH_P * (1.0 - TRUTH_P)).sqrt().recip());
    let model = "kind = \"bernoulli\"\noutcome = \"y\"";
    let job = job(n, model, "y = { binary = true }", "p = \"beta(1, 1)\"", &format!("p = {TRUTH_P}"), &radius);
    let (a, b) = (1.0 + ones as f64, 1.0 + (n - ones) as f64);
    finish(job, shard, seed, TRUTH_P, (a / (a + b), a * b / ((a + b).powi(2) * (a + b + 1.0))))
}

fn logistic(n: u64, seed: u64) -> Outcome {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut counts = [[0_u64; 2]; XS.len()];
    for _ in 0..n {
        let k = rng.random_range(0..XS.len());
        let p = 1.0 / (1.0 + (-TRUTH[0] - TRUTH[1] * XS[k]).exp());
        counts[k][usize::from(rng.random::<f64>() < p)] += 1;
    }
    let cell = |(k, c): (usize, &[u64; 2])| [(0.0, vec![XS[k]], c[0]), (1.0, vec![XS[k]], c[1])];
    let shard = || Shard::weighted(counts.iter().enumerate().flat_map(cell));
    let root = (n as f64).sqrt();
    let (model, columns) =
        ("kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]", "y = { binary = true }\nx = { min = -1, max = 1 }");
    let (start, radius) =
        (format!("intercept = {}, x = {}", TRUTH[0], TRUTH[1]), format!("intercept = {}, x = {}", 1.5 / root, 2.2 / root));
    let job = job(n, model, columns, "default = \"normal(0, 2.5)\"", &start, &radius);
    let exact = slope(&Federation::new(job.clone(), vec![shard()], seed), root);
    finish(job, shard(), seed, TRUTH[1], exact)
}

/// Computes the slope's posterior mean and variance by a sum over a grid that spans at least eight sds each way, in steps of half
/// an sd or less.
fn slope(federation: &Federation, root: f64) -> (f64, f64) {
    const POINTS: i32 = 80;
    let at = |j: usize, i: i32| TRUTH[j] + f64::from(i) * [0.9, 1.3][j] / root;
    let cells: Vec<(f64, f64)> = (-POINTS / 4..=POINTS / 4)
        .flat_map(|i| (-POINTS / 4..=POINTS / 4).map(move |j| (i, j)))
        .map(|(i, j)| (at(1, j), federation.log_posterior(&[at(0, i), at(1, j)])))
        .collect();
    let top = cells.iter().map(|c| c.1).fold(f64::NEG_INFINITY, f64::max);
    let sum = |f: &dyn Fn(f64) -> f64| cells.iter().map(|(x, l)| f(*x) * (l - top).exp()).sum::<f64>();
    let (total, mean) = (sum(&|_| 1.0), sum(&|x| x) / sum(&|_| 1.0));
    (mean, sum(&|x| (x - mean).powi(2)) / total)
}

/// Plots acceptance and the squared errors relative to the posterior variance (logarithmic) against n.
fn svg(all: &[(&str, Vec<Row>)]) -> String {
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 400\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <style>text{fill:#222}.axis{stroke:#222}@media(prefers-color-scheme:dark){text{fill:#ddd}.axis{stroke:#ddd}}</style>\n\
         <title>Fixed noise, k(n) = k0 n / log n</title>\n",
    );
    let x = |left: f64, n: u64| left + 340.0 * (n as f64 / 1e3).log10() / 2.0;
    let share = |v: f64| 340.0 - 280.0 * v.clamp(0.0, 1.0);
    let decades = |v: f64| 340.0 - 280.0 * ((v.log10() + 3.0) / 4.0).clamp(0.0, 1.0);
    for (left, title) in [(60.0, "Share of proposals accepted"), (490.0, "Squared error / posterior variance")] {
        let _ = write!(
            out,
            "<text x=\"{left}\" y=\"40\" font-weight=\"bold\">{title}</text>\n<path class=\"axis\" fill=\"none\" d=\"M{left} 60V340H{}\"/>\n",
            left + 345.0
        );
        for (n, label) in [(1_000, "1,000"), (10_000, "10,000"), (100_000, "100,000 records")] {
            let _ = writeln!(out, "<text x=\"{:.0}\" y=\"360\" text-anchor=\"middle\">{label}</text>", x(left, n));
        }
    }
    for tick in [0.0, 0.5, 1.0] {
        let _ = writeln!(out, "<text x=\"54\" y=\"{}\" text-anchor=\"end\">{tick}</text>", share(tick) + 4.0);
    }
    for tick in [0.001, 0.01, 0.1, 1.0, 10.0] {
        let _ = writeln!(out, "<text x=\"484\" y=\"{}\" text-anchor=\"end\">{tick}</text>", decades(tick) + 4.0);
    }
    for ((name, rows), (colour, dy)) in all.iter().zip([("#2b6cb0", 0.0), ("#c05621", 16.0)]) {
        let mut line = |left: f64, y: &dyn Fn(&Row) -> f64, dash: &str| {
            let points: Vec<String> = rows.iter().map(|r| format!("{:.1},{:.1}", x(left, r.n), y(r))).collect();
            let _ = writeln!(
                out,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" {dash} points=\"{}\"/>",
                points.join(" ")
            );
        };
        line(60.0, &|r| share(r.acceptance), "");
        line(490.0, &|r| decades(r.to_truth), "");
        line(490.0, &|r| decades(r.to_posterior), "stroke-dasharray=\"6 4\"");
        let _ = writeln!(out, "<text x=\"80\" y=\"{}\" style=\"fill:{colour}\">{name}</text>", 80.0 + dy);
    }
    out.push_str("<text x=\"490\" y=\"386\">solid: to the truth; dashed: to the exact posterior mean</text>\n</svg>\n");
    out
}
