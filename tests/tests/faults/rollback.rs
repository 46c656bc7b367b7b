//! A ledger restored from an older copy, and a modified export, in real processes, as an owner, an analyst and an auditor see
//! them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;
use serde_json::Value;

use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);
/// The files of a ledger, except its key.
const FILES: [&str; 3] = ["ledger.sqlite", "ledger.sqlite-wal", "identity/ledger-head"];

/// Starts parties a and b, and a job with more draws than it will make.
fn running() -> (Cluster, String) {
    let mut cluster = Cluster::new(EXE);
    for (seed, name) in ["a", "b"].iter().enumerate() {
        let party = cluster.enrol_study(name, &study::records(200, seed as u64), 400.0);
        cluster.start_party(party);
    }
    let sampler = "chains = 2\ndraws = 100000\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.001 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let job = cluster.submit_only(&study::job(&["a", "b"], sampler, "epsilon = 300\ndelta = 1e-6"));
    (cluster, job)
}

fn draws(status: &Value) -> u64 {
    status["draws"].as_u64().unwrap_or(0)
}

fn copy(from: &Path, to: &Path) {
    for file in FILES {
        let (from, to) = (from.join(file), to.join(file));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        let _ = fs::remove_file(&to);
        if from.exists() {
            fs::copy(from, to).expect("a copy");
        }
    }
    let _ = fs::remove_file(to.join("ledger.sqlite-shm"));
}

fn charges(cluster: &Cluster) -> u64 {
    conclave_tests::books::charges(&cluster.ledger(0))
}

