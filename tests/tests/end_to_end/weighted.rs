//! A weighted regression in real processes: its releases, its labels, its refit and its audit trail.

use conclave_tests::cluster::{Cluster, figures, json};
use conclave_tests::zarr;

use crate::verify::all_hold;
use crate::{cluster, stderr};

const PARTIES: [&str; 2] = ["a", "b"];

fn job(weights: &str, epsilon: f64) -> String {
    format!(
        "name = \"line\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"linear\"\noutcome = \"age\"\n{weights}\
         predictors = [\"treated\", \"readmitted\"]\n[columns]\ntreated = {{ binary = true }}\nreadmitted = {{ binary = true }}\n\
         age = {{ min = -150, max = 250 }}\n[sampler]\ndraws = 200\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    )
}

/// A weighted answer names its estimand beside every coefficient, in the result, the draws and the report; every release is in the
/// ledgers and replays; another prior needs no query.
#[test]
fn a_weighted_regression_names_its_estimand() {
    let cluster = cluster(&PARTIES, 4_000, 40.0);
    let plain = cluster.submit(&(job("weights = \"never\"\n", 3.0) + "[release]\ntable = false\n"));
    let weighted = cluster.submit(&job("weights = \"always\"\n", 3.0));
    assert_eq!((&weighted["stopped_by"], &weighted["adequacy"]["adequate"]), (&"released".into(), &true.into()), "{weighted:#}");
    for (result, estimand) in [(&plain, "plain"), (&weighted, "weighted")] {
        for rows in ["posterior", "posterior_original"] {
            let rows = result[rows].as_array().expect("rows");
            assert!(rows.iter().all(|row| row["estimand"] == estimand), "{rows:?}");
        }
        assert_eq!(result["weighted"].is_object(), estimand == "weighted", "{result:#}");
    }
    let warnings = weighted["warnings"].to_string();
    assert!(warnings.contains("weighted answer") && warnings.contains("weights = \\\"never\\\""), "{warnings}");
    let spent = weighted["parties"][0]["epsilon_spent"].as_f64().expect("a number");
    assert!(spent > 2.99 && spent <= 3.0, "{spent}");
    let id = weighted["job"].as_str().expect("an id");
    all_hold(&cluster, id);
    let attributes = &zarr::metadata(std::path::Path::new(weighted["draws"].as_str().expect("a path")))["attributes"];
    assert_eq!((&attributes["estimand"], &attributes["weighted"]), (&"weighted".into(), &weighted["weighted"]));
    cluster.must(&["report", id, "--out", "report.html"]);
    let report = std::fs::read_to_string(cluster.path("report.html")).expect("a report");
    assert!(report.contains("estimand") && report.contains("weighted answer"));
    let predicted = cluster.must(&["predict", id, "--at", "treated=1, readmitted=0"]);
    assert!(predicted.contains("Estimand: weighted.") && predicted.contains("Mean of age"), "{predicted}");
    let refitted = json(&cluster.must(&["refit", id, "--prior", "treated=normal(0, 1)", "--json"]));
    assert_eq!(
        (&figures(&refitted)["posterior"][1]["estimand"], &refitted["iterations"]),
        (&"weighted".into(), &0.into()),
        "{refitted:#}"
    );
    let dropped = cluster.run(&["refit", id, "--drop", "treated"]);
    assert!(stderr(&dropped).contains("no predictor can be dropped"), "{}", stderr(&dropped));
    std::fs::write(cluster.path("chain.toml"), job("weights = \"always\"\n", 8.0).replace("auto", "penalty")).expect("a file");
    let refused = cluster.run(&["submit", "chain.toml"]);
    assert!(stderr(&refused).contains("model.weights") && refused.status.code() == Some(2), "{}", stderr(&refused));
    std::fs::write(cluster.path("plan.toml"), job("weights = \"always\"\n", 8.0) + "[plan]\nrecords = 4000\n").expect("a file");
    let planned = cluster.must(&["plan", "plan.toml"]);
    assert!(planned.contains("Error by model.weights: \"never\" 0."), "{planned}");
    let planned = json(&cluster.must(&["plan", "plan.toml", "--json"]));
    assert!(planned["weights"]["always"]["worse"].as_f64() > planned["weights"]["always"]["best"].as_f64(), "{planned:#}");
}

/// A logistic regression's information is released half way to the answer, in a round of its own; the trail of its releases replays, and
/// another prior needs no query.
#[test]
fn a_weighted_logistic_regression_names_its_estimand() {
    let cluster = cluster(&PARTIES, 4_000, 40.0);
    let text = "name = \"readmitted\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\n\
                outcome = \"readmitted\"\nweights = \"always\"\npredictors = [\"treated\", \"age\"]\n[columns]\n\
                treated = { binary = true }\nreadmitted = { binary = true }\nage = { min = -150, max = 250 }\n[sampler]\ndraws = 200\n\
                [privacy]\nepsilon = 8.0\ndelta = 1e-6\n";
    let weighted = cluster.submit(text);
    assert_eq!((&weighted["stopped_by"], &weighted["adequacy"]["adequate"]), (&"released".into(), &true.into()), "{weighted:#}");
    let rows = weighted["posterior"].as_array().expect("rows");
    assert!(rows.len() == 3 && rows.iter().all(|row| row["estimand"] == "weighted"), "{rows:?}");
    assert!(weighted["warnings"].to_string().contains("weighted answer"), "{}", weighted["warnings"]);
    let spent = weighted["parties"][0]["epsilon_spent"].as_f64().expect("a number");
    assert!(spent > 7.99 && spent <= 8.0, "{spent}");
    let id = weighted["job"].as_str().expect("an id");
    all_hold(&cluster, id);
    let refitted = json(&cluster.must(&["refit", id, "--prior", "treated=normal(0, 1)", "--json"]));
    assert_eq!(
        (&figures(&refitted)["posterior"][1]["estimand"], &refitted["iterations"]),
        (&"weighted".into(), &0.into()),
        "{refitted:#}"
    );
}

/// A Poisson regression that states no weights gets `auto`. Its releases choose between a weighted fit and a
/// plain one; their trail replays, and another prior needs no query.
#[test]
fn a_regression_of_counts_chooses_its_weights() {
    let cluster = cluster(&PARTIES, 4_000, 40.0);
    let text = "name = \"readmitted\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"poisson\"\n\
                outcome = \"readmitted\"\npredictors = [\"treated\", \"age\"]\n[columns]\ntreated = { binary = true }\n\
                readmitted = { min = 0, max = 3 }\nage = { min = -150, max = 250 }\n[sampler]\ndraws = 200\n\
                [privacy]\nepsilon = 8.0\ndelta = 1e-6\n";
    let result = cluster.submit(text);
    assert_eq!((&result["stopped_by"], &result["adequacy"]["adequate"]), (&"released".into(), &true.into()), "{result:#}");
    let estimand = if result["weighted"].is_object() { "weighted" } else { "plain" };
    let rows = result["posterior"].as_array().expect("rows");
    assert!(rows.len() == 3 && rows.iter().all(|row| row["estimand"] == estimand), "{rows:?}");
    let id = result["job"].as_str().expect("an id");
    all_hold(&cluster, id);
    let refitted = json(&cluster.must(&["refit", id, "--prior", "treated=normal(0, 1)", "--json"]));
    assert_eq!(
        (&figures(&refitted)["posterior"][1]["estimand"], &refitted["iterations"]),
        (&estimand.into(), &0.into()),
        "{refitted:#}"
    );
    // The table of outcomes comes first, with .03 of the budget: a plain search would start with .05.
    assert!(result["releases"][0]["share"].as_f64() < Some(0.031), "{}", result["releases"]);
}

/// Runs weighted chains of an algorithm. They name their estimand beside every coefficient, every release is in the ledgers and replays, and
/// the run is not extended. Returns the job's text.
fn check_weighted_chains(cluster: &Cluster, algorithm: &str, sampler: &str) -> String {
    let text = format!(
        "name = \"readmitted\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\n\
         outcome = \"readmitted\"\nweights = \"always\"\npredictors = [\"treated\", \"age\"]\n[columns]\n\
         treated = {{ binary = true }}\nreadmitted = {{ binary = true }}\nage = {{ min = -150, max = 250 }}\n\
         [sampler]\n{sampler}chains = 1\ndraws = 60\nforce = true\n[privacy]\nepsilon = 20.0\ndelta = 1e-6\n"
    );
    let weighted = cluster.submit(&text);
    for rows in ["posterior", "posterior_original"] {
        let rows = figures(&weighted)[rows].as_array().expect("rows");
        assert!(rows.len() == 3 && rows.iter().all(|row| row["estimand"] == "weighted"), "{rows:?}");
    }
    assert!(weighted["weighted"]["radius"].as_f64() >= Some(1.0) && weighted["weighted"]["clip"].is_null(), "{weighted:#}");
    assert!(weighted["warnings"].to_string().contains("weighted posterior"), "{}", weighted["warnings"]);
    let id = weighted["job"].as_str().expect("an id");
    all_hold(cluster, id);
    let attributes = &zarr::metadata(std::path::Path::new(weighted["draws"].as_str().expect("a path")))["attributes"];
    assert_eq!((&attributes["estimand"], &attributes["weighted"]), (&"weighted".into(), &weighted["weighted"]));
    let refused = cluster.run(&["extend", id, "--draws", "20"]);
    assert!(stderr(&refused).contains("can't be extended"), "{}", stderr(&refused));
    text
}

#[test]
fn weighted_chains_name_their_estimand() {
    check_weighted_chains(&cluster(&PARTIES, 4_000, 80.0), "hmc", "");
}

/// Another search than by gradients is refused by name for weighted chains of ratios.
#[test]
fn weighted_chains_of_ratios_name_their_estimand() {
    let cluster = cluster(&PARTIES, 4_000, 80.0);
    let text = check_weighted_chains(&cluster, "penalty", "locate = \"gradients\"\nwarmup = 2\n");
    std::fs::write(cluster.path("ratios.toml"), text.replace("\"gradients\"", "\"ratios\"")).expect("a file");
    let refused = cluster.run(&["submit", "ratios.toml"]);
    assert!(stderr(&refused).contains("model.weights") && refused.status.code() == Some(2), "{}", stderr(&refused));
    std::fs::write(cluster.path("plan.toml"), text + "[plan]\nrecords = 4000\n").expect("a file");
    let planned = cluster.must(&["plan", "plan.toml"]);
    assert!(planned.contains("Error by model.weights: \"never\" "), "{planned}");
}

/// A weighted Poisson regression: its queries carry tables of expectations, and the trail of its releases replays.
#[test]
fn a_weighted_poisson_regression_names_its_estimand() {
    let cluster = cluster(&PARTIES, 4_000, 40.0);
    let text = "name = \"readmissions\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"poisson\"\n\
                outcome = \"readmitted\"\nweights = \"always\"\npredictors = [\"treated\", \"age\"]\n[columns]\n\
                treated = { binary = true }\nreadmitted = { min = 0, max = 9 }\nage = { min = -150, max = 250 }\n[sampler]\ndraws = 200\n\
                [privacy]\nepsilon = 8.0\ndelta = 1e-6\n";
    let weighted = cluster.submit(text);
    assert_eq!((&weighted["stopped_by"], &weighted["adequacy"]["adequate"]), (&"released".into(), &true.into()), "{weighted:#}");
    let rows = weighted["posterior"].as_array().expect("rows");
    assert!(rows.len() == 3 && rows.iter().all(|row| row["estimand"] == "weighted"), "{rows:?}");
    let id = weighted["job"].as_str().expect("an id");
    all_hold(&cluster, id);
    let refitted = json(&cluster.must(&["refit", id, "--prior", "treated=normal(0, 1)", "--json"]));
    assert_eq!(
        (&figures(&refitted)["posterior"][1]["estimand"], &refitted["iterations"]),
        (&"weighted".into(), &0.into()),
        "{refitted:#}"
    );
}

/// With an exposure that is fixed by design, tables of exposures, outcomes and tails are asked one by one: a party answers no two in a
/// round.
#[test]
fn a_weighted_count_with_a_fixed_exposure_is_released() {
    let cluster = cluster(&PARTIES, 4_000, 40.0);
    let text = "name = \"rates\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"poisson\"\n\
                outcome = \"readmitted\"\nweights = \"always\"\nexposure = \"age\"\nexposure_fixed = true\npredictors = [\"treated\"]\n\
                [columns]\ntreated = { binary = true }\nreadmitted = { min = 0, max = 9 }\nage = { min = 15, max = 120 }\n[sampler]\n\
                draws = 200\n[privacy]\nepsilon = 8.0\ndelta = 1e-6\n";
    let weighted = cluster.submit(text);
    assert_eq!((&weighted["stopped_by"], &weighted["adequacy"]["adequate"]), (&"released".into(), &true.into()), "{weighted:#}");
    assert!(weighted["posterior"].as_array().expect("rows").iter().all(|row| row["estimand"] == "weighted"), "{weighted:#}");
    all_hold(&cluster, weighted["job"].as_str().expect("an id"));
    // The score of the dispersion is of the coefficients' kind, so it has rounds of its own. Outcomes of 0 and 1 leave it undetermined.
    let binomial = text.replace("\"poisson\"", "\"negative_binomial\"").replace("[sampler]\n", "[sampler]\nforce = true\n");
    let weighted = cluster.submit(&binomial);
    assert_eq!(
        (&weighted["stopped_by"], &figures(&weighted)["posterior"][2]["estimand"]),
        (&"released".into(), &"weighted".into()),
        "{weighted:#}"
    );
    all_hold(&cluster, weighted["job"].as_str().expect("an id"));
}
