//! A party moved to another machine keeps working; one restored from a backup is locked.

use std::fs;
use std::path::Path;
use std::time::Duration;

use conclave_tests::books::charges;
use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use serde_json::Value;

use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);

fn running() -> (Cluster, String) {
    let mut cluster = Cluster::new(EXE);
    let a = cluster.enrol_study("a", &study::records(200, 1), 400.0);
    cluster.start_party(a);
    let job = cluster.submit_only(&study::long_job("a"));
    (cluster, job)
}

fn draws(status: &Value) -> u64 {
    status["draws"].as_u64().unwrap_or(0)
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let (from, to) = (entry.as_ref().expect("an entry").path(), to.join(entry.expect("an entry").file_name()));
        if from.is_dir() {
            copy_all(&from, &to);
        } else {
            fs::copy(&from, &to).expect("a copy");
        }
    }
}

#[test]
fn a_planned_move_of_party_and_coordinator_locks_nothing() {
    let (mut cluster, job) = running();
    cluster.wait_status(&job, PATIENCE, "some draws", |s| draws(s) > 5);
    // Stop, copy the whole folder, and start from the copy; the old folder is no longer used.
    cluster.signal_party(0, "TERM");
    assert!(cluster.wait_party_exit(0).success());
    copy_all(&cluster.path("a"), &cluster.path("moved"));
    fs::rename(cluster.path("a"), cluster.path("a-old")).expect("moved");
    fs::rename(cluster.path("moved"), cluster.path("a")).expect("moved");
    cluster.start_party(0);
    cluster.wait_resumed(&job, PATIENCE);
    cluster.signal_coordinator("TERM");
    assert!(cluster.wait_coordinator_exit().success());
    copy_all(&cluster.path("coordinator"), &cluster.path("moved"));
    fs::rename(cluster.path("coordinator"), cluster.path("coordinator-old")).expect("moved");
    fs::rename(cluster.path("moved"), cluster.path("coordinator")).expect("moved");
    cluster.start_coordinator();
    cluster.wait_resumed(&job, PATIENCE);
    let unlock = cluster.run(&["__party", "unlock", "--reason", "none", "--config", "a/party.toml"]);
    assert_ne!(unlock.status.code(), Some(0));
    assert!(!cluster.log("a").contains("restored from an older copy"), "{}", cluster.log("a"));
}

#[test]
fn a_restored_backup_is_locked_until_its_owner_states_a_reason() {
    let (mut cluster, job) = running();
    let before = cluster.wait_status(&job, PATIENCE, "some draws", |s| draws(s) > 5);
    let done = json(&cluster.must(&["__party", "backup", "--to", "copy.sqlite", "--config", "a/party.toml", "--json"]));
    assert!(done["entries"].as_u64() > Some(10) && cluster.path("copy.sqlite.consent").exists(), "{done}");
    let again = cluster.run(&["__party", "backup", "--to", "copy.sqlite", "--config", "a/party.toml"]);
    assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
    cluster.wait_status(&job, PATIENCE, "more draws", |s| draws(s) > draws(&before) + 20);
    cluster.kill_party(0);
    let newest = charges(&cluster.ledger(0));

    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(cluster.path(&format!("a/ledger.sqlite{suffix}")));
    }
    fs::copy(cluster.path("copy.sqlite"), cluster.path("a/ledger.sqlite")).expect("a copy");
    fs::copy(cluster.path("copy.sqlite.consent"), cluster.path("a/ledger.sqlite.consent")).expect("a copy");
    assert!(charges(&cluster.ledger(0)) < newest);
    let doctor = cluster.run(&["__party", "doctor", "--config", "a/party.toml"]);
    let printed = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.status.code() == Some(1) && printed.contains("unlock"), "{printed}");
    cluster.start_party(0);
    let paused = cluster.wait_status(&job, PATIENCE, "the pause", |s| s["state"] == "paused");
    cluster.kill_party(0);
    cluster.must(&["__party", "unlock", "--reason", "the disk died", "--config", "a/party.toml"]);
    cluster.start_party(0);
    cluster.wait_status(&job, PATIENCE, "the resumption", |s| s["state"] == "running" && draws(s) > draws(&paused) + 5);
}
