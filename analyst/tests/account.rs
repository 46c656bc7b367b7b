//! `conclave account` through the real program, against independently computed reference values.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use serde_json::Value;

fn account(args: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_conclave")).arg("account").args(args).output().unwrap()
}

fn json(args: &[String]) -> Value {
    let output = account(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn strings(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

fn close(got: &Value, expected: &Value, what: &str) {
    match (got.as_f64(), expected.as_f64()) {
        (Some(got), Some(expected)) => {
            assert!((got / expected - 1.0).abs() < 1e-9, "{what}: {got} against {expected}");
        }
        (None, None) => {}
        _ => panic!("{what}: {got} against {expected}"),
    }
}

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/accounting.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_reference_row() {
    let vectors = vectors();
    let rows = vectors["epsilon_at_delta"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let mut args = strings(&["--json", "--delta", &row["delta"].to_string()]);
        for round in row["rounds"].as_array().unwrap() {
            args.extend(["--queries".to_owned(), format!("{}x{}", round[0], round[1])]);
        }
        let got = json(&args);
        close(&got["epsilon_gdp"], &row["gdp"], &format!("gdp {args:?}"));
        close(&got["epsilon_zcdp"], &row["cks"], &format!("zcdp {args:?}"));
        close(&got["epsilon_advanced"], &row["adv"], &format!("advanced {args:?}"));
    }
}

#[test]
fn a_budget_buys_what_it_costs() {
    for (epsilon, delta) in [(3.0, 1e-6), (0.1, 1e-9), (8.0, 1e-12)] {
        let bought = json(&[
            "--epsilon".to_owned(),
            format!("{epsilon}"),
            "--delta".to_owned(),
            format!("{delta:e}"),
            "--json".to_owned(),
        ]);
        let mu = bought["mu_budget"].as_f64().unwrap();
        let cost = json(&strings(&["--queries", &format!("{mu:?}x1"), "--delta", &format!("{delta:e}"), "--json"]));
        let back = cost["epsilon_gdp"].as_f64().unwrap();
        assert!((back / epsilon - 1.0).abs() < 1e-8, "{back} against {epsilon}");
    }
}

/// Rows of `q, noise multiplier, T, reserve, mu, epsilon of the composition at 1e-6`, under replacement.
const BLOCKS: [(&str, &str, &str, &str, f64, f64); 3] = [
    ("0.01", "2", "500", "1e-9", 0.22492, 0.94630),
    ("0.001", "10", "5000", "1e-7", 0.014_145, 0.048_916),
    ("0.1", "2", "1000", "1e-7", 3.1386, 19.2487),
];

#[test]
fn blocks_of_subsampled_releases() {
    let within = |got: &Value, expected: f64| {
        let off = got.as_f64().unwrap() / expected - 1.0;
        assert!((-1e-3..=2e-3).contains(&off), "{got} against {expected}");
    };
    for (q, noise, releases, reserve, mu, epsilon) in BLOCKS {
        let options = ["--subsampled", "--probability", q, "--noise-multiplier", noise, "--releases", releases];
        let got = json(&strings(&[&options[..], &["--delta", "1e-6", "--reserve", reserve, "--json"]].concat()));
        within(&got["mu_block"], mu);
        within(&got["epsilon_composed"], epsilon);
        assert_eq!(got["epsilon"], got["epsilon_block"]);
        assert!(got["epsilon"].as_f64() >= got["epsilon_composed"].as_f64());
        assert!(got["mu_counted"].as_f64() >= got["mu"].as_f64());
    }
    let shown = account(&strings(&[
        "--subsampled",
        "--batch",
        "1000",
        "--records",
        "1e6",
        "--sensitivity",
        "1",
        "--noise",
        "31.6",
        "--releases",
        "5000",
        "--blocks",
        "20",
        "--adjacency",
        "add-remove",
        "--delta",
        "1e-6",
    ]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("20 such blocks") && shown.contains("Neighbours: add-remove") && shown.contains("epsilon = 0.006"),
        "{shown}"
    );
}

#[test]
fn without_sampling_a_block_is_its_releases() {
    let block = json(&strings(&[
        "--subsampled",
        "--probability",
        "1",
        "--noise-multiplier",
        "200",
        "--releases",
        "4195",
        "--delta",
        "1e-6",
        "--json",
    ]));
    let releases = json(&strings(&["--queries", "0.01x4195", "--delta", "1e-6", "--json"]));
    close(&block["mu"], &releases["mu"], "mu");
    close(&block["epsilon"], &releases["epsilon_gdp"], "epsilon");
    close(&block["epsilon_composed"], &releases["epsilon_gdp"], "epsilon");
    assert_eq!(block["delta_reserve"], 0.0);
}

#[test]
fn bad_arguments_exit_2() {
    for args in [
        &["--delta", "1e-6"][..],
        &["--queries", "0.1x5"],
        &["--queries", "0.1", "--delta", "1e-6"],
        &["--queries", "0.1x5", "--delta", "1"],
        &["--queries", "0.1x5", "--epsilon", "3", "--delta", "1e-6"],
        &["--epsilon", "0", "--delta", "1e-6"],
        &["--epsilon=-1", "--delta", "1e-6"],
        &["--subsampled", "--delta", "1e-6"],
        &["--subsampled", "--releases", "5", "--delta", "1e-6"],
        &["--subsampled", "--releases", "5", "--probability", "0.1", "--delta", "1e-6"],
        &["--releases", "5", "--epsilon", "1", "--delta", "1e-6"],
        &["--subsampled", "--releases", "5", "--probability", "0.1", "--noise-multiplier", "0.5", "--delta", "1e-6"],
        &["--subsampled", "--releases", "5", "--probability", "0", "--noise-multiplier", "2", "--delta", "1e-6"],
        &[
            "--subsampled",
            "--releases",
            "5",
            "--probability",
            "0.1",
            "--batch",
            "3",
            "--noise-multiplier",
            "2",
            "--delta",
            "1e-6",
        ],
        &["--subsampled", "--releases", "5", "--batch", "3", "--noise-multiplier", "2", "--delta", "1e-6"],
        &[
            "--subsampled",
            "--queries",
            "0.1x5",
            "--releases",
            "5",
            "--probability",
            "0.1",
            "--noise-multiplier",
            "2",
            "--delta",
            "1e-6",
        ],
    ] {
        let output = account(&strings(args));
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