#[test]
fn an_older_ledger_pauses_the_job_until_its_owner_unlocks_it() {
    let (mut cluster, job) = running();
    let status = cluster.wait_status(&job, PATIENCE, "some draws", |s| draws(s) > 5);
    cluster.kill_party(0);
    let (home, older) = (cluster.path("a"), cluster.path("older"));
    copy(&home, &older);
    cluster.start_party(0);
    cluster.wait_status(&job, PATIENCE, "more draws", |s| draws(s) > draws(&status) + 20);
    cluster.kill_party(0);
    let newest = charges(&cluster);

    // The whole backup is restored, including the party's own head file: only the coordinator can detect it.
    copy(&older, &home);
    let restored = charges(&cluster);
    assert!(restored < newest, "{restored} {newest}");
    cluster.start_party(0);
    let is_behind =
        |s: &Value| s["state"] == "paused" && s["waiting_reason"].as_str().is_some_and(|r| r.contains("ledger is behind"));
    let paused = cluster.wait_status(&job, PATIENCE, "the pause", is_behind);
    assert_eq!(paused["waiting_for"], serde_json::json!(["a"]), "{paused}");
    assert!(paused["waiting_reason"].as_str().is_some_and(|r| r.starts_with("a: ")), "{paused}");
    let log = cluster.log("a");
    assert!(log.contains("conclave-party unlock") && log.contains("restored from an older copy"), "{log}");
    std::thread::sleep(Duration::from_millis(300));
    let later = cluster.status(&job);
    assert_eq!((charges(&cluster), draws(&later)), (restored, draws(&paused)), "it continued");

    // No unlock beside the running party or without a reason; a restart changes nothing.
    let unlock = |reason: &str| cluster_run(&cluster, &["unlock", "--reason", reason]);
    assert_ne!(unlock("the disk died").0, Some(0));
    assert_eq!(charges(&cluster), restored);
    cluster.kill_party(0);
    cluster.start_party(0);
    cluster.wait_status(&job, PATIENCE, "the pause again", is_behind);
    cluster.kill_party(0);
    assert_eq!(cluster_run(&cluster, &["unlock", "--reason", "  "]).0, Some(2));
    let (code, said) = cluster_run(&cluster, &["unlock", "--reason", "the disk died", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let act = json(&said);
    assert!(act["lost"]["seq"].as_u64() > act["from"]["seq"].as_u64(), "{act}");
    let (code, _) = cluster_run(&cluster, &["unlock", "--reason", "once more"]);
    assert_eq!(code, Some(2), "there is nothing left to unlock");

    // The job resumes, and the reason is recorded permanently.
    cluster.start_party(0);
    cluster.wait_status(&job, PATIENCE, "the resumption", |s| s["state"] == "running" && draws(s) > draws(&paused) + 5);
    let body: String =
        cluster.ledger(0).query_row("SELECT body FROM events WHERE kind = 'unlock'", [], |row| row.get(0)).expect("one unlock");
    assert_eq!(json(&body)["reason"], "the disk died");
    // The answers that left before are no evidence against the coordinator.
    let (code, report) = cluster_run(&cluster, &["verify", &job, "--json"]);
    let checks = json(&report)["checks"].as_array().expect("checks").clone();
    let answers = checks.iter().find(|check| check["name"] == "answers").expect("the check");
    assert!(code == Some(0) && answers["detail"].as_str().is_some_and(|d| d.contains("the owner's unlock of")), "{report}");
    cluster.must(&["__party", "export", "--config", "a/party.toml", "--out", "a.jsonl"]);
    cluster.must(&["verify-ledger", "a.jsonl", "--ca", "ca/ca.pem"]);
    assert!(fs::read_to_string(cluster.path("a.jsonl")).expect("an export").contains("the disk died"));
}

/// Runs one of party a's commands; returns the exit code and standard output.
fn cluster_run(cluster: &Cluster, args: &[&str]) -> (Option<i32>, String) {
    let all: Vec<&str> = ["__party"].iter().chain(args).chain(&["--config", "a/party.toml"]).copied().collect();
    let output = cluster.run(&all);
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn every_byte_of_an_exported_ledger_is_checked() {
    let (cluster, job) = running();
    cluster.wait_status(&job, PATIENCE, "some draws", |s| draws(s) > 5);
    // Exports while the party runs.
    for name in ["a", "b"] {
        let (config, out) = (format!("{name}/party.toml"), format!("{name}.jsonl"));
        cluster.must(&["__party", "export", "--config", &config, "--out", &out]);
    }
    let good = fs::read_to_string(cluster.path("a.jsonl")).expect("an export");
    let verify = |args: &[&str]| {
        let output = cluster.run(&[&["verify-ledger"], args].concat());
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = verify(&["a.jsonl", "--ca", "ca/ca.pem", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let report = json(&said);
    let entries = good.lines().count() as u64 - 2;
    assert_eq!((report["party"].as_str(), report["entries"].as_u64()), (Some("a"), Some(entries)), "{report}");
    assert_eq!(report["queries"].as_u64(), Some(good.lines().filter(|l| l.contains("\"entry\":\"charge\"")).count() as u64));

    let refused = |text: &str, part: &str| {
        fs::write(cluster.path("bad.jsonl"), text).expect("a file");
        let (code, said) = verify(&["bad.jsonl", "--ca", "ca/ca.pem"]);
        assert_eq!(code, Some(3), "{part}: {said}");
        assert!(said.contains("bad.jsonl"), "{part}: {said}");
        (code, said)
    };
    // One byte changed: of the header, of entries of each kind, of the signature, of the certificate, or at its end.
    let step = good.len() / 60;
    for at in (0..good.len()).step_by(step.max(1)).chain([good.len() - 3, good.len() - 5]) {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        refused(&String::from_utf8(bytes).expect("text"), &format!("byte {at} is changed"));
    }
    // Truncated: at the end of a line, within one, and without an entry.
    let lines: Vec<&str> = good.lines().collect();
    refused(&(lines[..lines.len() - 1].join("\n") + "\n"), "the signature is missing");
    refused(&(lines[..lines.len() / 2].join("\n") + "\n"), "half of it is missing");
    refused(&good[..good.len() / 2], "it ends within a line");
    refused("", "it is empty");
    let without =
        |gone: usize| lines.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, l)| format!("{l}\n")).collect::<String>();
    refused(&without(lines.len() / 2), "an entry is missing");
    refused(&without(lines.len() - 2), "the last entry is missing");
    // Signed by another party of the consortium, or by a key unknown to its CA.
    let other = fs::read_to_string(cluster.path("b.jsonl")).expect("an export");
    let seal = other.lines().last().expect("a line");
    let (code, said) = refused(&(lines[..lines.len() - 1].join("\n") + "\n" + seal + "\n"), "b's key has signed another ledger");
    assert!(code == Some(3) && said.contains("signature"), "{said}");
    cluster.must(&["ca", "init", "--out", "elsewhere"]);
    let (code, said) = verify(&["a.jsonl", "--ca", "elsewhere/ca.pem"]);
    assert!(code == Some(3) && said.contains("certificate"), "{said}");
    assert_eq!(verify(&["nowhere.jsonl"]).0, Some(2));
}
