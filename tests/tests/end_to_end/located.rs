//! A penalty chain that finds the mode by gradients, in real processes.

use crate::cluster;
use crate::verify::all_hold;

const PARTIES: [&str; 2] = ["a", "b"];

fn job(more: &str) -> String {
    format!(
        "name = \"located\"\nalgorithm = \"penalty\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"readmitted\"\n\
         predictors = [\"treated\", \"age\"]\n[columns]\nreadmitted = {{ binary = true }}\ntreated = {{ binary = true }}\n\
         age = {{ min = 20, max = 80 }}\n[sampler]\nchains = 2\ndraws = 40\nwarmup = 5\n{more}[privacy]\nepsilon = 40.0\ndelta = 1e-6\n"
    )
}

/// The search takes at most twelve rounds, where a search by ratios takes thirty rounds of two queries each. Charges, releases
/// and replay are checked as usual.
#[test]
fn gradients_find_the_mode_of_a_chain_of_ratios() {
    let mut cluster = cluster(&PARTIES, 4_000, 200.0);
    let (search, steps) = (12, 40 + 5 * 3);
    let result = cluster.submit(&job("locate = \"gradients\"\n"));
    assert_eq!((&result["algorithm"], &result["stopped_by"]), (&"penalty".into(), &"draws".into()), "{result:#}");
    let rounds = result["iterations"].as_u64().expect("a number");
    assert!(rounds <= search + steps, "{rounds}");
    let id = result["job"].as_str().expect("an id").to_owned();
    assert_eq!(all_hold(&cluster, &id)["rounds"], rounds);
    cluster.must(&["__party", "export", "--config", "a/party.toml", "--out", "export.jsonl"]);
    cluster.must(&["verify-ledger", "export.jsonl", "--ca", "ca/ca.pem"]);
    // The coordinator replays the search after a restart; the extension has no search.
    cluster.kill_coordinator();
    cluster.start_coordinator();
    cluster.must(&["extend", &id, "--draws", "20", "--wait", "--json"]);
    all_hold(&cluster, &id);
}
