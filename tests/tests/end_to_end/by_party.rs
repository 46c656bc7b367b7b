//! Parameters by party in real processes: each party is asked at its own points, pays its own cap, and finds its own queries in its
//! ledger.

use std::collections::BTreeSet;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::zarr;
use serde_json::Value;

use crate::verify::all_hold;
use crate::{EXE, setup, stderr};

pub(crate) const PARTIES: [&str; 3] = ["a", "b", "c"];

fn job(more: &str) -> String {
    format!(
        "name = \"sites\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"logistic\"\noutcome = \"readmitted\"\n\
         predictors = [\"treated\", \"age\"]\n[columns]\nreadmitted = {{ binary = true }}\ntreated = {{ binary = true }}\n\
         age = {{ min = 20, max = 80 }}\n[sampler]\ndraws = 200\n[privacy]\nepsilon = 6\ndelta = 1e-6\n[parameters]\n\
         intercept = {{ by = \"party\" }}\n{more}"
    )
}

/// Starts three parties of different sizes under this policy of parameters by party.
pub(crate) fn parties(policy: &str) -> Cluster {
    let mut cluster = Cluster::new(EXE);
    for (seed, (name, rows)) in PARTIES.into_iter().zip([4_000, 2_500, 1_500]).enumerate() {
        let data = study::csv(&study::records(rows, seed as u64));
        let data = study::write(&cluster.path(&format!("{name}.csv")), &data);
        let mut setup = setup(name, &data, 60.0);
        let policy_extra = format!("{}\n{policy}", setup.policy_extra);
        setup.policy_extra = &policy_extra;
        let party = cluster.enrol(&setup);
        cluster.start_party(party);
    }
    cluster
}

pub(crate) fn names(result: &Value) -> Vec<&str> {
    result["posterior"].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect()
}

/// The digests of a party's queries, which include their points.
fn queries_of(cluster: &Cluster, party: usize) -> BTreeSet<Vec<u8>> {
    let ledger = cluster.ledger(party);
    let mut rows = ledger.prepare("SELECT digest FROM charges").expect("a table");
    let digests = rows.query_map([], |row| row.get::<_, Vec<u8>>(0)).expect("rows");
    digests.collect::<Result<_, _>>().expect("digests")
}

#[test]
fn each_party_is_asked_at_points_of_its_own() {
    let mut cluster = parties("site_parameters = \"allow\"");
    let result = cluster.submit(&job(""));
    assert_eq!((&result["stopped_by"], &result["adequacy"]["adequate"]), (&"released".into(), &true.into()), "{result:#}");
    let all = ["intercept", "treated", "age", "intercept[a]", "intercept[b]", "intercept[c]", "intercept.sd"];
    assert_eq!(names(&result), all);
    for party in result["parties"].as_array().expect("parties") {
        let spent = party["epsilon_spent"].as_f64().expect("a number");
        assert!(spent > 5.99 && spent <= 6.0, "{party:#}");
    }
    let id = result["job"].as_str().expect("an id").to_owned();
    all_hold(&cluster, &id);
    let report = json(&cluster.must(&["__party", "verify", &id, "--config", "c/party.toml", "--json"]));
    assert_eq!(report["rounds"], result["iterations"], "{report:#}");
    // Every party starts at the same public point; later it is asked where its own records are.
    let asked: Vec<BTreeSet<Vec<u8>>> = (0..3).map(|party| queries_of(&cluster, party)).collect();
    assert!(asked[0].len() > 4 && asked[0].intersection(&asked[1]).count() <= 2, "{asked:?}");
    let shown = cluster.must(&["summary", &id, "--all"]);
    assert!(shown.contains("intercept[b]") && shown.contains("intercept.sd"), "{shown}");
    cluster.must(&["report", &id, "--out", "report.html"]);

    // The job itself, from its releases; another prior of the sd; without a party.
    (0..3).for_each(|party| cluster.kill_party(party));
    predicts_at_each_party(&cluster, &id, &result);
    let refit = |more: &[&str]| json(&cluster.must(&[&["refit", &id, "--json"], more].concat()));
    let same = refit(&["--prior", "default=normal(0, 2.5)", "--out", "same.zarr"]);
    cluster.must(&["draws", &id, "--format", "zarr", "--out", "own.zarr"]);
    for key in ["posterior", "posterior_original", "releases", "adequacy"] {
        assert_eq!(same[key], result[key], "{key}");
    }
    let arrays = |store: &str| -> Vec<Vec<f64>> { zarr::read(&cluster.path(store).join("posterior").join("treated")) };
    assert_eq!(arrays("same.zarr"), arrays("own.zarr"));
    let sd = |result: &Value, at: usize| result["posterior"][at]["mean"].as_f64().expect("a mean");
    let tight = refit(&["--prior", "intercept.sd=half_normal(0.01)"]);
    assert!(sd(&tight, 6) < 0.02 && sd(&result, 6) > 0.02, "{tight:#}");
    let without = refit(&["--without", "b"]);
    assert_eq!(names(&without), ["intercept", "treated", "age", "intercept[a]", "intercept[c]", "intercept.sd"]);
    let strange = cluster.run(&["refit", &id, "--without", "d"]);
    assert!(stderr(&strange).contains("the job has no party `d`"), "{}", stderr(&strange));
}

