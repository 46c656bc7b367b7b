//! `conclave job` through the real program, and a run of the job that it writes.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn conclave(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_conclave")).current_dir(folder).args(args).output().unwrap()
}

fn must(folder: &Path, args: &[&str]) -> String {
    let output = conclave(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Writes made-up records of doses, ages and outcomes, with the logarithms of the doses as a column.
fn write_records(path: &Path, seed: u64) {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let mut text = "died,age,dose,log_dose,ward\n".to_owned();
    for _ in 0..1500 {
        let (age, dose, ward) =
            (20.0 + 60.0 * uniform(), 0.5 * 80_f64.powf(uniform()), ["a", "b", "c"][(3.0 * uniform()) as usize]);
        let eta = -0.5 + 0.6 * dose.ln() + 0.02 * (age - 50.0) + if ward == "b" { 0.7 } else { 0.0 };
        let died = u8::from(uniform() < 1.0 / (1.0 + (-eta).exp()));
        writeln!(text, "{died},{age},{dose},{},{ward}", dose.ln()).unwrap();
    }
    std::fs::write(path, text).unwrap();
}

fn posterior(folder: &Path, job: &str) -> Vec<(String, f64, f64)> {
    let out = format!("{job}.zarr");
    let json =
        must(folder, &["rehearse", job, "--data", "a.csv", "--data", "b.csv", "--noise-seed", "7", "--json", "--out", &out]);
    let result: Value = serde_json::from_str(&json).unwrap();
    let of = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["mean"].as_f64().unwrap(), row["sd"].as_f64().unwrap());
    result["posterior_original"].as_array().unwrap_or_else(|| panic!("{result:#}")).iter().map(of).collect()
}

/// A party that computes a derived column answers as one that stores it, and the coefficients are those of the records' law.
#[test]
fn a_written_job_runs_as_if_its_derived_columns_were_stored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_records(&folder.join("a.csv"), 1);
    write_records(&folder.join("b.csv"), 2);
    let columns = "[columns]\ndied = { binary = true }\nage = { min = 20, max = 80 }\ndose = { min = 0.5, max = 40 }\n\
        ward = { levels = [\"a\", \"b\", \"c\"] }\nlog_dose = { min = -0.6931471805599453, max = 3.6888794541139363 }\n";
    std::fs::write(folder.join("columns.toml"), columns).unwrap();
    let write = |formula: &str, file: &str| {
        let args = [
            "job",
            "--formula",
            formula,
            "--family",
            "binomial",
            "--columns",
            "columns.toml",
            "--epsilon",
            "8",
            "--records",
            "1500",
            "-o",
            file,
        ];
        must(folder, &[&args[..], &["--party", "a", "--party", "b"]].concat())
    };
    assert_eq!(write("died ~ age + log(dose)*ward", "job.toml"), "");
    write("died ~ age + log_dose*ward", "stored.toml");
    must(folder, &["plan", "job.toml"]);
    let (derived, stored) = (posterior(folder, "job.toml"), posterior(folder, "stored.toml"));
    assert_eq!((derived.len(), derived[2].0.as_str(), derived[5].0.as_str()), (7, "log(dose)", "log(dose):ward[b]"));
    for ((name, mean, sd), (_, other, _)) in derived.iter().zip(&stored) {
        assert!((mean - other).abs() < 0.02 * sd, "{name}: {mean} {other} sd {sd}");
    }
    // The draws hold the bounds that map both scales.
    let stored: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("job.toml.zarr/posterior_original/zarr.json")).unwrap())
            .unwrap();
    let bounds = &stored["attributes"]["columns"]["log(dose)"];
    let is = |key: &str, expected: f64| bounds[key].as_f64().is_some_and(|bound| (bound - expected).abs() < 1e-14);
    assert!(is("min", 0.5_f64.ln()) && is("max", 40_f64.ln()), "{bounds}");
    let (_, slope, sd) = &derived[2];
    assert!((slope - 0.6).abs() < 4.0 * sd && *sd < 0.2, "{slope} {sd}");
}

#[test]
fn a_fault_shows_its_place_and_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.toml"), "[columns]\ny = { binary = true }\nage = { min = 0, max = 100 }\n").unwrap();
    let output = conclave(folder.path(), &["job", "--formula", "y ~ log(age)", "--family", "logistic", "--columns", "c.toml"]);
    let shown = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(shown.contains("\n  y ~ log(age)\n          ^^^") && shown.contains("with `age` in [0, 100]"), "{shown}");
    let printed = must(folder.path(), &["job", "--formula", "y ~ log(age + 1)", "--family", "logistic", "--columns", "c.toml"]);
    assert!(printed.contains("formula = \"y ~ log(age + 1)\"") && printed.contains("parties = [\"party-a\""), "{printed}");
}
