//! Linear regressions of categorical predictors, by the table of combinations and sums.

use super::*;
use conclave_inference::planner;
use conclave_inference::sampler::with_chosen_table;

/// Predictors with values 0 and 1, and optionally one with levels; all interactions of two of them if asked.
#[derive(Clone, Copy, Debug)]
struct Design {
    binaries: usize,
    /// Number of levels of `w`; 0 without it.
    levels: usize,
    interactions: bool,
    /// The residuals' sd, in half widths of the outcome.
    sigma: f64,
}

const DRAWS: usize = 1000;

impl Design {
    fn text(&self, epsilon: f64, records: usize, table: Option<bool>) -> String {
        let binaries: Vec<String> = (0..self.binaries).map(|i| format!("b{i}")).collect();
        let mut names: Vec<String> = binaries.iter().cloned().chain((self.levels > 0).then(|| "w".to_owned())).collect();
        let columns: String = binaries.iter().map(|name| format!("{name} = {{ binary = true }}\n")).collect();
        if self.interactions {
            let pairs = (0..names.len()).flat_map(|i| (i + 1..names.len()).map(move |j| (i, j)));
            let products: Vec<String> = pairs.map(|(i, j)| format!("{}:{}", names[i], names[j])).collect();
            names.extend(products);
        }
        let levels: Vec<String> = (0..self.levels).map(|level| format!("l{level}")).collect();
        let levels = if self.levels > 0 { format!("w = {{ levels = {levels:?} }}\n") } else { String::new() };
        let release = table.map(|table| format!("[release]\ntable = {table}\n")).unwrap_or_default();
        format!(
            "name = \"t\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\n\
             predictors = {names:?}\n[prior]\ndefault = \"normal(0, {PRIOR_SD})\"\n[columns]\ny = {{ min = -1, max = 1 }}\n{columns}{levels}\
             [sampler]\nforce = true\ndraws = {DRAWS}\nwarmup = 10\nrecords_guess = {}\n{release}[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n",
            records / 3
        )
    }

    fn records(&self, n: usize, rng: &mut ChaCha20Rng) -> Records {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let mut columns: Vec<Vec<f64>> =
                (0..self.binaries).map(|_| vec![f64::from(u8::from(rng.random_bool(0.4)))]).collect();
            if self.levels > 0 {
                let w = rng.random_range(0..self.levels);
                columns.push((1..self.levels).map(|level| f64::from(u8::from(w == level))).collect());
            }
            let mut row: Vec<f64> = columns.concat();
            if self.interactions {
                for i in 0..columns.len() {
                    for j in i + 1..columns.len() {
                        row.extend(columns[i].iter().flat_map(|a| columns[j].iter().map(move |b| a * b)));
                    }
                }
            }
            let eta = 0.1 + row.iter().enumerate().map(|(j, x)| x * [0.15, -0.1, 0.2, -0.05][j % 4]).sum::<f64>();
            let noise: f64 = StandardNormal.sample(rng);
            y.push((eta + self.sigma * noise).clamp(-1.0, 1.0));
            x.push(row);
        }
        Records { x, y, offset: Vec::new() }
    }
}

/// Returns the means and sds of the coefficients and of sigma without privacy: the prior is vague at these sizes.
pub(super) fn without(records: &Records) -> (Vec<f64>, Vec<f64>) {
    let (mut mean, mut sds) = without_privacy(records, |y, eta| y - eta, |_| 1.0);
    let eta = |x: &Vec<f64>| mean[0] + x.iter().zip(&mean[1..]).map(|(x, b)| x * b).sum::<f64>();
    let squares: f64 = records.x.iter().zip(&records.y).map(|(x, y)| (y - eta(x)).powi(2)).sum();
    let free = (records.y.len() - mean.len()) as f64;
    let sigma = (squares / free).sqrt();
    sds.iter_mut().for_each(|unit| *unit *= sigma);
    sds.push(sigma / (2.0 * free).sqrt());
    mean.push(sigma);
    (mean, sds)
}

