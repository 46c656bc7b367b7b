//! A rolling upgrade: daemons of this build and of the previous one work on the same job.
//!
//! `CONCLAVE_PREVIOUS` is the path of the previous build's `conclave`; `.ci/upgrade` builds it from the previous commit and runs
//! this test.

use std::time::{Duration, Instant};

use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::wait::SOON;

use crate::EXE;

const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
const CHAINS: usize = 2;
const DRAWS: usize = 6_000;

/// Waits for 300 more rounds: the job continues on the replaced daemon.
fn check_progress(cluster: &Cluster, what: &str) {
    let (from, end) = (cluster.rounds(), Instant::now() + SOON);
    while cluster.rounds() < from + 300 {
        assert!(Instant::now() < end, "{what}: no more than {} rounds after {from}", cluster.rounds());
        std::thread::sleep(Duration::from_millis(5));
    }
    let state: String = cluster.store().query_row("SELECT state FROM jobs", [], |row| row.get(0)).expect("a state");
    assert_eq!(state, "queued", "{what}: the job ended too soon to show anything");
}

#[test]
#[ignore = "needs the previous build: see .ci/upgrade"]
fn every_daemon_is_replaced_in_the_middle_of_a_job() {
    let previous = std::env::var("CONCLAVE_PREVIOUS").expect("CONCLAVE_PREVIOUS names the previous build's `conclave`");
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in NAMES.iter().enumerate() {
        // The previous build creates its ledger.
        cluster.use_build(name, &previous);
        let party = cluster.enrol_study(name, &study::records(400, seed as u64), 990.0);
        cluster.start_party(party);
    }
    let sampler = format!("chains = {CHAINS}\ndraws = {DRAWS}\nwarmup = 100\nseed = 7\nlocate_share = 0.05");
    // The model's arithmetic is the same in both builds, whatever protocol they speak.
    let job = study::job(&NAMES, &sampler, "epsilon = 980\ndelta = 1e-6");
    let linear = job
        .replace("kind = \"logistic\"", "kind = \"linear\"\nsd = 1.0")
        .replace("{ binary = true }\ntreated", "{ min = 0, max = 1 }\ntreated");
    let job = cluster.submit_only(&linear);
    check_progress(&cluster, "this coordinator with the previous parties");

    for (party, name) in NAMES.iter().enumerate() {
        cluster.kill_party(party);
        cluster.use_build(name, EXE);
        cluster.start_party(party);
        check_progress(&cluster, &format!("after the upgrade of {name}"));
    }
    // Downgrades the coordinator, as for an upgrade that is undone, and upgrades it again.
    cluster.kill_coordinator();
    cluster.use_build("coordinator", &previous);
    cluster.start_coordinator();
    check_progress(&cluster, "the previous coordinator with these parties");
    cluster.kill_coordinator();
    cluster.use_build("coordinator", EXE);
    cluster.start_coordinator();

    let status = cluster.wait_status(&job, Duration::from_secs(300), "the end", |s| s["state"] == "finished");
    assert_eq!(status["draws"], DRAWS, "{status}");
    let replay = Replay::of(&cluster.store(), &job);
    assert!(replay.complete);
    for party in 0..NAMES.len() {
        let beyond = replay.assert_in_ledger(&LedgerCopy::of(&cluster.ledger(party), &job), party);
        assert!(beyond.is_empty(), "charged and not in the log");
    }
    let result = json(&cluster.must(&["summary", &job, "--json"]));
    replay.assert_equals_zarr(result["draws"].as_str().expect("a path").as_ref());
    println!("{} rounds over five replacements", replay.rounds);
}
