//! A small study: made-up records of a known logistic model, their files, and jobs about them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The columns of every shard, in file order.
pub const COLUMNS: [&str; 3] = ["readmitted", "treated", "age"];
/// True coefficients on the scale of the priors: intercept, treated (0/1), age (20 to 80 scaled to [-1, 1]).
pub const TRUE: [f64; 3] = [-0.4, 0.8, 0.6];

/// One record: a value per column.
pub type Record = [f64; 3];

/// Creates `rows` records as a function of the seed only.
pub fn records(rows: usize, seed: u64) -> Vec<Record> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..rows)
        .map(|_| {
            let (treated, age) = (f64::from(rng.random_range(0..2u8)), f64::from(rng.random_range(20..=80u8)));
            let eta = TRUE[0] + TRUE[1] * treated + TRUE[2] * (age - 50.0) / 30.0;
            let outcome = rng.random::<f64>() < 1.0 / (1.0 + (-eta).exp());
            [f64::from(u8::from(outcome)), treated, age]
        })
        .collect()
}

/// Formats the records as CSV.
pub fn csv(records: &[Record]) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for [outcome, treated, age] in records {
        writeln!(text, "{outcome},{treated},{age}").expect("writing to a string cannot fail");
    }
    text
}

/// Writes a file and returns its path.
pub fn write(path: &Path, text: &str) -> PathBuf {
    fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path.to_owned()
}

/// Returns a job on one party whose steps are so small that it outlasts any test.
pub fn long_job(party: &str) -> String {
    let sampler = "chains = 2\ndraws = 100000\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.001 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    job(&[party], sampler, "epsilon = 300\ndelta = 1e-6")
}

/// Returns a job on these parties; `sampler` and `privacy` are the lines of those tables.
pub fn job(parties: &[&str], sampler: &str, privacy: &str) -> String {
    let parties: Vec<String> = parties.iter().map(|p| format!("\"{p}\"")).collect();
    format!(
        r#"name = "small study"
algorithm = "penalty"
parties = [{}]

[model]
kind = "logistic"
outcome = "readmitted"
predictors = ["treated", "age"]

[columns]
readmitted = {{ binary = true }}
treated = {{ binary = true }}
age = {{ min = 20, max = 80 }}

[prior]
default = "normal(0, 2.5)"

[sampler]
{sampler}

[privacy]
{privacy}
"#,
        parties.join(", ")
    )
}
