//! A job written from a formula in real processes: planned, rehearsed, run, replayed by its owners, and used for predictions.

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use serde_json::Value;

use crate::by_party::{PARTIES, names, parties};
use crate::verify::all_hold;
use crate::{EXE, stderr};

const COLUMNS: &str = "[columns]\nreadmitted = { binary = true }\ntreated = { binary = true }\nage = { min = 20, max = 80 }\n";
const NAMES: [&str; 4] = ["intercept", "treated", "ls(age)[1]", "ls(age)[2]"];

#[test]
fn a_job_from_a_formula_is_planned_rehearsed_run_and_replayed() {
    let cluster = parties("site_parameters = \"allow\"");
    study::write(&cluster.path("columns.toml"), COLUMNS);
    let formula = "readmitted ~ treated + ls(age, knots = [50]) + (1 | party)";
    let made =
        ["job", "--formula", formula, "--family", "binomial", "--columns", "columns.toml", "--epsilon", "8", "--records", "3000"];
    let owners = ["--party", "a", "--party", "b", "--party", "c"];
    cluster.must(&[&made[..], &owners[..], &["--output", "job.toml"]].concat());

    let planned = json(&cluster.must(&["plan", "job.toml", "--json"]));
    assert!(planned.is_object(), "{planned:#}");
    let files = PARTIES.map(|name| format!("{name}.csv"));
    let data: Vec<&str> = files.iter().flat_map(|file| ["--data", file]).collect();
    let rehearse = ["rehearse", "job.toml", "--noise-seed", "1", "--interval", "0.5", "--json"];
    let rehearsed = json(&cluster.must(&[&rehearse[..], &data[..]].concat()));
    let row = &rehearsed["posterior"][1];
    let between = |low: &Value, high: &Value| low.as_f64().zip(high.as_f64()).is_some_and(|(low, high)| low < high);
    let inner = &row["interval"];
    assert!(
        between(&row["q5"], &inner["low"]) && between(&inner["low"], &inner["high"]) && between(&inner["high"], &row["q95"]),
        "{row:#}"
    );
    let text = std::fs::read_to_string(cluster.path("job.toml")).expect("a job file");
    let result = cluster.submit(&text);
    for found in [&rehearsed, &result] {
        assert_eq!(found["adequacy"]["adequate"], true, "{found:#}");
        assert_eq!(names(found)[..4], NAMES, "{found:#}");
        assert!(names(found).contains(&"intercept[b]"), "{found:#}");
    }
    let id = result["job"].as_str().expect("an id");
    all_hold(&cluster, id);
    let at = json(&cluster.must(&["predict", id, "--at", "treated=1, age=65", "--party", "b", "--json"]));
    let share = at["predictions"][0]["mean"].as_f64().expect("a mean");
    // The records' own law: -0.4 + 0.8 + 0.6 * 0.5 = 0.7, a probability of .668. Its posterior sd is below .02.
    assert!((share - 0.668).abs() < 0.08, "{share}");
}

/// A formula that a job cannot have names its place, and nothing is written.
#[test]
fn a_formula_that_no_job_has_is_refused_with_its_place() {
    let cluster = Cluster::new(EXE);
    study::write(&cluster.path("columns.toml"), COLUMNS);
    let made = ["job", "--formula", "readmitted ~ treated + (1 | ward)", "--family", "binomial", "--columns", "columns.toml"];
    let output = cluster.run(&[&made[..], &["--party", "a", "--output", "job.toml"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("(1 | ward)") && said.contains('^') && !cluster.path("job.toml").exists(), "{said}");
}
