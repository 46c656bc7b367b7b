//! `augmentation` of regressions that have no sufficient statistic, in real processes: consent, one release, imputed records, the
//! ledger and verification.

use std::time::Duration;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;

use crate::verify::all_hold;
use crate::{EXE, setup, stderr};

const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: usize = 120;
const NAMES: [&str; 2] = ["a", "b"];

/// Returns a job on few records, with the outcome and predictors of `model`.
fn job(model: &str) -> String {
    let parties = NAMES.map(|name| format!("\"{name}\"")).join(", ");
    format!(
        "name = \"few\"\nalgorithm = \"augmentation\"\nparties = [{parties}]\n[model]\n{model}\n[columns]\nreadmitted = {{ binary = true }}\n\
         treated = {{ binary = true }}\nage = {{ min = 20, max = 80 }}\n[sampler]\nchains = 2\ndraws = 150\nwarmup = 50\n[plan]\n\
         records = {ROWS}\n[privacy]\nepsilon = 4\ndelta = 1e-6\n"
    )
}

const LOGISTIC: &str = "kind = \"logistic\"\noutcome = \"readmitted\"\npredictors = [\"age\"]";
const LINE: &str = "kind = \"linear\"\noutcome = \"age\"\npredictors = []";

/// Starts two parties of few records; the owner of the first decides by hand.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in (0..).zip(NAMES) {
        let data = study::csv(&study::records(ROWS, seed));
        let data = study::write(&cluster.path(&format!("{name}.csv")), &data);
        let party = cluster.enrol(&setup(name, &data, 30.0));
        if name == "a" {
            cluster.decide_by_hand(party);
        }
        cluster.start_party(party);
    }
    cluster
}

/// The owner reads which sums leave and approves; the job takes one round, spends its budget, and every party reproduces its draws.
#[test]
fn records_are_imputed_from_one_release_of_sums() {
    let cluster = cluster();
    let owner = |args: &[&str]| cluster.run(&[&["__party"], args, &["--config", "a/party.toml"]].concat());
    // The sums of x, x², y and x y; those of y and y², whose mean and scatter are parameters.
    for (model, components, parameters) in [(LOGISTIC, 4, 2), (LINE, 2, 2)] {
        let id = cluster.submit_only(&job(model));
        cluster.wait_status(&id, PATIENCE, "the owner", |status| status["awaiting_consent"][0] == "a");
        let shown = String::from_utf8_lossy(&owner(&["approve", &id]).stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        for part in
            ["sums of the columns over the records, and of their products two by two", "queried once", "can fit any model"]
        {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        assert!(owner(&["approve", &id, "--yes"]).status.success());
        cluster.wait_status(&id, PATIENCE, "the end", |status| status["state"] == "finished");
        let result = json(&cluster.must(&["summary", &id, "--json"]));
        assert_eq!((&result["stopped_by"], &result["iterations"]), (&"released".into(), &1.into()), "{result:#}");
        assert!(result["acceptance_rate"].as_f64().is_some_and(|rate| rate > 0.2), "{result:#}");
        let spent = result["parties"][0]["epsilon_spent"].as_f64().expect("a number");
        assert!(spent > 3.9 && spent <= 4.0, "{spent}");
        assert_eq!(result["parties"][0]["queries"], components, "{result:#}");
        let rows = result["inadequate"]["posterior"].as_array().or(result["posterior"].as_array()).expect("rows");
        assert_eq!(rows.len(), parameters, "{result:#}");
        assert!(String::from_utf8_lossy(&owner(&["statement", &id]).stdout).contains("products two by two"));
        assert_eq!(all_hold(&cluster, &id)["rounds"], 1);
    }
    cluster.must(&["__party", "export", "--config", "a/party.toml", "--out", "export.jsonl"]);
    cluster.must(&["verify-ledger", "export.jsonl", "--ca", "ca/ca.pem"]);
}

/// `plan` states the expected error, `rehearse` runs the job on files, and a predictor without a law is refused by name.
#[test]
fn a_job_of_few_records_is_planned_and_rehearsed() {
    let cluster = Cluster::new(EXE);
    let files = NAMES.map(|name| format!("{name}.csv"));
    for (seed, file) in (0..).zip(&files) {
        study::write(&cluster.path(file), &study::csv(&study::records(ROWS, seed)));
    }
    for model in [LOGISTIC, LINE] {
        let path = cluster.write_job(&job(model));
        let planned = json(&cluster.must(&["plan", &path, "--json"]));
        let error = &planned["algorithms"].as_array().expect("rows").iter().find(|row| row["algorithm"] == "augmentation");
        assert!(error.is_some(), "{planned:#}");
        let data = files.iter().flat_map(|file| ["--data", file.as_str()]);
        let args: Vec<&str> = ["rehearse", &path, "--noise-seed", "3", "--json"].into_iter().chain(data).collect();
        let [one, again] = [(); 2].map(|()| json(&cluster.must(&args)));
        assert_eq!(one["stopped_by"], "released", "{one:#}");
        assert_eq!(one["acceptance_rate"], again["acceptance_rate"]);
    }
    let binary = LOGISTIC.replace("\"age\"", "\"age\", \"treated\"");
    let path = cluster.write_job(&job(&binary));
    for command in ["plan", "submit"] {
        let refused = cluster.run(&[command, &path]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("only numeric predictors, one by one, have a law here"), "{}", stderr(&refused));
    }
}
