//! Signals that stop no daemon, a configuration reload, and a party that hangs.

use std::fs;

use conclave_tests::cluster::Cluster;
use conclave_tests::study;
use conclave_tests::wait::{SOON, until};

use crate::EXE;

const SAMPLER: &str = "chains = 1\ndraws = 30\nwarmup = 2";
const PRIVACY: &str = "epsilon = 40\ndelta = 1e-6";

fn cluster() -> Cluster {
    let mut cluster = Cluster::new(EXE);
    let party = cluster.enrol_study("a", &study::records(200, 1), 400.0);
    cluster.start_party(party);
    cluster
}

fn change(cluster: &Cluster, file: &str, from: &str, to: &str) {
    let path = cluster.path(file);
    let text = fs::read_to_string(&path).expect("a configuration");
    assert!(text.contains(from), "{from:?} is not in {text}");
    fs::write(path, text.replacen(from, to, 1)).expect("a configuration");
}

/// Returns how often a daemon has reloaded its configuration.
fn reloads(cluster: &Cluster, name: &str) -> usize {
    cluster.log(name).lines().filter(|line| line.ends_with("the configuration has been read again")).count()
}

fn reload_party(cluster: &Cluster) {
    let before = reloads(cluster, "a");
    cluster.signal_party(0, "HUP");
    until("the configuration", SOON, || reloads(cluster, "a") > before);
}

#[test]
fn only_term_and_int_end_a_daemon() {
    let mut cluster = cluster();
    let pids = [cluster.party_pid(0), cluster.coordinator_pid()];
    let signals = ["HUP", "QUIT", "USR1", "USR2", "ALRM", "PIPE", "VTALRM", "PROF", "XCPU", "XFSZ", "PWR"];
    for name in signals {
        cluster.signal_party(0, name);
        cluster.signal_coordinator(name);
    }
    // There is one log line for each signal except SIGHUP, which has an effect.
    let ignored = |name: &str| cluster.log(name).matches("signal ignored").count();
    until("each signal", SOON, || ["a", "coordinator"].iter().all(|name| ignored(name) == signals.len() - 1));
    until("SIGHUP", SOON, || reloads(&cluster, "a") == 1 && reloads(&cluster, "coordinator") == 1);
    let result = cluster.submit(&study::job(&["a"], SAMPLER, PRIVACY));
    assert_eq!((result["stopped_by"].as_str(), [cluster.party_pid(0), cluster.coordinator_pid()]), (Some("draws"), pids));
    cluster.signal_party(0, "INT");
    assert_eq!(cluster.wait_party_exit(0).code(), Some(0), "{}", cluster.log("a"));
    cluster.signal_coordinator("INT");
    assert_eq!(cluster.wait_coordinator_exit().code(), Some(0), "{}", cluster.log("coordinator"));
}

#[test]
fn a_configuration_is_reloaded_as_far_as_possible() {
    let cluster = cluster();
    let job = cluster.write_job(&study::job(&["a"], SAMPLER, PRIVACY));
    let submitted = || cluster.run(&["submit", &job, "--wait", "--json", "--allow-inadequate"]).status.code();
    assert_eq!(submitted(), Some(0));

    // The policy: a model that is no longer admitted.
    change(&cluster, "a/party.toml", "[policy]", "[policy]\nmodels = [\"linear\"]");
    assert_eq!(submitted(), Some(0), "the changed file has not been reloaded");
    reload_party(&cluster);
    assert!(cluster.log("a").contains("the policy has been read again"), "{}", cluster.log("a"));
    assert_eq!(submitted(), Some(3));

    // The log's level.
    let debug = |name: &str| cluster.log(name).lines().filter(|line| line.contains("DEBUG")).count();
    assert_eq!((debug("a"), debug("coordinator")), (0, 0));
    for file in ["a/party.toml", "coordinator/coordinator.toml"] {
        let path = cluster.path(file);
        let text = fs::read_to_string(&path).expect("a configuration");
        fs::write(path, format!("log_level = \"debug\"\n{text}")).expect("a configuration");
    }
    reload_party(&cluster);
    cluster.signal_coordinator("HUP");
    until("the coordinator", SOON, || reloads(&cluster, "coordinator") == 1);
    let _ = submitted();
    until("lines of that level", SOON, || debug("a") > 0 && debug("coordinator") > 0);

    // Keys that need a restart are named and keep their values.
    change(&cluster, "a/party.toml", "epsilon = 400", "epsilon = 500");
    change(&cluster, "a/party.toml", "columns = [", "columns = [\"weight\", ");
    reload_party(&cluster);
    assert!(cluster.log("a").contains("these keys take effect after a restart: budget, policy.columns"), "{}", cluster.log("a"));
    // An invalid file changes nothing.
    change(&cluster, "a/party.toml", "models = [\"linear\"]", "model = [\"logistic\"]");
    cluster.signal_party(0, "HUP");
    until("the refusal", SOON, || cluster.log("a").contains("the configuration can't be used and is ignored"));
    assert_eq!(submitted(), Some(3));
    change(&cluster, "a/party.toml", "model = [\"logistic\"]", "models = [\"logistic\"]");
    reload_party(&cluster);
    assert_eq!(submitted(), Some(0));
}

/// A stopped process answers nothing and holds its locks: only its heartbeat distinguishes it from one that waits.
#[test]
fn a_party_that_hangs_is_unhealthy() {
    let cluster = cluster();
    let status = || cluster.run(&["__party", "status", "--brief", "--config", "a/party.toml"]);
    assert_eq!(status().status.code(), Some(0));
    cluster.signal_party(0, "STOP");
    until("the silence", SOON, || status().status.code() == Some(1));
    let said = status();
    assert!(String::from_utf8_lossy(&said.stdout).contains("hangs: process"), "{said:?}");
    let attached = cluster.run(&["__party", "status", "--attached", "--config", "a/party.toml"]);
    assert_eq!(attached.status.code(), Some(1));
    cluster.signal_party(0, "CONT");
    until("the heartbeat", SOON, || status().status.code() == Some(0));
}

/// A program piped into `head` exits successfully once `head` closes the pipe.
#[test]
fn a_closed_pipe_is_no_error() {
    let mut cluster = cluster();
    cluster.submit(&study::job(&["a"], "chains = 4\ndraws = 300\nwarmup = 2", "epsilon = 300\ndelta = 1e-6"));
    cluster.kill_party(0);
    let jobs = cluster.must(&["jobs", "--json"]);
    let id = conclave_tests::cluster::json(&jobs)["jobs"][0]["job"].as_str().expect("an id").to_owned();
    for args in [
        &["__party", "ledger", "--config", "a/party.toml"][..],
        &["__party", "ledger", "--json", "--config", "a/party.toml"],
        &["__party", "export", "--config", "a/party.toml"],
        &["__party", "budget", "--config", "a/party.toml"],
        &["__party", "doctor", "--help"],
        &["jobs"],
        &["jobs", "--json"],
        &["summary", &id, "--allow-inadequate"],
        &["account", "--help"],
    ] {
        let mut child = cluster.start(args);
        // There is no reader: the first write fails.
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("its end");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(0) && said.is_empty(), "{args:?}: {:?}, {said}", ended.status);
    }
}
