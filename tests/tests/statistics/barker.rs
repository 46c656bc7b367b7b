//! `barker` on the mixture of Heikkilä et al. 2019, section 4: a million records of `theta = (0, 1)`, tempered to 100.
//!
//! The records follow the mixture exactly: each cell of width a quarter has its expected count among a million.

use conclave_common::job::JobSpec;
use conclave_tests::federation::{Federation, Run, Shard};

use crate::posteriors::on_a_grid;

const RECORDS: f64 = 1e6;
/// The declared bounds on either side of the middle, and the unit of the model's scale: one record in 20,000 is beyond them.
const BOUND: f64 = 6.0;
const MIDDLE: f64 = 0.5;
/// Number of cells per unit of the data.
const CELLS: i32 = 4;

/// A start at the middle, and steps of one and a half conditional sds.
const MOVES: &str = "start = { theta_1 = 0.0, theta_2 = 0.0 }\nproposal = { radius = { theta_1 = 0.04, theta_2 = 0.08 } }";

fn job(owners: usize, sampler: &str, epsilon: f64) -> JobSpec {
    let owners: Vec<String> = (0..owners).map(|i| format!("\"owner-{i}\"")).collect();
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

fn shards(owners: usize) -> Vec<Shard> {
    let density = |x: f64| {
        let normal = |mean: f64| (-0.25 * (x - mean) * (x - mean)).exp() / (4.0 * std::f64::consts::PI).sqrt();
        0.5 * (normal(0.0) + normal(1.0))
    };
    let cell = |i: i32| f64::from(i) / f64::from(CELLS);
    let most = BOUND as i32 * CELLS;
    let (lowest, highest) = ((MIDDLE * f64::from(CELLS)) as i32 - most, (MIDDLE * f64::from(CELLS)) as i32 + most);
    let share = |x: f64| (RECORDS / owners as f64 * density(x) / f64::from(CELLS)).round() as u64;
    let one = || {
        Shard::weighted(
            (lowest..=highest).map(cell).map(|x| ((x - MIDDLE) / BOUND, Vec::new(), share(x))).filter(|(.., n)| *n > 0),
        )
    };
    (0..owners).map(|_| one()).collect()
}

/// Origins of the parameters' scales, on the data's scale: 0 for a distance.
const ORIGINS: [f64; 2] = [MIDDLE, 0.0];

/// Returns the mean and variance of the kept draws of a parameter on the data's scale.
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

/// Epsilon 0.18 at each of ten owners, a start at the middle and given radii. With so small a bound each answer has the ledger's
/// minimal price, so that longer moves are nearly free and about 230 draws are effective. The standard errors of the means are
/// then 0.03 and 0.056, against limits of 0.075 and 0.15.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_mixture_of_the_paper_at_a_small_budget() {
    let owners = 10;
    let spec = job(owners, &format!("chains = 4\ndraws = 200000\nwarmup = 20\n{MOVES}"), 0.18);
    let mut federation = Federation::new(spec, shards(owners), 1);
    let exact = exact(&federation);
    // The authors' values, by numerical integration over a sample of the mixture, which shifts the means by a few thousandths.
    for ((mean, variance), (theirs, spread)) in exact.iter().zip([(0.4889, 0.2015), (0.0180, 0.7222)]) {
        assert!((mean - theirs).abs() < 0.02 && (variance / spread - 1.0).abs() < 0.02, "{exact:?}");
    }
    let run = federation.run();
    println!("rounds {:?}, acceptance {:.3}, ended by the budget: {}", run.rounds, run.acceptance, run.stopped_by_budget);
    for (j, most) in [0.075, 0.15].into_iter().enumerate() {
        let (mean, variance) = moments(&run, j);
        let ess = run.summary(j).ess_bulk;
        println!(
            "theta_{}: mean {mean:+.4} of {:+.4}, variance {variance:.4} of {:.4}, ESS {ess:.0}",
            j + 1,
            exact[j].0,
            exact[j].1
        );
        assert!(run.stopped_by_budget && (mean - exact[j].0).abs() <= most, "{mean} {:?}", exact[j]);
    }
}

/// An unlimited budget at one owner, since the total noise does not depend on the number of owners. 4e5 steps of each of eight
/// chains make about 30,000 effective draws, which determine means to 0.006 sds and variances to 0.8 %.
#[test]
#[ignore = "long: listed in .ci/pool.py"]
fn the_mixture_of_the_paper_without_a_limit() {
    let spec = job(1, &format!("chains = 8\ndraws = 400000\nwarmup = 200\n{MOVES}"), 30.0);
    let mut federation = Federation::new(spec, shards(1), 2);
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
