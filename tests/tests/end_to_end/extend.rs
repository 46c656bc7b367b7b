//! The chains of a finished job continue as a job of their own.

use std::time::Duration;

use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::zarr;
use serde_json::{Value, json};

use crate::{cluster, stderr};

const NAMES: [&str; 2] = ["a", "b"];
const PARAMETERS: [&str; 3] = ["intercept", "treated", "age"];
const DRAWS: usize = 40;
const EXTRA: usize = 60;

fn id(result: &Value) -> &str {
    result["job"].as_str().expect("an id")
}

/// Returns the draws, `[parameter][chain][draw]`.
fn draws(cluster: &Cluster, job: &str) -> Vec<Vec<Vec<f64>>> {
    cluster.must(&["draws", job, "--format", "zarr", "--out", job]);
    PARAMETERS.iter().map(|name| zarr::read(&cluster.path(job).join("posterior").join(name))).collect()
}

fn refused(cluster: &Cluster, args: &[&str], word: &str) {
    let output = cluster.run(&[&["extend"], args].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(word), "{}", stderr(&output));
}

#[test]
fn an_extension_continues_where_the_job_ended() {
    let mut cluster = cluster(&NAMES, 200, 500.0);
    let sampler = format!("chains = 2\ndraws = {DRAWS}\nwarmup = 5\nseed = 4");
    let first = cluster.submit(&study::job(&NAMES, &sampler, "epsilon = 200\ndelta = 1e-6"));
    assert!(first.get("extends").is_none() && first["stopped_by"] == "draws");
    // The coordinator can extend a job after a restart, too.
    cluster.kill_coordinator();
    cluster.start_coordinator();
    let draws_asked = EXTRA.to_string();
    let second = json(&cluster.must(&["extend", id(&first), "--draws", &draws_asked, "--epsilon", "150", "--wait", "--json"]));
    assert_eq!((second["extends"].as_str(), second["stopped_by"].as_str()), (Some(id(&first)), Some("draws")));
    assert_ne!(id(&first), id(&second));
    let shown = cluster.must(&["summary", id(&second)]);
    assert!(shown.contains(&format!("continues job {}", id(&first))), "{shown}");

    check_chains(&cluster, &first, &second);
    check_costs(&cluster, &first, &second);

    // An extension can itself be extended, on the previous terms.
    let third = json(&cluster.must(&["extend", id(&second), "--json"]));
    assert_eq!(third["extends"], second["job"]);
    cluster.wait_status(id(&third), Duration::from_secs(60), "its end", |status| status["state"] == "finished");
}

fn check_chains(cluster: &Cluster, first: &Value, second: &Value) {
    let (before, after) = (draws(cluster, id(first)), draws(cluster, id(second)));
    let accepted: Vec<Vec<bool>> = zarr::read(&cluster.path(id(second)).join("sample_stats/accepted"));
    for chain in 0..2 {
        let last = |p: usize| *before[p][chain].last().expect("draws");
        for p in 0..PARAMETERS.len() {
            assert_eq!(after[p][chain].len(), EXTRA, "every draw is kept: there is no warm-up");
            assert_eq!(first["continuation"]["states"][chain][p].as_f64().map(f64::to_bits), Some(last(p).to_bits()));
            // The first move is along the first coordinate. The others, and a rejected first one, have the job's final values.
            if p > 0 || !accepted[chain][0] {
                assert_eq!(after[p][chain][0].to_bits(), last(p).to_bits(), "{} of chain {chain}", PARAMETERS[p]);
            }
        }
        let travelled = (after[0][chain][0] - last(0)).abs();
        let radius = first["continuation"]["radii"][0].as_f64().expect("a radius");
        assert!(travelled == 0.0 || (0.89 * radius..1.11 * radius).contains(&travelled), "{travelled} at radius {radius}");
    }
    assert_eq!(second["continuation"]["radii"], first["continuation"]["radii"]);
    let attributes = zarr::metadata(&cluster.path(id(second)))["attributes"].clone();
    assert_eq!(attributes["extends"], first["job"]);
    assert_ne!(attributes["seed"], json!(4));
}

/// Each job has its own charges, and the owner's total is their sum.
fn check_costs(cluster: &Cluster, first: &Value, second: &Value) {
    let replay = Replay::of(&cluster.store(), id(second));
    assert_eq!(replay.spec.extends.as_deref(), first["job"].as_str());
    for (index, name) in NAMES.iter().enumerate() {
        let ledger = LedgerCopy::of(&cluster.ledger(index), id(second));
        assert!(replay.assert_in_ledger(&ledger, index).is_empty(), "a charge without a recorded round");
        let spent = |result: &Value| result["parties"][index]["mu_squared_spent"].as_f64().expect("a number");
        assert_eq!(ledger.mu_squared(), spent(second));
        assert_eq!(second["parties"][index]["epsilon_budget"], json!(150.0));
        assert!(second["parties"][index]["queries"].as_u64() <= Some(2 * EXTRA as u64));
        let config = format!("{name}/party.toml");
        let owner = json(&cluster.must(&["__party", "budget", "--config", &config, "--json"]));
        let total = owner["mu_squared_spent"].as_f64().expect("a number");
        assert!((total - spent(first) - spent(second)).abs() < 1e-9 * total, "{total}");
    }
}

#[test]
fn only_the_analysts_own_ended_jobs_are_extended() {
    let mut cluster = cluster(&["a"], 50, 60.0);
    let job = |draws: &str| study::job(&["a"], &format!("chains = 2\nwarmup = 1\ndraws = {draws}"), "epsilon = 40\ndelta = 1e-6");
    let finished = cluster.submit(&job("10"));
    let finished = id(&finished);
    refused(&cluster, &["00000000-0000-4000-8000-000000000000"], "has no job");
    refused(&cluster, &[finished, "--draws", "0"], "sampler.draws");

    // Another analyst learns nothing about it.
    cluster.must(&["ca", "request", "analyst", "bob", "--out", "bob"]);
    cluster.must(&["ca", "sign", "bob/request.pem", "--ca", "ca"]);
    refused(&cluster, &[finished, "--identity", "bob"], "bob has no job");

    // A job cannot end while the party is away.
    cluster.kill_party(0);
    let waiting = cluster.submit_only(&job("10"));
    refused(&cluster, &[&waiting], "only a job that has ended can be extended");
    cluster.must(&["cancel", &waiting]);
    refused(&cluster, &[&waiting], "no draws");
    cluster.start_party(0);
}
