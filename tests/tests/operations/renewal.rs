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
