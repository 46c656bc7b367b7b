//! Logistic and Poisson regressions of categorical predictors, by the table of outcome and predictors.

use super::*;
use conclave_inference::planner;

/// Predictors with values 0 and 1, `b0 ...`, and optionally one with three levels, `w`; an outcome of 0 and 1, or counts.
#[derive(Clone, Copy)]
struct Design {
    binaries: usize,
    levels: bool,
    /// The greatest count; `None` for an outcome of 0 and 1.
    most: Option<f64>,
    /// Value of `release.table`.
    table: Option<bool>,
}

impl Design {
    fn spec(&self, epsilon: f64) -> JobSpec {
        let binaries: Vec<String> = (0..self.binaries).map(|i| format!("b{i}")).collect();
        let names = binaries.iter().map(String::as_str).chain(self.levels.then_some("w"));
        let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
        let columns: String = binaries.iter().map(|name| format!("{name} = {{ binary = true }}\n")).collect();
        let (kind, outcome) = match self.most {
            Some(most) => ("poisson", format!("min = 0, max = {most}")),
            None => ("logistic", "binary = true".to_owned()),
        };
        let release = self.table.map(|table| format!("[release]\ntable = {table}\n")).unwrap_or_default();
        JobSpec::parse(&format!(
            "name = \"t\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
             predictors = [{}]\n[prior]\ndefault = \"normal(0, {PRIOR_SD})\"\n[columns]\ny = {{ {outcome} }}\n{columns}\
             w = {{ levels = [\"p\", \"q\", \"r\"] }}\n[sampler]\nforce = true\ndraws = {DRAWS}\nwarmup = 10\n{release}[privacy]\nepsilon = {epsilon}\n\
             delta = 1e-6\n",
            quoted.join(", ")
        ))
        .unwrap()
    }

    fn records(&self, n: usize, intercept: f64, rng: &mut ChaCha20Rng) -> Records {
        let mut x = Vec::new();
        let mut y = Vec::new();
        for _ in 0..n {
            let mut row: Vec<f64> = (0..self.binaries).map(|_| f64::from(u8::from(rng.random::<f64>() < 0.5))).collect();
            if self.levels {
                let w = if rng.random::<f64>() < 2.0 / 3.0 { rng.random_range(1..3) } else { 0 };
                row.extend([f64::from(u8::from(w == 1)), f64::from(u8::from(w == 2))]);
            }
            let eta = intercept + row.iter().enumerate().map(|(j, x)| x * [0.7, -0.5, 0.9, -0.4][j % 4]).sum::<f64>();
            y.push(match self.most {
                Some(most) => Poisson::new(eta.exp()).unwrap().sample(rng).min(most),
                None => f64::from(u8::from(rng.random::<f64>() < logistic(eta))),
            });
            x.push(row);
        }
        Records { x, y, offset: Vec::new() }
    }
}

fn simulate(design: &Design, (n, intercept): (usize, f64), epsilon: f64, runs: u64) -> Found {
    let spec = design.spec(epsilon);
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let (mut errors, mut z, mut answers, mut rounds) = (Vec::new(), Vec::new(), 0, 0);
    for seed in 0..runs {
        let records = design.records(n, intercept, &mut rng);
        let (mode, sd) = match design.most {
            Some(_) => without_privacy(&records, |y, eta| y - eta.exp(), f64::exp),
            None => without_privacy(&records, |y, eta| y - logistic(eta), |eta| logistic(eta) * logistic(-eta)),
        };
        let scale = |y: f64| design.most.map_or(y, |most| 2.0 * y / most - 1.0);
        let run = run(&spec, &records, scale, seed);
        answers += usize::from(run.inference.is_adequate());
        rounds = rounds.max(run.rounds);
        for j in 0..mode.len() {
            let off = run.mean[j] - mode[j];
            errors.push(off / sd[j]);
            z.push(off / (run.sd[j] * run.sd[j] - sd[j] * sd[j]).max(1e-4 * sd[j] * sd[j]).sqrt());
        }
    }
    Found { error: rms(&errors), z: rms(&z), answers, rounds }
}

/// Two runs of 9 coefficients from 512 cells, and six of 3 coefficients from the counts 0 to 4 in 20 cells. The rms of these z has
/// an sd of about 0.17: the range is three of them. A table that is read with a different order of cells or values is
/// far outside.
#[test]
fn large_tables_and_those_of_counts_are_calibrated() {
    let large = Design { binaries: 8, table: Some(true), ..UNNAMED };
    let counts = Design { most: Some(4.0), table: Some(true), ..UNNAMED };
    for (design, (n, epsilon), runs) in [(large, (20_000, 8.0), 2), (counts, (3_000, 3.0), 6)] {
        let found = simulate(&design, (n, -0.4), epsilon, runs);
        println!("{n} eps {epsilon}: error {:.2} z {:.2} answers {}", found.error, found.z, found.answers);
        assert_eq!((found.answers as u64, found.rounds), (runs, 1));
        assert!((0.5..1.5).contains(&found.z), "{}", found.z);
    }
}

/// Draws of each chain.
const DRAWS: usize = 1000;
const UNNAMED: Design = Design { binaries: 2, levels: false, most: None, table: None };
const DESIGNS: [Design; 2] = [Design { binaries: 1, levels: true, ..UNNAMED }, UNNAMED];

/// In 12 runs of 3 or 4 coefficients, the mean square of z has an sd of about .3, including correlation. Noise of half or twice
/// the claimed size lies outside the range; so does a table read with a different order of cells.
#[test]
fn a_table_is_calibrated_and_as_sharp_as_announced() {
    for (design, (n, epsilon)) in DESIGNS.iter().zip([(3_000, 1.0), (900, 3.0)]) {
        let found = simulate(design, (n, -0.4), epsilon, 12);
        println!("{n} eps {epsilon}: error {:.2} z {:.2} answers {}", found.error, found.z, found.answers);
        assert_eq!((found.answers, found.rounds), (12, 1));
        assert!((0.55..1.5).contains(&found.z), "{}", found.z);
        let expected = planner::expect(&design.spec(epsilon), &[n as u64 / 3; 3]).unwrap().unwrap().expected_error;
        assert!((0.6..1.6).contains(&(found.error / expected)), "{} of {expected}", found.error);
    }
}

/// A table needs no preliminary search, so rare outcomes are not missed.
#[test]
fn rare_outcomes_are_answered() {
    let found = simulate(&DESIGNS[0], (9_000, -4.0), 3.0, 10);
    println!("rare: error {:.2} z {:.2} answers {}", found.error, found.z, found.answers);
    assert_eq!(found.answers, 10);
    assert!((0.5..1.5).contains(&found.z), "{}", found.z);
}
