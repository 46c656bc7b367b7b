//! `barker` on the mixture of Heikkilä et al. 2019, section 4: a million records of `theta = (0, 1)`, tempered to 100, at ten owners.
//!
//! The records are the law's own, in cells of a quarter: their count in each cell is what is expected of a million.

use conclave_common::job::JobSpec;
use conclave_tests::federation::{Federation, Run, Shard};

use crate::posteriors::on_a_grid;

const OWNERS: usize = 10;
const RECORDS: f64 = 1e6;
/// The declared bounds either way of the middle, which are the unit of the model's scale: beyond them there is one record in 20,000.
const BOUND: f64 = 6.0;
const MIDDLE: f64 = 0.5;
/// Cells to a unit of the data.
const CELLS: i32 = 4;

fn job(sampler: &str, epsilon: f64) -> JobSpec {
    let owners: Vec<String> = (0..OWNERS).map(|i| format!("\"owner-{i}\"")).collect();
    let (sd, wide, narrow) = (2f64.sqrt(), 10f64.sqrt() / BOUND, 1.0 / BOUND);
    let text = format!(
        "name = \"mixture\"\nalgorithm = \"barker\"\nparties = [{}]\n[model]\nkind = \"gaussian_mixture\"\noutcome = \"x\"\nsd = {sd}\npower = 1e-4\n\
         [columns]\nx = {{ min = {}, max = {} }}\n[prior]\ntheta_1 = \"normal({}, {wide})\"\ntheta_2 = \"normal(0, {narrow})\"\n[parameters]\n\
         theta_1 = {{ min = -1, max = 1 }}\ntheta_2 = {{ min = -1, max = 1 }}\n[sampler]\nseed = 3\nforce = true\n{sampler}\n[privacy]\nepsilon = {epsilon:?}\n\
         delta = 1e-6\n",
        owners.join(", "),
        MIDDLE - BOUND,
        MIDDLE + BOUND,
        -MIDDLE / BOUND
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

fn shards() -> Vec<Shard> {
    let density = |x: f64| {
        let normal = |mean: f64| (-0.25 * (x - mean) * (x - mean)).exp() / (4.0 * std::f64::consts::PI).sqrt();
        0.5 * (normal(0.0) + normal(1.0))
    };
    let cell = |i: i32| f64::from(i) / f64::from(CELLS);
    let most = BOUND as i32 * CELLS;
    let (lowest, highest) = ((MIDDLE * f64::from(CELLS)) as i32 - most, (MIDDLE * f64::from(CELLS)) as i32 + most);
    let share = |x: f64| (RECORDS / OWNERS as f64 * density(x) / f64::from(CELLS)).round() as u64;
    let one = || {
        Shard::weighted(
            (lowest..=highest).map(cell).map(|x| ((x - MIDDLE) / BOUND, Vec::new(), share(x))).filter(|(.., n)| *n > 0),
        )
    };
    (0..OWNERS).map(|_| one()).collect()
}

/// Where a parameter's scale has its 0, on the data's: a distance has none.
const ORIGINS: [f64; 2] = [MIDDLE, 0.0];

/// Mean and variance of the kept draws of a parameter on the data's scale.
fn moments(run: &Run, j: usize) -> (f64, f64) {
    let all = || run.draws[j].iter().flatten().map(|x| ORIGINS[j] + x * BOUND);
    let n = all().count() as f64;
    let mean = all().sum::<f64>() / n;
    (mean, all().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
}

fn exact(federation: &Federation) -> [(f64, f64); 2] {
    let grid = on_a_grid(federation, &[(-0.5, 0.6), (-0.8, 0.8)]);
    [0, 1].map(|j| (ORIGINS[j] + BOUND * grid[j].0, (BOUND * grid[j].1).powi(2)))
}

/// A budget of epsilon 0.18. The two parameters are correlated by -0.95, so that moves of single coordinates leave about a hundred effective
/// draws: the means err as those say, within four standard errors.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_mixture_of_the_paper_at_a_small_budget() {
    let spec = job("chains = 4\ndraws = 100000\nwarmup = 20", 0.18);
    let mut federation = Federation::new(spec, shards(), 1);
    let exact = exact(&federation);
    // As by numerical integration over a sample of the authors' law, which moves the means by some thousandths.
    for ((mean, variance), (theirs, spread)) in exact.iter().zip([(0.4889, 0.2015), (0.0180, 0.7222)]) {
        assert!((mean - theirs).abs() < 0.02 && (variance / spread - 1.0).abs() < 0.02, "{exact:?}");
    }
    let run = federation.run();
    for j in [0, 1] {
        let (mean, variance) = moments(&run, j);
        let ess = run.summary(j).ess_bulk;
        println!(
            "theta_{}: mean {mean:+.4} of {:+.4}, variance {variance:.4} of {:.4}, ESS {ess:.0}",
            j + 1,
            exact[j].0,
            exact[j].1
        );
        assert!(ess >= 50.0 && (mean - exact[j].0).abs() <= 4.0 * (exact[j].1 / ess).sqrt(), "{mean} {:?}", exact[j]);
    }
    println!("rounds {:?}, acceptance {:.3}, ended by the budget: {}", run.rounds, run.acceptance, run.stopped_by_budget);
}

/// Without a limit to the budget: 4e5 steps of each of eight chains, of about one sd of a coordinate given the other, make some 30,000 effective
/// draws. Means are known to 0.006 sds then, and variances to 0.8 %.
#[test]
#[ignore = "long: listed in .ci/pool.py"]
fn the_mixture_of_the_paper_without_a_limit() {
    let spec = job(
        "chains = 8\ndraws = 400000\nwarmup = 200\nstart = { theta_1 = 0.0, theta_2 = 0.0 }\nproposal = { radius = { theta_1 = 0.025, theta_2 = 0.05 } }",
        30.0,
    );
    let mut federation = Federation::new(spec, shards(), 2);
    federation.budget = f64::INFINITY;
    let exact = exact(&federation);
    let run = federation.run();
    for (j, (right, spread)) in exact.into_iter().enumerate() {
        let (mean, variance) = moments(&run, j);
        println!(
            "theta_{}: {:+.4} sds off, variance ratio {:.4}, ESS {:.0}",
            j + 1,
            (mean - right) / spread.sqrt(),
            variance / spread,
            run.summary(j).ess_bulk
        );
        assert!((mean - right).abs() < 0.02 * spread.sqrt(), "{mean} {right}");
        assert!((variance / spread - 1.0).abs() < 0.02, "{variance} {spread}");
    }
}
