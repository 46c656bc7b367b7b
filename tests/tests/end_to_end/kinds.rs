//! Releases other than ratios in real processes and ledgers: Algorithm 3's statistics, and clip counts.

use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::Cluster;
use rusqlite::Connection;

use crate::cluster;

const PARTIES: [&str; 2] = ["a", "b"];

fn kinds(ledger: &Connection) -> Vec<(String, u64)> {
    let mut select = ledger.prepare("SELECT kind, count(*) FROM releases GROUP BY kind ORDER BY kind").expect("SQL");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("rows")
}

fn check_books(cluster: &Cluster, result: &serde_json::Value) {
    let id = result["job"].as_str().expect("an id");
    let replay = Replay::of(&cluster.store(), id);
    assert!(replay.complete);
    for party in 0..2 {
        let ledger = LedgerCopy::of(&cluster.ledger(party), id);
        assert!(replay.assert_in_ledger(&ledger, party).is_empty(), "a charge without a recorded round");
    }
}

#[test]
fn an_algorithm_3_job_runs_and_its_ledger_records_it() {
    let cluster = cluster(&PARTIES, 400, 50.0);
    let job = "name = \"share\"\nalgorithm = \"penalty-exp-family\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"bernoulli\"\n\
               outcome = \"readmitted\"\n[columns]\nreadmitted = { binary = true }\n[sampler]\nchains = 2\ndraws = 400\nwarmup = 20\n\
               seed = 3\n[privacy]\nepsilon = 40\ndelta = 1e-6\n";
    let result = cluster.submit(job);
    assert_eq!((result["stopped_by"].as_str(), result["algorithm"].as_str()), (Some("draws"), Some("penalty-exp-family")));
    check_books(&cluster, &result);
    // One release in the search, then one per chain and round.
    for party in 0..2 {
        assert_eq!(kinds(&cluster.ledger(party)), [("statistic 0".to_owned(), 1 + 2 * 420)]);
    }
    // The proportion of readmissions in the study is near a half.
    let mean = result["posterior"][0]["mean"].as_f64().expect("a number");
    assert!((0.35..0.75).contains(&mean), "{mean}");
    cluster.must(&["__party", "export", "--config", "a/party.toml", "--out", "export.jsonl"]);
    cluster.must(&["verify-ledger", "export.jsonl", "--ca", "ca/ca.pem"]);
}

fn clipped(slope: f64) -> String {
    format!(
        "name = \"clipped\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"readmitted\"\npredictors = [\"treated\", \"age\"]\n\
         [columns]\nreadmitted = {{ binary = true }}\ntreated = {{ binary = true }}\nage = {{ min = 20, max = 80 }}\n[sampler]\nchains = 2\n\
         draws = 60\nwarmup = 5\nseed = 3\nstart = {{ intercept = -0.4, treated = 0.8, age = 0.6 }}\n\
         proposal = {{ kind = \"guided\", radius = 0.05 }}\n[privacy]\nepsilon = 300\ndelta = 1e-6\nclip = {{ slope = {slope} }}\n\
         clip_watch_share = 0.3\n"
    )
}

#[test]
fn a_clipped_job_is_counted_and_a_clip_that_bites_ends_it() {
    let cluster = cluster(&PARTIES, 500, 700.0);
    // A record's log ratio moves by at most 1 per unit of one coefficient.
    let ample = cluster.submit(&clipped(2.0));
    assert_eq!(ample["stopped_by"], "draws");
    check_books(&cluster, &ample);
    let found = kinds(&cluster.ledger(0));
    assert!(found.iter().any(|(kind, count)| kind == "clip count" && *count >= 6), "{found:?}");
    assert!(!ample["warnings"].to_string().contains("clip"), "{}", ample["warnings"]);

    let id = cluster.submit_only(&clipped(0.1));
    let status = cluster.wait_status(&id, std::time::Duration::from_secs(60), "its end", |s| s["state"] == "failed");
    let error = status["error"].to_string();
    assert!(error.contains("privacy.clip") && error.contains("raise the clip"), "{status}");
}
