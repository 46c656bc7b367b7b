//! A finished job's releases refitted with another prior and with fewer predictors, with no party running.

use conclave_tests::cluster::{Cluster, figures, json};
use conclave_tests::study;
use conclave_tests::zarr;
use serde_json::Value;

use crate::{cluster, stderr};

const PARTIES: [&str; 2] = ["a", "b"];

fn job(model: &str) -> String {
    format!(
        "name = \"once\"\nparties = [\"a\", \"b\"]\n[model]\n{model}\n[columns]\nreadmitted = {{ binary = true }}\n\
         treated = {{ binary = true }}\nage = {{ min = 20, max = 80 }}\n[sampler]\ndraws = 200\n[privacy]\nepsilon = 8\ndelta = \
         1e-6\n"
    )
}

const ODDS: &str = "kind = \"logistic\"\noutcome = \"readmitted\"\npredictors = [\"treated\", \"age\"]";
// Second moments determine smaller models, and a weighted fit does not.
const LINE: &str = "kind = \"linear\"\nweights = \"never\"\noutcome = \"age\"\npredictors = [\"treated\", \"readmitted\"]";

fn id(result: &Value) -> &str {
    result["job"].as_str().expect("an id")
}

fn refit(cluster: &Cluster, job: &Value, args: &[&str]) -> Value {
    let result = json(&cluster.must(&[&["refit", id(job), "--json"], args].concat()));
    assert_eq!((&result["refit_of"], &result["job"], &result["iterations"]), (&job["job"], &"refit".into(), &0.into()));
    assert_eq!((&result["algorithm"], &result["stopped_by"]), (&"noisy-statistics".into(), &"released".into()));
    for (party, before) in result["parties"].as_array().expect("parties").iter().zip(job["parties"].as_array().expect("parties"))
    {
        assert_eq!((&party["queries"], &party["epsilon_spent"], &party["records"]), (&0.into(), &0.0.into(), &before["records"]));
    }
    result
}

fn refused(cluster: &Cluster, args: &[&str], words: &[&str]) {
    let output = cluster.run(&[&["refit"], args].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(words.iter().all(|word| said.contains(word)) && output.stdout.is_empty(), "{args:?}: {said}");
}

fn names(result: &Value) -> Vec<&str> {
    result["posterior"].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect()
}

#[test]
fn another_posterior_needs_no_party_and_no_budget() {
    let mut cluster = cluster(&PARTIES, 4_000, 60.0);
    let (odds, line) = (cluster.submit(&job(ODDS)), cluster.submit(&(job(LINE) + "[release]\ntable = false\n")));
    let by_table = cluster.submit(&job(&LINE.replace("\"readmitted\"]", "\"readmitted\", \"treated:readmitted\"]")));
    assert_eq!(by_table["iterations"], 1, "{by_table:#}");
    let chain = cluster.submit(&study::job(&PARTIES, "chains = 2\ndraws = 5\nwarmup = 2", "epsilon = 30\ndelta = 1e-6"));
    cluster.kill_party(0);
    cluster.kill_party(1);
    let rounds = cluster.rounds();

    // The job's own priors reproduce the job's own result, and its draws bit for bit.
    let same = refit(&cluster, &odds, &["--prior", "default=normal(0, 2.5)", "--out", "same.zarr"]);
    for key in ["posterior", "posterior_original", "releases", "adequacy", "continuation", "warnings", "conditional_on"] {
        assert_eq!(same[key], odds[key], "{key}");
    }
    cluster.must(&["draws", id(&odds), "--format", "zarr", "--out", "own.zarr"]);
    for name in ["intercept", "treated", "age"] {
        let draws = |store: &str| -> Vec<Vec<f64>> { zarr::read(&cluster.path(store).join("posterior").join(name)) };
        assert_eq!(draws("same.zarr"), draws("own.zarr"), "{name}");
    }
    assert_eq!(zarr::metadata(&cluster.path("same.zarr"))["attributes"]["refit_of"], odds["job"]);

    let narrow = refit(&cluster, &odds, &["--prior", "age=normal(0, 0.01)", "--draws", "300", "--chains", "2", "--seed", "9"]);
    assert_eq!((&narrow["draws_per_chain"], &narrow["chains"]), (&300.into(), &2.into()));
    let sd = |result: &Value| figures(result)["posterior"][2]["sd"].as_f64().expect("an sd");
    assert!(sd(&narrow) < 0.011 && sd(&odds) > 0.02, "{} {}", sd(&narrow), sd(&odds));
    // Where the release adds hardly anything to the prior, the answer is not adequate.
    assert_eq!(narrow["adequacy"]["adequate"], false, "{:#}", narrow["adequacy"]);
    let smaller = refit(&cluster, &line, &["--drop", "readmitted", "--prior", "treated=normal(0, 1)"]);
    assert_eq!((names(&smaller), smaller["draws_per_chain"].as_u64()), (vec!["intercept", "treated", "sigma"], Some(200)));
    // Counts and sums determine a smaller model that has no table of its own.
    let without = refit(&cluster, &by_table, &["--drop", "treated"]);
    assert_eq!(names(&without), ["intercept", "readmitted", "treated:readmitted", "sigma"]);
    let shown = cluster.must(&["refit", id(&line), "--prior", "default=normal(0, 1)"]);
    assert!(shown.contains("No party was queried and nothing was charged"), "{shown}");
    assert_eq!(cluster.rounds(), rounds);

    let (odds, line) = (id(&odds), id(&line));
    refused(&cluster, &[odds, "--drop", "treated"], &["do not apply to a smaller model", "no predictor can be dropped"]);
    refused(&cluster, &[odds], &["nothing is changed", "--prior", "--drop"]);
    refused(&cluster, &[odds, "--prior", "height=normal(0, 1)"], &["prior.height", "intercept, treated, age"]);
    refused(&cluster, &[line, "--drop", "treatd"], &["did you mean `treated`", "it has treated, readmitted"]);
    refused(&cluster, &[line, "--drop", "treated", "--out", "own.zarr"], &["own.zarr is not empty"]);
    refused(&cluster, &[id(&chain), "--prior", "age=normal(0, 1)"], &["algorithm = \"penalty\"", "log likelihood ratios"]);
    let strange = "00000000-0000-4000-8000-000000000000";
    refused(&cluster, &[strange, "--prior", "age=normal(0, 1)"], &["has no job"]);
    let waiting = cluster.submit_only(&job(ODDS));
    refused(&cluster, &[&waiting, "--prior", "age=normal(0, 1)"], &["has not ended", "conclave watch"]);
    cluster.must(&["cancel", &waiting]);
    refused(&cluster, &[&waiting, "--prior", "age=normal(0, 1)"], &["released no whole stage"]);
    // Another analyst learns nothing about it.
    cluster.must(&["ca", "request", "analyst", "bob", "--out", "bob"]);
    cluster.must(&["ca", "sign", "bob/request.pem", "--ca", "ca"]);
    refused(&cluster, &[odds, "--prior", "age=normal(0, 1)", "--identity", "bob"], &["bob has no job"]);
}
