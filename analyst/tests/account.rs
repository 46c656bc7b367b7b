//! `conclave account` through the real program, against reference values computed elsewhere.
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
    ] {
        let output = account(&strings(args));
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
