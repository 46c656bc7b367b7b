//! A survival regression in real processes: released once, verified by every owner, refitted, and shown with its curves.

use std::fmt::Write as _;

use conclave_tests::cluster::{Cluster, PartySetup, json};
use conclave_tests::study;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde_json::Value;

use crate::verify::all_hold;
use crate::{EXE, setup, stderr};

const COLUMNS: [&str; 5] = ["years", "died", "entered", "treated", "age"];
const PARTIES: [&str; 3] = ["a", "b", "c"];
/// The log hazard ratio of the treatment, and the greatest time.
const TREATED: f64 = -0.7;
const LONGEST: f64 = 10.0;

/// Patients who enter within two years, with a hazard of .15 a year that the treatment multiplies.
fn csv(rows: usize, seed: u64) -> String {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut csv = String::from("years,died,entered,treated,age\n");
    for _ in 0..rows {
        let (treated, age) = (u8::from(rng.random_bool(0.5)), rng.random_range(40.0..90.0_f64));
        let rate = 0.15 * (TREATED * f64::from(treated) + 0.5 * (age - 65.0) / 25.0).exp();
        let entered = rng.random_range(0.0..2.0_f64);
        let event = entered - rng.random_range(f64::MIN_POSITIVE..1.0_f64).ln() / rate;
        let last = rng.random_range(3.0..LONGEST);
        let _ = writeln!(csv, "{:.4},{},{entered:.4},{treated},{age:.1}", event.min(last), u8::from(event <= last));
    }
    csv
}

fn job(more: &str) -> String {
    format!(
        "name = \"survival\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"piecewise_exponential\"\noutcome = \"years\"\n\
         event = \"died\"\nentry = \"entered\"\ncuts = [4]\npredictors = [\"treated\", \"age\"]\n[columns]\nyears = {{ min = 0, max = {LONGEST} }}\n\
         died = {{ binary = true }}\nentered = {{ min = 0, max = 5 }}\ntreated = {{ binary = true }}\nage = {{ min = 40, max = 90 }}\n\
         [sampler]\ndraws = 400\n[privacy]\nepsilon = 6\ndelta = 1e-6\n{more}"
    )
}

#[test]
fn a_survival_regression_is_answered_and_verified() {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in PARTIES.into_iter().enumerate() {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &csv(3_000, seed as u64));
        let setup = PartySetup { columns: &COLUMNS, ..setup(name, &data, 60.0) };
        let party = cluster.enrol(&setup);
        cluster.start_party(party);
    }
    let result = cluster.submit(&job(""));
    assert_eq!((&result["stopped_by"], &result["adequacy"]["adequate"]), (&"released".into(), &true.into()), "{result:#}");
    let names: Vec<&str> = result["posterior"].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["log_hazard[1]", "log_hazard[2]", "treated", "age"]);
    // The true ratio is .5; four sds of 9,000 records with noise.
    let treated = &result["posterior"][2];
    let off = (treated["mean"].as_f64().expect("a mean") - TREATED) / treated["sd"].as_f64().expect("an sd");
    assert!(off.abs() < 4.0, "{off}");
    assert_eq!((&result["ratios"][0]["name"], &result["ratios"][0]["kind"]), (&"treated".into(), &"hazard_ratio".into()));
    let curves = result["survival"].as_array().expect("curves");
    let of: Vec<&Value> = curves.iter().map(|curve| &curve["of"]).collect();
    assert_eq!(of, ["baseline", "treated"]);
    let last = |curve: &Value| curve["points"].as_array().and_then(|points| points.last()?["median"].as_f64()).expect("a point");
    assert!(last(&curves[1]) > last(&curves[0]), "the treatment helps: {curves:?}");
    let id = result["job"].as_str().expect("an id").to_owned();
    let verified = all_hold(&cluster, &id);
    let shown = cluster.must(&["summary", &id, "--all"]);
    assert!(shown.contains("hazard ratio") && shown.contains("Mean survival time up to 10"), "{shown}");
    cluster.must(&["report", &id, "--out", "report.html"]);
    let report = std::fs::read_to_string(cluster.path("report.html")).expect("a report");
    // Owner and analyst have the digest of one log.
    assert!(report.contains(verified["log_digest"].as_str().expect("a digest")), "another log digest than {verified}");
    assert!(report.contains("conclave-party ") && report.contains("when they attached last"), "no software of the parties");
    assert!(report.contains("id=\"survival\"") && report.contains("The probability to survive a time"), "no curves");
    assert!(
        report.contains("Hazard ratios of ") && report.contains("HR [5%, 95%]") && report.contains("treated, 1 against 0"),
        "no hazard ratios"
    );

    // The job itself from its releases.
    (0..3).for_each(|party| cluster.kill_party(party));
    let same = json(&cluster.must(&["refit", &id, "--json", "--prior", "default=normal(0, 2.5)"]));
    assert_eq!((&same["posterior"], &same["survival"]), (&result["posterior"], &result["survival"]));
    std::fs::write(cluster.path("job.toml"), job("").replace("algorithm = \"auto\"", "algorithm = \"hmc\"")).expect("a file");
    let refused = cluster.run(&["submit", "job.toml"]);
    assert!(
        stderr(&refused).contains("takes algorithm = \"noisy-statistics\"") && refused.status.code() == Some(2),
        "{}",
        stderr(&refused)
    );
}

