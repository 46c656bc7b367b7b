//! A coordinator that is killed while it sends the roster, in real processes.

use std::time::Duration;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use conclave_tests::wait::{SOON, until};

use super::lab::secure;
use crate::EXE;

const NAMES: [&str; 3] = ["a", "b", "c"];

fn events(cluster: &Cluster, party: usize, kind: &str) -> u64 {
    let count = "SELECT count(*) FROM events WHERE kind = ?1";
    cluster.ledger(party).query_row(count, [kind], |row| row.get(0)).expect("a count")
}

fn kept(cluster: &Cluster) -> Vec<u8> {
    cluster.store().query_row("SELECT roster FROM rosters", [], |row| row.get(0)).expect("one roster")
}

/// Two parties have entered the roster and the third has not. After the restart the coordinator must send the same roster, since
/// the two parties would refuse another one for ever.
#[test]
fn a_coordinator_killed_between_two_rosters_sends_the_same_one_again() {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in (0..).zip(NAMES) {
        cluster.enrol_study(name, &study::records(150, seed), 500.0);
    }
    cluster.pin_all();
    (0..NAMES.len()).for_each(|party| cluster.start_party(party));
    // The roster is built once the last key, the first party's, has arrived. By then the third party is suspended.
    cluster.kill_party(0);
    let job = study::job(&NAMES, "chains = 2\ndraws = 40\nwarmup = 5\nseed = 4", "epsilon = 150\ndelta = 1e-6") + &secure(1);
    let job = cluster.submit_only(&job);
    let opened =
        |line: &str, party: &str| line.contains("job opened by the party") && line.contains(&format!("party=\"{party}\""));
    for party in ["b", "c"] {
        until("a party's key", SOON, || cluster.log("coordinator").lines().any(|line| opened(line, party)));
    }
    cluster.signal_party(2, "STOP");
    cluster.start_party(0);
    until("the roster at two parties", SOON, || [0, 1].iter().all(|party| events(&cluster, *party, "roster") == 1));
    let sent = kept(&cluster);
    cluster.kill_coordinator();
    cluster.kill_party(2);
    assert_eq!(events(&cluster, 2, "roster"), 0, "the third party has not entered it");
    assert_eq!(cluster.rounds(), 0);

    cluster.start_coordinator();
    cluster.start_party(2);
    cluster.wait_status(&job, Duration::from_secs(120), "the end", |status| status["state"] == "finished");
    let result = json(&cluster.must(&["summary", &job, "--json"]));
    assert_eq!(result["stopped_by"], "draws", "{result:#}");
    assert_eq!(kept(&cluster), sent, "the same bytes");
    for (party, name) in NAMES.into_iter().enumerate() {
        assert_eq!((events(&cluster, party, "mask-key"), events(&cluster, party, "roster")), (1, 1), "{name}");
        // Every party has that roster, and the masks cancel under it in every round.
        let report = json(&cluster.must(&["__party", "verify", &job, "--config", &format!("{name}/party.toml"), "--json"]));
        let holds = |check: &str| {
            let checks = report["checks"].as_array().expect("checks");
            checks.iter().any(|found| found["name"] == check && found["result"] == "holds")
        };
        assert!(holds("roster") && holds("sums") && holds("answers"), "{name}: {report:#}");
        assert_eq!(result["parties"][party]["queries"], conclave_tests::books::charges(&cluster.ledger(party)), "{name}");
    }
}
