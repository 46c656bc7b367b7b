//! Permissions follow from the certificate, and from nothing else.

use std::fs;

use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::tls::{IdentityDir, connect};
use conclave_proto::v1;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::link_client::LinkClient;
use conclave_tests::books::charges;
use conclave_tests::cluster::Cluster;
use conclave_tests::study;

use crate::{cluster, stderr};

const JOB: (&str, &str) = ("chains = 1\ndraws = 10\nwarmup = 1", "epsilon = 40.0\ndelta = 1e-6");

/// Checked with the members' own programs.
#[test]
fn a_role_is_not_interchangeable() {
    let cluster = cluster(&["a"], 50, 50.0);
    let job = cluster.write_job(&study::job(&["a"], JOB.0, JOB.1));

    // A party's certificate cannot submit.
    let submit = |identity: &str| cluster.run(&["submit", &job, "--wait", "--identity", identity]);
    let output = submit("a/identity");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("conclave://party/a") && stderr(&output).contains("analyst"), "{}", stderr(&output));

    // An analyst's certificate cannot attach.
    fs::create_dir(cluster.path("posing")).expect("a folder");
    let config = fs::read_to_string(cluster.path("a/party.toml")).expect("a configuration");
    let config =
        config.replace("identity = \"identity/\"", "identity = \"../alice/\"").replace("name = \"a\"", "name = \"alice\"");
    study::write(&cluster.path("posing/party.toml"), &config);
    let output = cluster.run(&["__party", "run", "--config", "posing/party.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("conclave://analyst/alice") && stderr(&output).contains("party"), "{}", stderr(&output));

    assert_eq!(charges(&cluster.ledger(0)), 0);
}

/// Creates a folder with a certificate signed by another CA.
fn stranger(cluster: &Cluster, role: &str, name: &str) -> String {
    if !cluster.path("other-ca").exists() {
        cluster.must(&["ca", "init", "--name", "Another consortium", "--out", "other-ca"]);
    }
    let folder = format!("stranger-{name}");
    cluster.must(&["ca", "request", role, name, "--out", &folder]);
    cluster.must(&["ca", "sign", &format!("{folder}/request.pem"), "--ca", "other-ca"]);
    folder
}

#[test]
fn a_certificate_of_another_ca_is_refused() {
    let mut cluster = cluster(&["a"], 50, 50.0);
    let job = cluster.write_job(&study::job(&["a"], JOB.0, JOB.1));
    let ca = |folder: &str| fs::read_to_string(cluster.path(folder).join("ca.pem")).expect("a CA");

    let mallory = stranger(&cluster, "analyst", "mallory");
    let (ours, theirs) = (ca("ca"), ca("other-ca"));
    // With the other CA's ca.pem the stranger does not trust the coordinator. With ours, the stranger's own program finds that
    // the certificate is not of this consortium. With both, only the coordinator can detect it.
    for (ca, code) in [(theirs.clone(), 3), (ours.clone(), 2), (theirs.clone() + &ours, 3)] {
        fs::write(cluster.path(&mallory).join("ca.pem"), ca).expect("a file");
        let output = cluster.run(&["submit", &job, "--wait", "--identity", &mallory]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains("CA"), "{}", stderr(&output));
    }

    // The same for a party, which keeps trying: its owner may fix the fault.
    let eve = stranger(&cluster, "party", "a");
    fs::write(cluster.path(&eve).join("ca.pem"), theirs + &ours).expect("a file");
    cluster.kill_party(0);
    for file in ["certificate.pem", "key.pem", "ca.pem"] {
        fs::rename(cluster.path("a/identity").join(file), cluster.path("a").join(file)).expect("moved");
        fs::copy(cluster.path(&eve).join(file), cluster.path("a/identity").join(file)).expect("copied");
    }
    let mut child = cluster.start(&["__party", "run", "--config", "a/party.toml"]);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    child.kill().expect("SIGKILL");
    let output = child.wait_with_output().expect("its end");
    assert!(stderr(&output).contains("not attached") && stderr(&output).contains("certificate"), "{}", stderr(&output));
    let log = cluster.log("coordinator");
    assert_eq!(log.matches(" attached").count(), log.matches(" detached").count(), "no party is attached: {log}");
    assert_eq!(charges(&cluster.ledger(0)), 0);

    // With its own certificate it attaches again and works.
    for file in ["certificate.pem", "key.pem", "ca.pem"] {
        fs::rename(cluster.path("a").join(file), cluster.path("a/identity").join(file)).expect("moved");
    }
    cluster.start_party(0);
    assert_eq!(cluster.submit(&study::job(&["a"], JOB.0, JOB.1))["stopped_by"], "draws");
}

/// Programs changed to skip their own checks are refused by the coordinator's checks.
#[test]
fn the_coordinator_itself_refuses_the_wrong_role() {
    let cluster = cluster(&["a"], 50, 50.0);
    let spec_toml = study::job(&["a"], JOB.0, JOB.1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let dial = async |folder: &str| {
        connect(&cluster.url, &IdentityDir::load(&cluster.path(folder)).expect("an identity")).await.expect("a connection")
    };
    let (attach, submit): (Fault, Fault) = runtime.block_on(async {
        let hello = v1::Hello { protocol: conclave_proto::PROTOCOL, software: "changed".to_owned(), oldest: 0 };
        let frame = v1::PartyFrame { body: Some(v1::party_frame::Body::Hello(hello)) };
        let attach = LinkClient::new(dial("alice").await).attach(tokio_stream::iter([frame])).await.err();
        let submit =
            JobsClient::new(dial("a/identity").await).submit(v1::SubmitRequest { spec_toml, submission: None }).await.err();
        (from_status(&attach.expect("a refusal")), from_status(&submit.expect("a refusal")))
    });
    for (fault, role) in [(attach, "party"), (submit, "analyst")] {
        assert_eq!(fault.code, ErrorCode::Unauthenticated, "{fault}");
        assert!(fault.message.contains(role), "{fault}");
    }
    assert_eq!(charges(&cluster.ledger(0)), 0);
}
