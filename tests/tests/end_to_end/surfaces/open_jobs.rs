//! The scale of an owner who has an open job and a job that waits for a decision, besides one that has ended.

use std::time::Duration;

use conclave_tests::cluster::Cluster;
use conclave_tests::study;
use conclave_tests::wait::until;
use serde_json::Value;

use super::budget::{after_heading, figure, near, of_owner, owner, shares};
use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);
const START: &str = "warmup = 2\nseed = 5\nstart = { intercept = 0.0, treated = 0.5, age = 0.5 }";

/// Starts an owner that decides by hand and has a page, and another that approves by policy.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in [(1, "a"), (2, "b")] {
        let party = cluster.enrol_study(name, &study::records(300, seed), 400.0);
        if name == "a" {
            cluster.decide_by_hand(party);
        }
        cluster.start_party(party);
    }
    cluster
}

/// Submits a job that waits for `a`, and returns its id.
fn submit(cluster: &Cluster, parties: &[&str], sampler: &str, epsilon: f64) -> String {
    let job = study::job(parties, &format!("chains = 2\n{sampler}\n{START}"), &format!("epsilon = {epsilon}\ndelta = 1e-6"));
    let job = cluster.submit_only(&job);
    let awaits = |status: &Value| status["awaiting_consent"].as_array().is_some_and(|all| all.contains(&"a".into()));
    cluster.wait_status(&job, PATIENCE, "the owner", awaits);
    job
}

#[test]
fn open_and_waiting_jobs_have_their_parts_of_one_scale() {
    let mut cluster = cluster();
    let radius = |radius: f64| format!("proposal = {{ kind = \"guided\", radius = {radius} }}");
    // One job has ended, one is open and paused, so that no figure moves, and one waits for the owner.
    let ended = submit(&cluster, &["a"], &format!("draws = 40\n{}", radius(0.08)), 60.0);
    owner(&cluster, "a", &["approve", &ended[..8], "--yes"]);
    cluster.wait_status(&ended, PATIENCE, "the end", |status| status["state"] == "finished");
    let open = submit(&cluster, &["a", "b"], &format!("draws = 100000\n{}", radius(0.02)), 100.0);
    owner(&cluster, "a", &["approve", &open[..8], "--yes"]);
    cluster.wait_status(&open, PATIENCE, "draws", |status| status["draws"].as_u64() > Some(5));
    cluster.kill_party(1);
    cluster.wait_status(&open, PATIENCE, "the pause", |status| status["waiting_for"].to_string().contains("\"b\""));
    let pending = submit(&cluster, &["a"], &format!("draws = 40\n{}", radius(0.08)), 50.0);
    let visit = cluster.visit_owner("a");
    until("the waiting job on the page", PATIENCE, || visit.get("/").1.contains(&format!("title=\"{pending}\"")));

    let (budget, jobs, expected) = of_owner(&cluster, "a", &ended);
    assert!(figure(&budget["scale"], "held_by_open_jobs") > 0.0, "{budget:#}");
    assert_eq!(jobs.len(), 3);
    let of_job = |id: &str| jobs.iter().find(|job| job["job"] == id).expect("a job");
    assert_eq!(figure(of_job(&pending), "mu_squared_spent"), 0.0);
    let page = visit.get("/").1;
    assert!(page.contains("<title>(1) a – data owner: waiting for consent</title>"), "{page}");

    // Beside the waiting job, spent and held are the same, and the rest is divided.
    let preview = cluster.run(&["__party", "approve", &pending[..8], "--config", "a/party.toml"]);
    assert_eq!(preview.status.code(), Some(2), "no terminal");
    let preview = String::from_utf8(preview.stdout).expect("UTF-8");
    let of_pending = shares(&preview);
    assert_eq!(shares(&after_heading(&visit.get(&format!("/jobs/{pending}")).1, "What it costs")), of_pending, "{preview}");
    assert_eq!((of_pending["spent"], of_pending["held"]), (expected["spent"], expected["held"]), "{preview}");
    assert!(near(of_pending["planned"] + of_pending["left"], expected["left"], 0.1001), "{preview}");

    // A name with several matches is an error that lists them; whole ids and times stay in JSON.
    let all = cluster.run(&["__party", "statement", "", "--config", "a/party.toml"]);
    assert_eq!(all.status.code(), Some(2), "{}", crate::stderr(&all));
    let listed = owner(&cluster, "a", &["jobs"]);
    assert!(listed.contains(&pending[..8]) && !listed.contains(&pending) && listed.contains(" UTC; "), "{listed}");
}
