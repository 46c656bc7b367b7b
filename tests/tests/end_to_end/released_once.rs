//! `noisy-statistics` and `auto` in real processes: a few rounds of vectors, charged, released, replayed and checked.

use std::time::Duration;

use conclave_tests::cluster::{Cluster, PartySetup, json};
use conclave_tests::study;

use crate::verify::all_hold;
use crate::{EXE, cluster, stderr};

const PARTIES: [&str; 2] = ["a", "b"];

fn job(algorithm: &str, epsilon: f64, more: &str) -> String {
    format!(
        "name = \"once\"\n{algorithm}parties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"readmitted\"\n\
         predictors = [\"treated\", \"age\"]\n[columns]\nreadmitted = {{ binary = true }}\ntreated = {{ binary = true }}\n\
         age = {{ min = 20, max = 80 }}\n[sampler]\ndraws = 200\n{more}[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    )
}

/// Exports a ledger and verifies the export, as an auditor does.
fn check_ledger(cluster: &Cluster) {
    cluster.must(&["__party", "export", "--config", "a/party.toml", "--out", "export.jsonl"]);
    cluster.must(&["verify-ledger", "export.jsonl", "--ca", "ca/ca.pem"]);
}

/// A job without an algorithm uses `auto` and reports its choice with the reason. The whole budget is spent in at most nine
/// stages, and each party finds every round in its ledger; an intercepted draw would be detected.
#[test]
fn a_job_that_names_no_algorithm_releases_once() {
    let cluster = cluster(&PARTIES, 4_000, 30.0);
    let result = cluster.submit(&job("", 8.0, ""));
    assert_eq!((&result["algorithm"], &result["stopped_by"]), (&"noisy-statistics".into(), &"released".into()));
    assert!(result["chosen"].as_str().expect("a reason").contains("scores"));
    assert_eq!((&result["conditional_on"], &result["draws_per_chain"]), (&"noisy_release".into(), &200.into()));
    let rounds = result["iterations"].as_u64().expect("a number");
    // The last stage takes three rounds.
    let stages = result["releases"].as_array().expect("stages").len() as u64;
    assert!((4..=11).contains(&rounds) && stages + 2 == rounds, "{result:#}");
    assert_eq!(result["adequacy"]["adequate"], true, "{:#}", result["adequacy"]);
    for row in result["posterior"].as_array().expect("rows") {
        let (share, sd, data) = (row["noise_share"].as_f64(), row["sd"].as_f64(), row["sd_data"].as_f64());
        let (share, sd, data) = (share.expect("a share"), sd.expect("an sd"), data.expect("an sd"));
        assert!((0.0..0.9).contains(&share) && data <= sd, "{row:#}");
    }
    // The whole budget, and no more.
    let spent = result["parties"][0]["epsilon_spent"].as_f64().expect("a number");
    assert!(spent > 7.99 && spent <= 8.0, "{spent}");
    let id = result["job"].as_str().expect("an id");
    assert_eq!(all_hold(&cluster, id)["rounds"], rounds);
    check_ledger(&cluster);
    // A regression with unknown residual sd releases moments twice. Where the outcome's bounds are far apart, it releases moments, the
    // tails of the residuals at two clips, and their score: its noise is half of what the choice admits there, six sds of the
    // released sigma away.
    let linear = "name = \"line\"\nalgorithm = \"auto\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"linear\"\noutcome = \"age\"\n\
                  predictors = [\"treated\"]\nweights = \"never\"\n[columns]\ntreated = { binary = true }\nage = { min = 20, max = 80 }\n[sampler]\n\
                  draws = 100\n[privacy]\nepsilon = 8\ndelta = 1e-6\n";
    // By a table of categories, it releases counts and sums once.
    let stages = linear.to_owned() + "[release]\ntable = false\n";
    let far_apart = stages.replace("min = 20, max = 80", "min = -150, max = 250");
    for (job, rounds) in [(stages, 2), (far_apart, 4), (linear.to_owned(), 1)] {
        let line = cluster.submit(&job);
        assert_eq!((&line["stopped_by"], &line["iterations"]), (&"released".into(), &rounds.into()), "{line:#}");
        all_hold(&cluster, line["job"].as_str().expect("an id"));
    }
    // Where all predictors are categories, a table of them and the outcome is released, from which models with fewer predictors
    // can be fitted.
    let table = "name = \"odds\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"readmitted\"\npredictors = [\"treated\"]\n\
                 [columns]\nreadmitted = { binary = true }\ntreated = { binary = true }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";
    let table = cluster.submit(table);
    assert_eq!((&table["stopped_by"], &table["iterations"]), (&"released".into(), &1.into()), "{table:#}");
    assert_eq!(table["adequacy"]["adequate"], true, "{table:#}");
    assert!(table["chosen"].as_str().expect("a reason").contains("table"), "{table:#}");
    let odds = table["job"].as_str().expect("an id");
    all_hold(&cluster, odds);
    let smaller = json(&cluster.must(&["refit", odds, "--drop", "treated", "--json"]));
    assert_eq!(smaller["posterior"].as_array().map(Vec::len), Some(1), "{smaller:#}");
    let share = "name = \"share\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"readmitted\"\n\
                 [columns]\nreadmitted = { binary = true }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";
    let share = cluster.submit(share);
    assert_eq!((&share["stopped_by"], &share["iterations"]), (&"released".into(), &1.into()), "{share:#}");
    all_hold(&cluster, share["job"].as_str().expect("an id"));
}

/// A job whose release would be useless, or whose chain would have no draw, is refused before any query, with a suitable budget.
/// An analyst may force it, and the stored job records that.
#[test]
fn a_budget_too_small_for_any_answer_is_not_spent() {
    let cluster = cluster(&PARTIES, 200, 30.0);
    let share = "name = \"share\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"readmitted\"\n\
                 [columns]\nreadmitted = { binary = true }\n[privacy]\nepsilon = 0.1\ndelta = 1e-6\n";
    let chain = job("algorithm = \"penalty\"\n", 0.2, "");
    for (job, what) in
        [(job("algorithm = \"auto\"\n", 0.5, ""), "records in all"), (share.into(), "records in all"), (chain, "one draw")]
    {
        std::fs::write(cluster.path("futile.toml"), &job).expect("a file");
        let output = cluster.run(&["submit", "futile.toml", "--wait"]);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{error}");
        assert!([what, "Epsilon", "No query was made", "force = true"].iter().all(|word| error.contains(word)), "{error}");
    }
    let count = |row: &rusqlite::Row<'_>| row.get::<_, u64>(0);
    let released = |party| cluster.ledger(party).query_row("SELECT count(*) FROM releases", [], count).expect("a count");
    assert_eq!([released(0), released(1)], [0, 0]);
    std::fs::write(cluster.path("futile.toml"), share).expect("a file");
    let result = json(&cluster.must(&["submit", "futile.toml", "--anyway", "--wait", "--json"]));
    assert_eq!((&result["stopped_by"], released(0) > 0), (&"released".into(), true), "{result:#}");
    all_hold(&cluster, result["job"].as_str().expect("an id"));
}

/// A party lost between stages pauses the job. If the job is then cancelled, it ends with its finished stages and a warning.
#[test]
fn a_job_cancelled_between_stages_answers_from_its_finished_stages() {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in PARTIES.into_iter().enumerate() {
        let data = study::csv(&study::records(4_000, seed as u64));
        let data = study::write(&cluster.path(&format!("{name}.csv")), &data);
        // The replies are delayed long enough for the party to stop before the last stage.
        let policy_extra = "reply_delay_ms = 2000\nreleases = [\"score\"]";
        let setup = PartySetup {
            name,
            data: &data,
            columns: &study::COLUMNS,
            epsilon: 60.0,
            data_extra: "",
            budget_extra: "",
            policy_extra,
        };
        let party = cluster.enrol(&setup);
        cluster.start_party(party);
    }
    let shares = "[release]\nstages = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]\n";
    let text = job("algorithm = \"noisy-statistics\"\n", 20.0, "") + shares;
    let id = cluster.submit_only(&text);
    cluster.wait_status(&id, Duration::from_secs(60), "its first stage", |s| s["iterations"].as_u64() >= Some(1));
    cluster.kill_party(1);
    let output = cluster.run(&["cancel", &id]);
    assert!(output.status.success(), "{}", stderr(&output));
    cluster.wait_status(&id, Duration::from_secs(60), "its end", |s| s["state"] == "cancelled");
    let summary = cluster.run(&["summary", &id, "--json"]);
    assert_eq!(summary.status.code(), Some(0), "{}", stderr(&summary));
    let result = json(&String::from_utf8_lossy(&summary.stdout));
    assert_eq!((&result["stopped_by"], &result["draws_per_chain"]), (&"cancelled".into(), &200.into()), "{result:#}");
    assert!(result["warnings"].to_string().contains("ended before its last stage"), "{}", result["warnings"]);
    let stages = result["releases"].as_array().expect("stages").len();
    assert!((1..10).contains(&stages), "{stages}");
    // The remaining party reproduces the draws.
    let report = json(&cluster.must(&["__party", "verify", &id, "--config", "a/party.toml", "--json"]));
    assert_eq!(report["draws"], 200, "{report:#}");
}

/// Keys of a penalty chain are refused by name in a job that releases once, and vice versa.
#[test]
fn keys_that_do_not_apply_are_named() {
    let cluster = cluster(&["a"], 50, 3.0);
    let refused = |text: &str| {
        std::fs::write(cluster.path("odd.toml"), text).expect("a file");
        let output = cluster.run(&["submit", "odd.toml"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let once = |more: &str| job("algorithm = \"noisy-statistics\"\n", 1.0, more).replace("[\"a\", \"b\"]", "[\"a\"]");
    assert!(refused(&once("locate_share = 0.1\n")).contains("sampler.locate_share"));
    assert!(refused(&(once("") + "noise_sd = 1.0\n")).contains("privacy.noise_sd"));
    let chain = job("algorithm = \"penalty\"\n", 1.0, "").replace("[\"a\", \"b\"]", "[\"a\"]");
    assert!(refused(&(chain + "[release]\nstages = [1.0]\n")).contains("release"));
    assert!(refused(&(once("") + "[release]\nstages = [0.5, 0.1]\n")).contains("must add up to 1, not 0.6"));
}
