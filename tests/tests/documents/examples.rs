//! Every job under `examples/`, planned and rehearsed on the synthetic records beside it.

use std::path::{Path, PathBuf};
use std::process::Command;

use conclave_common::job::JobSpec;
use conclave_tests::cluster::json;
use serde_json::Value;

use crate::EXE;

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let files = std::fs::read_dir(folder).expect("examples/").map(|e| e.expect("an entry").path());
    let mut jobs: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    jobs.sort();
    jobs
}

fn run(args: &[&str]) -> Value {
    let output = Command::new(EXE).args(args).output().expect("the binary starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    json(&String::from_utf8_lossy(&output.stdout))
}

/// Plans and rehearses every job, with a fixed noise seed. The rehearsed mean must be near the job's own guess, which was
/// computed without privacy. The limit of 4 posterior sds plus 4 Monte Carlo errors leaves a correct program far inside. A chain
/// that does not see its records ends far outside, except in regressions, which start close.
#[test]
fn every_example_is_planned_and_rehearsed() {
    let examples = examples();
    assert!(examples.len() >= 12, "{examples:?}");
    for job in &examples {
        let spec = JobSpec::parse(&std::fs::read_to_string(job).expect("a job")).unwrap_or_else(|e| panic!("{job:?}: {e}"));
        let path = job.to_str().expect("a plain path");
        let plan = run(&["plan", path, "--json"]);
        let once = spec.releases_once();
        assert!(once || plan["parties"].as_array().is_some_and(|parties| parties.len() == spec.parties.len()), "{plan}");
        own_row(&plan, spec.algorithm.as_str());
        let folder = job.with_file_name("data");
        let files: Vec<String> = spec.parties.iter().map(|p| folder.join(format!("{p}.csv")).display().to_string()).collect();
        let mut args = vec!["rehearse", path, "--json", "--noise-seed", "7"];
        files.iter().for_each(|file| args.extend(["--data", file]));
        let result = run(&args);
        let ends = if once { ["released", "released"] } else { ["budget", "draws"] };
        assert!(ends.contains(&result["stopped_by"].as_str().expect("a word")), "{result}");
        if once {
            assert_eq!(result["adequacy"]["adequate"], true, "{path}: {result}");
        } else {
            let (planned, made) = (number(&plan["iterations"]), number(&result["iterations"]));
            assert!((made / planned - 1.0).abs() < 0.15, "{path}: {made} rounds, planned {planned}");
        }
        let guesses = spec.plan.expect("an example has a [plan]").posterior.expect("and a guess of the posterior");
        for (row, guess) in result["posterior"].as_array().expect("a posterior").iter().zip(guesses) {
            let far = (number(&row["mean"]) - guess.mean).abs();
            assert!(far < 4.0 * guess.sd + 4.0 * number(&row["mcse_mean"]), "{path}: {row}, guessed {guess:?}");
        }
        assert!(once || result["budget_error"].as_str().is_some_and(|s| s.contains("spread")));
        assert_eq!(result["draws"], Value::Null);
    }
}

/// Returns the row for the job's own algorithm in a plan's comparison.
fn own_row(plan: &Value, algorithm: &str) -> Value {
    let mut rows = plan["algorithms"].as_array().expect("algorithms").iter();
    rows.find(|row| row["algorithm"] == algorithm).unwrap_or_else(|| panic!("{algorithm} in {plan}")).clone()
}

/// Without a guess of the posterior, a plan states what to expect of each algorithm and what a guess would add; without record
/// counts it is refused.
#[test]
fn a_plan_needs_record_counts_and_no_guess() {
    let folder = tempfile::tempdir().expect("a folder");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/logistic.toml");
    let text = std::fs::read_to_string(&example).expect("a job");
    let (before, _) = text.split_once("[plan]").expect("a [plan] table");
    let (path, without) = (folder.path().join("job.toml"), folder.path().join("without.toml"));
    std::fs::write(&path, format!("{before}[plan]\nrecords = 3000\n")).expect("a file");
    std::fs::write(&without, before).expect("a file");
    let (path, without) = (path.to_str().expect("a plain path"), without.to_str().expect("a plain path"));
    let plan = run(&["plan", path, "--json"]);
    let row = own_row(&plan, "penalty");
    let (best, worse) = (number(&row["expected_error"]["best"]), number(&row["expected_error"]["worse"]));
    assert!(0.0 < best && best <= worse && row["rounds"].is_null() && plan.get("ess").is_none(), "{plan}");
    assert!((number(&row["interval_factor"]["best"]) - (1.0 + best * best).sqrt()).abs() < 1e-9, "{row}");
    own_row(&plan, "noisy-statistics");
    // A guess makes the plan more precise: its rounds lie within the range.
    let range = |key: &str| (number(&plan["range"][key]["worse"]), number(&plan["range"][key]["best"]));
    for key in ["rounds", "draws", "effective"] {
        assert!(0.0 < range(key).0 && range(key).0 <= range(key).1, "{plan}");
    }
    let guessed = run(&["plan", example.to_str().expect("a plain path"), "--json"]);
    let rounds = number(&guessed["iterations"]);
    assert!(
        guessed.get("range").is_none() && range("rounds").0 < 1.5 * rounds && rounds < 1.5 * range("rounds").1,
        "{plan} {rounds}"
    );
    let shown = Command::new(EXE).args(["plan", path]).output().expect("a start");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for part in [
        "* penalty",
        "  noisy-statistics",
        "error (sds)",
        "need a guess of the posterior",
        "conclave rehearse",
        "effective draws of the parameter",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let refused = Command::new(EXE).args(["plan", without]).output().expect("a start");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("plan.records"), "{}", String::from_utf8_lossy(&refused.stderr));
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// A plan reads a rehearsal's object, and the same seeds give the same run.
#[test]
fn a_rehearsal_feeds_a_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/logistic.toml");
    let job = job.to_str().expect("a plain path");
    let data = |name: &str| Path::new(job).with_file_name("data").join(name).display().to_string();
    let (a, b, out) = (data("clinic-a.csv"), data("clinic-b.csv"), folder.path().join("draws.zarr"));
    let plain = ["rehearse", job, "--data", &a, "--data", &b, "--noise-seed", "3", "--json"];
    let mut result = run(&plain);
    let again = run(&[&plain[..], &["--out", out.to_str().expect("a plain path")]].concat());
    assert_eq!(again["draws"].as_str(), out.to_str());
    assert!(out.join("posterior/age/zarr.json").exists() && out.join("warmup_sample_stats").exists());
    for key in ["posterior", "iterations", "plan"] {
        assert_eq!(result[key], again[key]);
    }
    let file = folder.path().join("rehearsal.json");
    std::fs::write(&file, result.take().to_string()).expect("a file");
    let plan = run(&["plan", job, "--rehearsal", file.to_str().expect("a plain path"), "--json"]);
    assert!(number(&plan["ess"][0]["ess"]) > 1.0 && number(&plan["acceptance_rate"]) > 0.2);
    let wrong = Command::new(EXE).args(["rehearse", job, "--data", &a]).output().expect("a start");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("clinic-b"), "{}", String::from_utf8_lossy(&wrong.stderr));
}
