//! SIGTERM in the middle of a job: work in progress is finished, nothing is lost, and the job resumes afterwards.

use conclave_tests::books::{LedgerCopy, Replay};
use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::wait::{SOON, until};
use serde_json::Value;

use super::{EXE, enrol, restart_coordinator};

const NAMES: [&str; 2] = ["hospital-a", "hospital-b"];
/// More rounds than pass before the last daemon is stopped; no round passes while a daemon is away.
const SAMPLER: &str = "chains = 2\ndraws = 1000\nwarmup = 50\nseed = 7\nlocate_share = 0.05";

fn running() -> (Cluster, String) {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in NAMES.iter().enumerate() {
        let party = enrol(&mut cluster, name, &study::records(300, seed as u64));
        // One party for each durability mode.
        cluster.configure_party(party, ["durability = \"strict\"", "durability = \"reserve\""][party]);
        cluster.start_party(party);
    }
    let job = cluster.submit_only(&study::job(&NAMES, SAMPLER, "epsilon = 980\ndelta = 1e-6"));
    (cluster, job)
}

fn wait_for_rounds(cluster: &Cluster, more: u64) {
    let before = cluster.rounds();
    until("rounds", SOON, || cluster.rounds() >= before + more);
}

/// Checks a party that has stopped cleanly: every charge has an answer, and the ledger's last entry is the stop.
fn assert_in_order(cluster: &Cluster, party: usize) {
    let ledger = cluster.ledger(party);
    let unanswered =
        "SELECT count(*) FROM charges LEFT JOIN answers ON answers.charge = charges.seq WHERE answers.charge IS NULL";
    let unanswered: u64 = ledger.query_row(unanswered, [], |row| row.get(0)).expect("a count");
    let last: String =
        ledger.query_row("SELECT kind FROM events ORDER BY seq DESC LIMIT 1", [], |row| row.get(0)).expect("an event");
    assert_eq!((unanswered, last.as_str()), (0, "stop"), "party {party}");
}

fn check_the_end(cluster: &Cluster, job: &str) {
    cluster.wait_status(job, 3 * SOON, "the end", |status: &Value| status["state"] == "finished");
    let result = json(&cluster.must(&["summary", job, "--json"]));
    assert_eq!(result["stopped_by"], "draws");
    let replay = Replay::of(&cluster.store(), job);
    assert!(replay.complete);
    replay.assert_equals_zarr(result["draws"].as_str().expect("a path").as_ref());
    for party in 0..NAMES.len() {
        let beyond = replay.assert_in_ledger(&LedgerCopy::of(&cluster.ledger(party), job), party);
        assert!(beyond.is_empty(), "party {party} was charged for queries in no recorded round: {beyond:?}");
    }
}

#[test]
fn a_party_finishes_its_work_in_progress() {
    let (mut cluster, job) = running();
    for party in [0, 1] {
        wait_for_rounds(&cluster, 20);
        cluster.signal_party(party, "TERM");
        assert_eq!(cluster.wait_party_exit(party).code(), Some(0), "{}", cluster.log(NAMES[party]));
        assert_in_order(&cluster, party);
        let paused = cluster.wait_status(&job, SOON, "the pause", |status| status["state"] == "paused");
        assert_eq!(paused["waiting_for"][0], NAMES[party]);
        cluster.start_party(party);
    }
    wait_for_rounds(&cluster, 1);
    check_the_end(&cluster, &job);
}

#[test]
fn the_coordinator_resumes_where_it_stopped() {
    let (mut cluster, job) = running();
    for _ in 0..2 {
        wait_for_rounds(&cluster, 20);
        restart_coordinator(&mut cluster);
    }
    wait_for_rounds(&cluster, 1);
    check_the_end(&cluster, &job);
}

/// The other side is suspended, so that the farewell takes a while.
#[test]
fn a_second_signal_ends_a_daemon_immediately() {
    const TERMINATED: i32 = 128 + 15;
    let (mut cluster, _) = running();
    wait_for_rounds(&cluster, 5);
    let stopping = |log: &str| log.matches("stopping").count();
    cluster.signal_coordinator("STOP");
    cluster.signal_party(0, "TERM");
    until("the first word", SOON, || stopping(&cluster.log(NAMES[0])) == 1);
    cluster.signal_party(0, "TERM");
    assert_eq!(cluster.wait_party_exit(0).code(), Some(TERMINATED), "{}", cluster.log(NAMES[0]));
    cluster.signal_coordinator("CONT");

    cluster.start_party(0);
    wait_for_rounds(&cluster, 5);
    cluster.signal_party(1, "STOP");
    cluster.signal_coordinator("TERM");
    until("the first word", SOON, || cluster.log("coordinator").lines().any(|line| line.ends_with("stopping")));
    cluster.signal_coordinator("TERM");
    assert_eq!(cluster.wait_coordinator_exit().code(), Some(TERMINATED), "{}", cluster.log("coordinator"));
    cluster.signal_party(1, "CONT");
    // A resumed job needs none of it: the cut-off state is the same as after a kill.
    cluster.start_coordinator();
    wait_for_rounds(&cluster, 5);
}
