//! `conclave-party doctor` as an owner uses it: before the party runs, while it works, and with each of the usual faults.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use conclave_tests::books::charges;
use conclave_tests::cluster::{Cluster, json};
use conclave_tests::study;

use crate::EXE;

fn enrolled() -> Cluster {
    let mut cluster = Cluster::new(EXE);
    cluster.enrol_study("a", &study::records(200, 1), 400.0);
    cluster
}

/// Returns the exit code, the result of each check (the worst of its findings), and the printed text.
fn examine(cluster: &Cluster) -> (Option<i32>, BTreeMap<String, String>, String) {
    let output = cluster.run(&["__party", "doctor", "--config", "a/party.toml", "--json"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let rank = |result: &str| ["skipped", "ok", "warn", "fail"].iter().position(|r| *r == result).expect("a result");
    let mut results: BTreeMap<String, String> = BTreeMap::new();
    for check in json(&text)["checks"].as_array().expect("checks") {
        let (code, result) = (check["code"].as_str().expect("a code"), check["result"].as_str().expect("a result"));
        let remedy = check["remedy"].as_str().expect("a remedy");
        assert_eq!(remedy.is_empty(), ["ok", "skipped"].contains(&result), "{check}");
        let worst = results.entry(code.to_owned()).or_insert_with(|| result.to_owned());
        if rank(result) > rank(worst) {
            result.clone_into(worst);
        }
    }
    (output.status.code(), results, text)
}

#[test]
fn a_party_in_order_passes_before_it_runs_and_while_it_works() {
    let mut cluster = enrolled();
    let (code, results, text) = examine(&cluster);
    assert_eq!(code, Some(0), "{text}");
    for check in ["config", "identity", "name", "tcp", "tls", "clock", "coordinator", "data", "columns", "ledger", "budget"] {
        assert_eq!(results.get(check).map(String::as_str), Some("ok"), "{check}: {text}");
    }
    assert_eq!((results["daemon"].as_str(), results["bounds"].as_str()), ("skipped", "skipped"), "{text}");
    assert!(!cluster.path("a/identity/ledger-head").exists(), "it creates nothing");

    cluster.start_party(0);
    let sampler = "chains = 2\ndraws = 100000\nwarmup = 2\nseed = 5\nproposal = { kind = \"guided\", radius = 0.001 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let job = cluster.submit_only(&study::job(&["a"], sampler, "epsilon = 300\ndelta = 1e-6"));
    let draws = |status: &serde_json::Value| status["draws"].as_u64().unwrap_or(0);
    let before = cluster.wait_status(&job, Duration::from_secs(60), "some draws", |s| draws(s) > 5);
    let (code, results, text) = examine(&cluster);
    assert_eq!(code, Some(0), "{text}");
    for check in ["daemon", "ledger", "head", "growth", "tls", "coordinator"] {
        assert_eq!(results.get(check).map(String::as_str), Some("ok"), "{check}: {text}");
    }
    // Bounds of 20 to 80 are this study's own extremes, so the doctor warns about them.
    assert_eq!(results["bounds"], "warn", "{text}");
    // The party has continued under the same attachment.
    cluster.wait_status(&job, Duration::from_secs(60), "more draws", |s| draws(s) > draws(&before) + 5);
    let log = cluster.log("coordinator");
    assert_eq!((log.matches(" attached").count(), log.matches(" detached").count()), (1, 0), "{log}");

    cluster.kill_party(0);
    let spent = charges(&cluster.ledger(0));
    let plain = cluster.must(&["__party", "doctor", "--config", "a/party.toml"]);
    assert!(plain.starts_with("Check ") && plain.contains("How to fix") && plain.contains("do not share them"), "{plain}");
    assert_eq!(charges(&cluster.ledger(0)), spent, "it spends nothing");
}

#[test]
fn each_fault_is_named_and_the_other_checks_still_run() {
    let mut cluster = enrolled();
    let config = fs::read_to_string(cluster.path("a/party.toml")).expect("a configuration");
    let write = |text: &str| fs::write(cluster.path("a/party.toml"), text).expect("a configuration");
    let failed = |expected: &[&str], part: &str| {
        let (code, results, text) = examine(&cluster);
        let failed: Vec<&str> = results.iter().filter(|(_, r)| *r == "fail").map(|(code, _)| code.as_str()).collect();
        assert_eq!((code, failed.as_slice()), (Some(1), expected), "{text}");
        assert!(text.contains(part), "{part:?} is not in {text}");
        results
    };
    write(&config.replace("127.0.0.1", "nowhere.invalid"));
    assert_eq!(failed(&["name"], "getent")["ledger"], "ok");
    // The machine is the right one, but the certificate does not cover this name of it.
    write(&config.replace("127.0.0.1", "localhost"));
    failed(&["coordinator", "tls"], "It is for conclave://coordinator/main, 127.0.0.1");
    write(&config.replace("columns = [", "columns = [\"weight\", "));
    failed(&["data"], "weight");
    write(&config.replace("epsilon = 400", "epsilon = 401"));
    failed(&["ledger"], "restore the configuration");
    write("name = 7");
    failed(&["config"], "name");
    write(&config);

    let key = cluster.path("a/identity/key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("a mode");
    failed(&["permissions"], "chmod 600");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");

    let certificate = cluster.path("a/identity/certificate.pem");
    let (good, aside) = (fs::read(&certificate).expect("a certificate"), cluster.path("aside.pem"));
    fs::rename(&certificate, &aside).expect("moved");
    assert_eq!(failed(&["identity"], "request.pem")["tcp"], "ok");
    cluster.must(&["ca", "sign", "a/identity/request.pem", "--ca", "ca", "--days", "20"]);
    let (code, results, text) = examine(&cluster);
    assert_eq!((code, results["identity"].as_str()), (Some(0), "warn"), "{text}");
    fs::write(&certificate, good).expect("a certificate");

    cluster.kill_coordinator();
    let (code, results, text) = examine(&cluster);
    assert_eq!((code, results["tcp"].as_str(), results["tls"].as_str()), (Some(1), "fail", "skipped"), "{text}");
    assert_eq!((results["data"].as_str(), results["ledger"].as_str()), ("ok", "ok"), "{text}");
}
