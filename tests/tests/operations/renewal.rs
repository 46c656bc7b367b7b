//! A member's certificate is renewed while its daemon runs.

use std::fs;
use std::time::Duration;

use conclave_tests::cluster::Cluster;
use conclave_tests::study;

use crate::EXE;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_party_gets_a_new_certificate_and_a_new_key_while_a_job_runs() {
    let mut cluster = Cluster::new(EXE);
    let a = cluster.enrol_study("a", &study::records(200, 1), 400.0);
    cluster.start_party(a);
    let job = cluster.submit_only(&study::long_job("a"));
    cluster.wait_resumed(&job, PATIENCE);

    let file = |name: &str| fs::read_to_string(cluster.path("a/identity").join(name)).expect("a file");
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    cluster.must(&["__party", "renew", "--config", "a/party.toml"]);
    cluster.must(&["ca", "sign", "a/identity/request.pem", "--ca", "ca", "--out", "one"]);
    cluster.must(&["__party", "install", "one/certificate.pem", "--config", "a/party.toml"]);
    assert!(file("certificate.pem") != certificate && file("key.pem") == key);

    cluster.must(&["__party", "renew", "--new-key", "--config", "a/party.toml"]);
    cluster.must(&["ca", "sign", "a/identity/request.pem", "--ca", "ca", "--out", "two"]);
    assert_eq!(file("key.pem"), key, "the key in use stays until its successor's certificate is here");
    cluster.must(&["__party", "install", "two/certificate.pem", "--ca", "two/ca.pem", "--config", "a/party.toml"]);
    assert!(file("key.pem") != key && !cluster.path("a/identity/key.next.pem").exists());
    // A certificate for the previous key is refused and changes nothing.
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let refused = cluster.run(&["__party", "install", "one/certificate.pem", "--config", "a/party.toml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    assert!(file("certificate.pem") == certificate && file("key.pem") == key);

    // The party keeps working, dials again with its new certificate, and is the same party with the same budget.
    cluster.wait_resumed(&job, PATIENCE);
    cluster.kill_coordinator();
    cluster.start_coordinator();
    cluster.wait_resumed(&job, PATIENCE);
    cluster.must(&["__party", "doctor", "--config", "a/party.toml"]);
    // The list of revoked certificates ends its access.
    let printed = cluster.must(&["ca", "revoke", "two/certificate.pem", "--list", "revoked.txt", "--reason", "sold"]);
    assert!(printed.contains("a certificate of party/a is revoked"), "{printed}");
}

/// A party that was revoked by the serial number of its certificate is known as revoked after a restart of the coordinator, until it
/// attaches with another certificate.
#[test]
fn a_revocation_by_serial_number_is_named_after_a_restart() {
    let mut cluster = Cluster::new(EXE);
    cluster.kill_coordinator();
    fs::write(cluster.path("coordinator/revoked.txt"), "").expect("a list");
    cluster.coordinator_extra = "revoked = \"revoked.txt\"\n";
    cluster.start_coordinator();
    let a = cluster.enrol_study("a", &study::records(200, 1), 400.0);
    cluster.start_party(a);
    let job = cluster.submit_only(&study::long_job("a"));
    cluster.wait_resumed(&job, PATIENCE);
    cluster.must(&["ca", "revoke", "a/identity/certificate.pem", "--list", "coordinator/revoked.txt", "--reason", "sold"]);
    let names_it = |status: &serde_json::Value| {
        let reason = status["waiting_reason"].as_str().unwrap_or_default();
        reason.contains("a: not connected: its certificate is revoked at the coordinator")
    };
    cluster.wait_status(&job, PATIENCE, "the reason of the wait", names_it);

    cluster.kill_coordinator();
    cluster.start_coordinator();
    cluster.wait_status(&job, PATIENCE, "the reason after a restart", names_it);

    // Its next certificate is another one.
    cluster.kill_party(a);
    cluster.must(&["__party", "renew", "--config", "a/party.toml"]);
    cluster.must(&["ca", "sign", "a/identity/request.pem", "--ca", "ca", "--renew"]);
    cluster.start_party(a);
    cluster.wait_resumed(&job, PATIENCE);
    cluster.kill_party(a);
    let unnamed = cluster.wait_status(&job, PATIENCE, "the wait for the party", |status| {
        status["waiting_reason"].as_str().is_some_and(|reason| reason.contains("a: not connected"))
    });
    assert!(!names_it(&unnamed), "{unnamed}");
}

#[test]
fn a_dialling_member_is_warned_before_its_certificate_expires() {
    let mut cluster = Cluster::new(EXE);
    let jobs = |cluster: &Cluster| {
        let output = cluster.run(&["jobs", "--json"]);
        assert!(output.status.success());
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    assert_eq!(jobs(&cluster), "");
    cluster.must(&["ca", "request", "--renew", "--out", "alice"]);
    cluster.must(&["ca", "sign", "alice/request.pem", "--ca", "ca", "--renew", "--days", "20"]);
    assert!(jobs(&cluster).contains("expires in 19 days"), "{}", jobs(&cluster));
    let shown = cluster.must(&["ca", "show", "alice"]);
    assert!(shown.contains("19 days left: renew it"), "{shown}");
    cluster.kill_coordinator();
}

/// The consortium's CA is replaced by the documented procedure. Earlier jobs can still be verified: by name, and from the folder of
/// retired CAs. A retired CA signs for no new job and no connection.
#[test]
fn jobs_signed_before_a_rotation_of_the_ca_can_be_verified() {
    let mut cluster = Cluster::new(EXE);
    let a = cluster.enrol_study("a", &study::records(150, 1), 400.0);
    cluster.start_party(a);
    let sampler = "chains = 2\ndraws = 20\nwarmup = 2\nseed = 4";
    let text = study::job(&["a"], sampler, "epsilon = 20\ndelta = 1e-6");
    let id = |result: serde_json::Value| result["job"].as_str().expect("an id").to_owned();
    let earlier = id(cluster.submit(&text));
    let verify = |cluster: &Cluster, job: &str, more: &[&str]| {
        let output = cluster.run(&[&["__party", "verify", job, "--config", "a/party.toml"], more].concat());
        let printed = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(printed).expect("UTF-8"))
    };
    assert_eq!(verify(&cluster, &earlier, &[]).0, Some(0));

    cluster.must(&["ca", "init", "--out", "second"]);
    let read = |cluster: &Cluster, name: &str| fs::read_to_string(cluster.path(name)).expect("a file");
    let (old, new) = (read(&cluster, "ca/ca.pem"), read(&cluster, "second/ca.pem"));
    fs::copy(cluster.path("alice/certificate.pem"), cluster.path("old-alice.pem")).expect("a copy");
    let members = ["coordinator/identity", "a/identity", "alice"];
    let trust = |cluster: &Cluster, cas: &str| {
        members.iter().for_each(|member| fs::write(cluster.path(member).join("ca.pem"), cas).expect("a file"));
    };
    trust(&cluster, &format!("{old}{new}"));
    cluster.must(&["__party", "renew", "--config", "a/party.toml"]);
    for member in ["coordinator/identity", "alice"] {
        cluster.must(&["ca", "request", "--renew", "--out", member]);
    }
    for (member, more) in members.iter().zip([&["--coordinator"][..], &[], &[]]) {
        let request = format!("{member}/request.pem");
        cluster.must(&[&["ca", "sign", &request, "--ca", "second", "--renew"], more].concat());
    }
    trust(&cluster, &new);
    cluster.kill_party(a);
    cluster.kill_coordinator();
    cluster.start_coordinator();
    cluster.start_party(a);

    let (code, printed) = verify(&cluster, &earlier, &[]);
    assert!(code == Some(3) && printed.contains("--ca") && printed.contains("retired-ca/"), "{code:?}: {printed}");
    let (code, printed) = verify(&cluster, &earlier, &["--ca", "ca/ca.pem"]);
    assert!(code == Some(0) && printed.contains("retired CA in ca/ca.pem"), "{code:?}: {printed}");
    assert_eq!(verify(&cluster, &earlier, &["--ca", "nowhere.pem"]).0, Some(2));
    // A CA that has signed nobody does not help.
    cluster.must(&["ca", "init", "--out", "third"]);
    assert_eq!(verify(&cluster, &earlier, &["--ca", "third/ca.pem"]).0, Some(3));
    let retired = cluster.path("a/identity/retired-ca");
    fs::create_dir(&retired).expect("a folder");
    fs::copy(cluster.path("third/ca.pem"), retired.join("2025.pem")).expect("a copy");
    fs::copy(cluster.path("ca/ca.pem"), retired.join("2026.pem")).expect("a copy");
    let (code, printed) = verify(&cluster, &earlier, &[]);
    assert!(code == Some(0) && printed.contains("retired-ca/2026.pem"), "{code:?}: {printed}");

    let later = id(cluster.submit(&text.replacen("seed = 4", "seed = 5", 1)));
    let (code, printed) = verify(&cluster, &later, &[]);
    assert!(code == Some(0) && !printed.contains("retired"), "{code:?}: {printed}");
    // The retired CA admits no connection: the analyst's earlier certificate is refused.
    fs::copy(cluster.path("old-alice.pem"), cluster.path("alice/certificate.pem")).expect("a copy");
    assert_ne!(cluster.run(&["jobs"]).status.code(), Some(0));
}
