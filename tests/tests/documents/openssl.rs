//! Certificates made with the openssl commands of the operator's guide, used by a real coordinator and a real party.

use std::fs;
use std::path::Path;
use std::process::Command;

use conclave_tests::cluster::{Cluster, PartySetup};
use conclave_tests::study;

use crate::EXE;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/operator/enrol-with-openssl.md");

/// Returns the shell blocks of the page.
fn blocks() -> Vec<String> {
    let page = fs::read_to_string(PAGE).expect("the operator's guide");
    page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

/// Runs a block in a folder; returns standard output.
fn run(block: &str, folder: &Path) -> String {
    fs::create_dir_all(folder).expect("a folder");
    let output = Command::new("sh").args(["-e", "-c", block]).current_dir(folder).output().expect("sh");
    assert!(output.status.success(), "{block}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn copy(from: &Path, to: &Path, files: &[&str]) {
    fs::create_dir_all(to).expect("a folder");
    for file in files {
        fs::copy(from.join(file), to.join(file)).unwrap_or_else(|e| panic!("{}: {e}", from.join(file).display()));
    }
}

#[test]
fn certificates_made_by_openssl_work() {
    let [authority, party, signed, coordinator] =
        blocks().try_into().expect("four blocks: CA, request, certificate, coordinator");
    let mut cluster = Cluster::new(EXE);
    cluster.kill_coordinator();
    let (ca, own) = (["ca.pem", "ca-key.pem"], ["certificate.pem", "key.pem", "ca.pem"]);
    let (made, a, main) = (cluster.path("openssl/ca"), cluster.path("openssl/a"), cluster.path("openssl/main"));
    run(&authority, &made);
    for folder in [&a, &main] {
        copy(&made, folder, &ca);
    }
    let fingerprint = run(&party, &a);
    run(&signed, &a);
    run(&coordinator, &main);

    // Our own commands work with these files: the CA's key signs alice's request, and the fingerprint is the same.
    copy(&made, &cluster.path("ca"), &ca);
    for file in ["certificate.pem", "ca.pem"] {
        fs::remove_file(cluster.path("alice").join(file)).expect("removed");
    }
    cluster.must(&["ca", "sign", "alice/request.pem", "--ca", "ca"]);
    let printed = cluster.must(&["ca", "sign", "openssl/a/request.pem", "--ca", "ca", "--out", "ours"]);
    let fingerprint_of_ours =
        printed.lines().find_map(|line| line.strip_prefix("Fingerprint of its key: ")).expect("a fingerprint").replace(' ', "");
    assert_eq!(fingerprint.split("= ").nth(1).map(str::trim), Some(fingerprint_of_ours.as_str()), "{fingerprint}");
    let shown = cluster.must(&["ca", "show", "openssl/main/certificate.pem"]);
    assert!(shown.contains("conclave://coordinator/main") && shown.contains("localhost, 127.0.0.1"), "{shown}");

    copy(&main, &cluster.path("coordinator/identity"), &own);
    cluster.start_coordinator();
    let data = study::write(&cluster.path("a.csv"), &study::csv(&study::records(100, 1)));
    let policy_extra = "reply_delay_ms = 0";
    let setup = PartySetup {
        name: "hospital-a",
        data: &data,
        columns: &study::COLUMNS,
        epsilon: 50.0,
        data_extra: "",
        budget_extra: "",
        policy_extra,
    };
    let index = cluster.enrol(&setup);
    copy(&a, &cluster.path("hospital-a/identity"), &own);
    cluster.start_party(index);
    let result =
        cluster.submit(&study::job(&["hospital-a"], "chains = 1\ndraws = 10\nwarmup = 1", "epsilon = 40.0\ndelta = 1e-6"));
    assert_eq!(result["stopped_by"], "draws", "{result}");
    // The same key signs the ledger's export.
    cluster.must(&["__party", "export", "--config", "hospital-a/party.toml", "--out", "a.jsonl"]);
    cluster.must(&["verify-ledger", "a.jsonl", "--ca", "ca/ca.pem"]);
}