/// At age 50, which is coded 0, and without treatment the linear predictor is the intercept: of a party, of the mean over the parties, or of
/// a party outside the job, whose interval is wider than that of the mean.
fn predicts_at_each_party(cluster: &Cluster, id: &str, result: &Value) {
    let predict = |more: &[&str]| {
        let args = [&["predict", id, "--at", "age=50, treated=0", "--json"], more].concat();
        json(&cluster.must(&args))
    };
    let median = |name: &str| {
        let row = result["posterior"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == name));
        row.and_then(|row| row["median"].as_f64()).expect("a median")
    };
    let figure = |found: &Value, key: &str| found["predictions"][0][key].as_f64().expect("a number");
    let (mean, new) = (predict(&[]), predict(&["--new-party"]));
    for (found, site, name) in [
        (&mean, "the mean over the parties", "intercept"),
        (&predict(&["--party", "a"]), "a", "intercept[a]"),
        (&predict(&["--party", "c"]), "c", "intercept[c]"),
    ] {
        let expected = 1.0 / (1.0 + (-median(name)).exp());
        assert!((figure(found, "median") - expected).abs() < 1e-4, "{name}: {found:#}");
        assert_eq!(found["party"], site);
    }
    let width = |found: &Value| figure(found, "high") - figure(found, "low");
    assert!(new["party"] == "a new party" && width(&new) > 1.2 * width(&mean), "{new:#} {mean:#}");
    let strange = cluster.run(&["predict", id, "--at", "age=50, treated=0", "--party", "d"]);
    assert!(stderr(&strange).contains("no party `d`; it has a, b, c"), "{}", stderr(&strange));
}

/// Under an automatic policy the owner is asked all the same, unless the policy says otherwise; chains and masked answers have none.
#[test]
fn an_owner_decides_on_parameters_of_its_own() {
    let cluster = parties("");
    let id = cluster.submit_only(&job(""));
    cluster.wait_status(&id, std::time::Duration::from_secs(60), "an owner", |status| {
        status["awaiting_consent"].as_array().is_some_and(|parties| parties.len() == 3)
    });
    // Without a terminal the job is shown, and nothing is approved.
    let asked = cluster.run(&["__party", "approve", &id, "--config", "a/party.toml"]);
    let shown = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(asked.status.code() == Some(2) && shown.contains("how this party differs from the others"), "{shown}");
    cluster.must(&["cancel", &id]);
    let never = parties("site_parameters = \"never\"");
    std::fs::write(never.path("job.toml"), job("")).expect("a file");
    let refused = never.run(&["submit", "job.toml", "--wait"]);
    assert!(stderr(&refused).contains("policy.site_parameters"), "{}", stderr(&refused));
    for (change, word) in [
        ("algorithm = \"penalty\"", "no parameters by party"),
        ("algorithm = \"hmc\"", "no parameters by party"),
        ("algorithm = \"auto\"\naggregation = { mode = \"secure\" }", "each party's own answer"),
    ] {
        std::fs::write(never.path("job.toml"), job("").replace("algorithm = \"auto\"", change)).expect("a file");
        let refused = never.run(&["submit", "job.toml"]);
        assert!(stderr(&refused).contains(word) && refused.status.code() == Some(2), "{}", stderr(&refused));
    }
}