/// A life table by treatment: one release, charged, verified and refitted, with a curve of each group on every surface.
#[test]
fn a_life_table_is_answered_and_verified() {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in PARTIES.into_iter().enumerate() {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &csv(400, 10 + seed as u64));
        let setup = PartySetup { columns: &COLUMNS, ..setup(name, &data, 60.0) };
        let party = cluster.enrol(&setup);
        cluster.start_party(party);
    }
    let text = "name = \"curves\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"life_table\"\noutcome = \"years\"\nevent = \"died\"\n\
                cuts = [2, 4, 6]\nby = \"treated\"\n[columns]\nyears = { min = 0, max = 10 }\ndied = { binary = true }\ntreated = { binary = true }\n\
                [sampler]\ndraws = 400\n[privacy]\nepsilon = 3\ndelta = 1e-6\n";
    let result = cluster.submit(text);
    assert_eq!((&result["stopped_by"], &result["adequacy"]["adequate"]), (&"released".into(), &true.into()), "{result:#}");
    let names: Vec<&str> = result["posterior"].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!((names.len(), names[0], names[7]), (8, "hazard[1|0]", "hazard[4|1]"));
    let curves = result["survival"].as_array().expect("curves");
    let of: Vec<&Value> = curves.iter().map(|curve| &curve["of"]).collect();
    assert_eq!(of, ["treated[0]", "treated[1]"]);
    let at_four = |curve: &Value| curve["points"][2]["median"].as_f64().expect("a point");
    assert_eq!(curves[0]["points"][2]["time"], 4.0);
    assert!(at_four(&curves[1]) > at_four(&curves[0]), "the treatment helps: {curves:?}");
    let id = result["job"].as_str().expect("an id").to_owned();
    all_hold(&cluster, &id);
    let shown = cluster.must(&["summary", &id, "--all"]);
    assert!(shown.contains("Mean survival time up to 10") && shown.contains("of each group"), "{shown}");
    cluster.must(&["report", &id, "--out", "report.html"]);
    let report = std::fs::read_to_string(cluster.path("report.html")).expect("a report");
    assert!(
        report.contains("The probability to survive to the end of each interval") && report.contains("treated[1]"),
        "no curves"
    );
    let predicted = json(&cluster.must(&["predict", &id, "--times", "4", "--at", "treated=1", "--json"]));
    let row = &predicted["predictions"][0];
    assert_eq!(row["quantity"], "survival[4]", "{predicted}");
    assert!((row["median"].as_f64().expect("a median") - at_four(&curves[1])).abs() < 1e-3, "{predicted}");
    let same = json(&cluster.must(&["refit", &id, "--json", "--prior", "hazard[1|0]=beta(0.5, 1)"]));
    assert_eq!((&same["posterior"], &same["survival"]), (&result["posterior"], &result["survival"]));
}
