//! Retired members: their jobs end, alerts on them clear, new jobs are refused, and the operator may take them back.

use std::time::Duration;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::wait::{SOON, until};
use serde_json::{Value, json};

use super::metrics::{ANY_PORT, page};
use super::{EXE, enrol, restart_coordinator};

const NAMES: [&str; 2] = ["hospital-a", "hospital-b"];

/// A job of this number of draws, which takes no search.
fn job(parties: &[&str], draws: u32) -> String {
    let sampler = format!(
        "chains = 2\ndraws = {draws}\nwarmup = 2\nseed = 5\nproposal = {{ kind = \"guided\", radius = 0.001 }}\n\
         start = {{ intercept = 0.0, treated = 0.5, age = 0.5 }}"
    );
    study::job(parties, &sampler, "epsilon = 200\ndelta = 1e-6")
}

/// Runs `forget` beside the running coordinator.
fn forget(cluster: &Cluster, member: &str, undo: bool) -> Value {
    let config = ["--json", "--config", "coordinator/coordinator.toml"];
    let args = [&["__coordinator", "forget", member][..], if undo { &["--undo"] } else { &[] }, &config].concat();
    json(&cluster.must(&args))
}

/// The figures of the alerts `ConclavePartyGone` and `ConclaveJobWaits` on a party.
fn alerts(cluster: &Cluster, party: &str) -> [Option<f64>; 2] {
    let page = page(cluster, "coordinator");
    ["conclave_coordinator_party_attached", "conclave_coordinator_waiting_since_timestamp_seconds"]
        .map(|name| page.get(&format!("{name}{{party=\"{party}\"}}")).map(|value| value.parse().expect("a number")))
}

fn has_draws(status: &Value) -> bool {
    status["draws"].as_u64() > Some(20)
}

/// Waits for the end of a job whose member was retired. Its draws are kept, and its analyst reads who was retired.
fn check_the_end(cluster: &Cluster, job: &str, member: &str) {
    let status = cluster.wait_status(job, Duration::from_secs(10), "the end", |status| status["state"] == "failed");
    let error = status["error"].as_str().expect("a reason");
    assert!(error.contains(&format!("retired {member}")) && status["error_code"] == "policy", "{status}");
    let summary = cluster.run(&["summary", job, "--json"]);
    let result = json(std::str::from_utf8(&summary.stdout).expect("UTF-8"));
    assert!(summary.status.code() == Some(3) && result["draws_per_chain"].as_u64() > Some(20), "{result}");
}

/// Submits a job once the coordinator has read that its members are taken back; returns its id.
fn submitted(cluster: &Cluster, job: &str) -> String {
    let (path, mut id) = (cluster.write_job(job), None);
    until("the coordinator to read the list", SOON, || {
        let output = cluster.run(&["submit", &path, "--json"]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        id = output.status.success().then(|| json(&text)["job"].as_str().expect("an id").to_owned());
        id.is_some()
    });
    id.expect("a submitted job")
}

/// Returns what the analyst reads of a refused submission.
fn refused(cluster: &Cluster, job: &str) -> String {
    let output = cluster.run(&["submit", &cluster.write_job(job)]);
    assert_eq!(output.status.code(), Some(3));
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn a_retired_member_ends_its_jobs_and_clears_its_alerts_until_it_is_taken_back() {
    let mut cluster = Cluster::new(EXE);
    cluster.coordinator_extra = ANY_PORT;
    restart_coordinator(&mut cluster);
    for (seed, name) in NAMES.iter().enumerate() {
        let party = enrol(&mut cluster, name, &study::records(300, seed as u64));
        cluster.start_party(party);
    }
    let both = cluster.submit_only(&job(&NAMES, 100_000));
    cluster.wait_status(&both, SOON, "some draws", has_draws);
    cluster.kill_party(1);
    cluster.wait_status(&both, SOON, "the pause", |status| status["waiting_for"] == json!(["hospital-b"]));
    until("both alerts", SOON, || matches!(alerts(&cluster, "hospital-b"), [Some(0.0), Some(_)]));

    let changed = |member: &str, retired: bool, changed: bool| json!({"member": member, "retired": retired, "changed": changed});
    assert_eq!(forget(&cluster, "party/hospital-b", false), changed("party/hospital-b", true, true));
    check_the_end(&cluster, &both, "party/hospital-b");
    until("no alert", SOON, || alerts(&cluster, "hospital-b") == [None, None]);
    assert_eq!(alerts(&cluster, "hospital-a")[0], Some(1.0));
    assert!(refused(&cluster, &job(&NAMES, 20)).contains("retired party/hospital-b"));
    // Others are not affected, and a restart forgets nothing.
    assert_eq!(cluster.submit(&job(&NAMES[..1], 20))["stopped_by"], "draws");
    restart_coordinator(&mut cluster);
    assert!(refused(&cluster, &job(&NAMES, 20)).contains("retired party/hospital-b"));
    assert_eq!(alerts(&cluster, "hospital-b"), [None, None]);

    assert_eq!(forget(&cluster, "party/hospital-b", true), changed("party/hospital-b", false, true));
    assert_eq!(forget(&cluster, "party/hospital-b", true), changed("party/hospital-b", false, false));
    cluster.start_party(1);
    until("the party on the page", SOON, || alerts(&cluster, "hospital-b")[0] == Some(1.0));
    let alices = submitted(&cluster, &job(&NAMES, 100_000));
    cluster.wait_status(&alices, SOON, "some draws", has_draws);

    // The analyst, too.
    forget(&cluster, "analyst/alice", false);
    check_the_end(&cluster, &alices, "analyst/alice");
    assert!(refused(&cluster, &job(&NAMES, 20)).contains("retired analyst/alice"));
    forget(&cluster, "analyst/alice", true);
    let last = submitted(&cluster, &job(&NAMES, 20));
    cluster.wait_status(&last, SOON, "the end", |status| status["state"] == "finished");
    let wrong = cluster.run(&["__coordinator", "forget", "hospital-b", "--config", "coordinator/coordinator.toml"]);
    assert_eq!(wrong.status.code(), Some(2));
}