/// Runs jobs of fresh records.
fn simulate(design: &Design, (n, epsilon): (usize, f64), table: bool, runs: u64) -> Found {
    let spec = JobSpec::parse(&design.text(epsilon, n, Some(table))).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let (mut errors, mut z, mut answers, mut rounds) = (Vec::new(), Vec::new(), 0, 0);
    for seed in 0..runs {
        let records = design.records(n, &mut rng);
        let (mean, sds) = without(&records);
        let run = run(&spec, &records, |y| y, seed);
        answers += usize::from(run.inference.is_adequate());
        rounds = rounds.max(run.rounds);
        for j in 0..mean.len() {
            let off = run.mean[j] - mean[j];
            errors.push(off / sds[j]);
            // Without a known share, the noise may be all of the variance. Draws give a mean to a sixtieth of an sd.
            let noise = run.sd[j] * (run.inference.noise_share[j].unwrap_or(1.0) + 1.0 / 3600.0).sqrt();
            z.push(off / noise);
        }
    }
    Found { error: rms(&errors), z: rms(&z), answers, rounds }
}

const FACTOR: Design = Design { binaries: 0, levels: 3, interactions: false, sigma: 0.2 };
const INTERACTIONS: Design = Design { binaries: 1, levels: 4, interactions: true, sigma: 0.4 };
const MIXED: Design = Design { interactions: false, ..INTERACTIONS };
const BINARIES: Design = Design { binaries: 2, levels: 0, interactions: false, sigma: 0.4 };

/// In 8 runs of 4 to 9 parameters the rms of z has an sd of at most .17, so the range is three of them; noise of half or twice
/// the claimed size lies outside. Over the designs a table's error was .15 to .6 of that of moments of predictors; the bound is
/// .75. A table that is read in another order of combinations has errors of many sds.
#[test]
fn a_table_of_sums_is_calibrated_and_sharper_than_moments() {
    for (design, at) in [(FACTOR, (1_500, 8.0)), (INTERACTIONS, (3_000, 5.0)), (MIXED, (1_500, 8.0))] {
        let [plain, table] = [false, true].map(|table| simulate(&design, at, table, 8));
        println!(
            "{design:?} {at:?}: error {:.2}, by table {:.2}, z {:.2}, answers {}",
            plain.error, table.error, table.z, table.answers
        );
        assert_eq!((table.answers, table.rounds), (8, 1));
        assert!((0.5..1.5).contains(&table.z), "{}", table.z);
        assert!(table.error < 0.75 * plain.error, "{} of {}", table.error, plain.error);
    }
}

/// The programs write the key where the table's predicted error is smaller, and leave a job of many combinations as it is.
#[test]
fn the_better_release_of_sums_is_chosen() {
    let chosen = |design: Design| {
        let text = design.text(1.0, 3_000, None);
        JobSpec::parse(&with_chosen_table(&text)).unwrap().release.table == Some(true)
    };
    assert!([FACTOR, INTERACTIONS, MIXED, BINARIES].into_iter().all(chosen));
    assert!(!chosen(Design { binaries: 5, ..BINARIES }) && !chosen(Design { binaries: 8, ..BINARIES }));
}

/// Over 12 designs and residuals, the choice's error is at most that of the other release in most of them, and z is that of the
/// claimed noise.
#[test]
#[ignore = "minutes"]
fn tables_of_linear_regressions_are_chosen_where_they_are_sharper() {
    let designs = [(1, 0, false), (3, 0, false), (0, 6, false), (1, 4, false), (2, 0, true), (4, 0, false)];
    let (mut better, mut all) = (0, 0);
    for (binaries, levels, interactions) in designs {
        for sigma in [0.2, 0.4] {
            let design = Design { binaries, levels, interactions, sigma };
            for at in [(1_500, 8.0), (15_000, 1.0)] {
                let chosen =
                    JobSpec::parse(&with_chosen_table(&design.text(at.1, at.0, None))).unwrap().release.table == Some(true);
                let [plain, table] = [false, true].map(|table| simulate(&design, at, table, 12));
                let expected =
                    planner::expect(&JobSpec::parse(&design.text(at.1, at.0, Some(true))).unwrap(), &[at.0 as u64 / 3; 3]);
                println!(
                    "{design:?} {at:?}: moments {:.2} z {:.2} ({}), table {:.2} z {:.2} ({}), at best {:.2}, chosen {chosen}",
                    plain.error,
                    plain.z,
                    plain.answers,
                    table.error,
                    table.z,
                    table.answers,
                    expected.unwrap().unwrap().expected_error
                );
                assert!((0.5..1.5).contains(&table.z), "{}", table.z);
                all += 1;
                better += usize::from(if chosen { table.error <= 1.1 * plain.error } else { plain.error <= 1.1 * table.error });
            }
        }
    }
    println!("the better one in {better} of {all}");
    assert!(better * 4 >= all * 3, "{better} of {all}");
}
