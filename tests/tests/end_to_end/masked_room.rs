//! The owner's limit for the case that all others collude, at the admission of a second secure job.

use std::fs;
use std::time::Duration;

use conclave_tests::study;
use serde_json::Value;

use crate::{cluster_of, setup};

const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
const PATIENCE: Duration = Duration::from_secs(60);

/// A secure job that outlasts the test. Two of the parties hide its answers.
fn job() -> String {
    let sampler = "chains = 2\ndraws = 100000\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.001 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    study::job(&NAMES, sampler, "epsilon = 300\ndelta = 1e-6") + "\n[aggregation]\nmode = \"secure\"\ncolluders = 1\n"
}

/// Both jobs fit the budget, as each is charged half of what its answers cost if all others collude. Under the limit for that case there
/// is room for one: the second waits for it.
#[test]
fn a_secure_job_waits_for_room_under_the_limit_if_all_others_collude() {
    let mut cluster = cluster_of(&NAMES, |cluster, name, seed| {
        let data = study::write(&cluster.path(&format!("{name}.csv")), &study::csv(&study::records(150, seed)));
        cluster.enrol(&setup(name, &data, 700.0))
    });
    cluster.pin_all();
    let config = cluster.path("hospital-b/party.toml");
    let text = fs::read_to_string(&config).expect("a configuration");
    fs::write(&config, text.replace("[secure]\n", "[secure]\nmax_epsilon_if_all_collude = 800\n")).expect("a configuration");
    (0..NAMES.len()).for_each(|party| cluster.start_party(party));
    let first = cluster.submit_only(&job());
    let draws = |status: &Value| status["draws"].as_u64() > Some(3);
    cluster.wait_status(&first, PATIENCE, "draws of the first job", draws);
    let second = cluster.submit_only(&job().replace("seed = 5", "seed = 6"));
    let waits = |status: &Value| {
        let reason = status["waiting_reason"].as_str().unwrap_or_default();
        status["state"] == "queued"
            && reason.starts_with("hospital-b: ")
            && reason.contains("there is room for one more job of epsilon")
    };
    cluster.wait_status(&second, PATIENCE, "the second job to wait", waits);
    cluster.must(&["cancel", &first]);
    cluster.wait_status(&second, PATIENCE, "draws of the second job", draws);
}
