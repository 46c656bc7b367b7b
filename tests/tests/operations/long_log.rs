//! A process that reads the store or a ledger and does not end lengthens its write-ahead log: the daemon and the doctor name the
//! process, and the log is emptied once it has ended.

use std::time::{Duration, Instant};

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use rusqlite::Connection;

use crate::EXE;

/// Lengths from which the logs of the store and of a ledger are long.
const LONG: [u64; 2] = [16 << 20, 64 << 20];
const PATIENCE: Duration = Duration::from_secs(120);

/// Begins a read that stays open.
fn stay(reader: Connection) -> Connection {
    reader.execute_batch("BEGIN").expect("a transaction");
    let entries: i64 = reader.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).expect("a count");
    assert_eq!(entries, 1);
    reader
}

/// Waits until `test` holds for the lengths of both logs.
fn wait(cluster: &Cluster, what: &str, test: impl Fn([u64; 2]) -> bool) {
    let length = |name: &str| cluster.path(name).metadata().map_or(0, |found| found.len());
    let end = Instant::now() + PATIENCE;
    loop {
        let lengths = ["coordinator/coordinator.sqlite-wal", "a/ledger.sqlite-wal"].map(length);
        if test(lengths) {
            return;
        }
        assert!(Instant::now() < end, "{what}: {lengths:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_process_that_keeps_a_log_long_is_named_until_it_ends() {
    let mut cluster = Cluster::new(EXE);
    let a = cluster.enrol_study("a", &study::records(100, 1), 990.0);
    cluster.start_party(a);
    let long_messages = study::long_job("a").replace("chains = 2", "chains = 256").replace("epsilon = 300", "epsilon = 900");
    let job = cluster.submit_only(&long_messages);
    cluster.wait_resumed(&job, PATIENCE);
    let readers = [stay(cluster.store()), stay(cluster.ledger(a))];
    wait(&cluster, "both logs to be long", |lengths| lengths.iter().zip(LONG).all(|(length, long)| *length >= long));

    // This process is the reader; each doctor is a third one.
    let named = format!("process {} (", std::process::id());
    for doctor in [
        ["__coordinator", "doctor", "--config", "coordinator/coordinator.toml"],
        ["__party", "doctor", "--config", "a/party.toml"],
    ] {
        let printed = json(&String::from_utf8(cluster.run(&[&doctor[..], &["--json"]].concat()).stdout).expect("UTF-8"));
        let finding = printed["checks"].as_array().and_then(|checks| checks.iter().find(|check| check["code"] == "log"));
        let found = finding.and_then(|finding| finding["found"].as_str()).unwrap_or_else(|| panic!("no finding: {printed}"));
        let own = [cluster.coordinator_pid(), cluster.party_pid(a)].map(|pid| format!("process {pid} ("));
        assert!(found.contains(&named) && !own.iter().any(|own| found.contains(own)), "{found}");
    }
    let end = Instant::now() + PATIENCE;
    for (daemon, words) in [("coordinator", "the store's log can't be emptied"), ("a", "the ledger's log can't be emptied")] {
        while !cluster.log(daemon).lines().any(|line| line.contains(words) && line.contains(&named)) {
            assert!(Instant::now() < end, "{daemon} does not name the reader: {}", cluster.log(daemon));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    // Neither needs a write to notice that the reader has gone.
    cluster.must(&["cancel", &job]);
    drop(readers);
    wait(&cluster, "both logs to be emptied", |lengths| lengths.iter().all(|length| *length < 1 << 20));
}
