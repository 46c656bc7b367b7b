//! A reader that closes the pipe (`conclave jobs | head`) changes nothing: no panic, no message, and the same exit code.

use conclave_tests::cluster::Cluster;
use conclave_tests::study;

use super::{EXE, enrol};

const PARTY: [&str; 2] = ["--config", "hospital-a/party.toml"];
const COORDINATOR: [&str; 2] = ["--config", "coordinator/coordinator.toml"];

#[test]
fn a_reader_that_hangs_up_changes_nothing() {
    let mut cluster = Cluster::new(EXE);
    let party = enrol(&mut cluster, "hospital-a", &study::records(300, 1));
    cluster.start_party(party);
    let sampler = "chains = 2\ndraws = 300\nwarmup = 10\nseed = 3\nlocate_share = 0.05";
    let text = study::job(&["hospital-a"], sampler, "epsilon = 300\ndelta = 1e-6\n[plan]\nrecords = 300");
    let result = cluster.submit(&text);
    let (job, path) = (result["job"].as_str().expect("an id"), cluster.write_job(&text));
    let analyst: [&[&str]; 12] = [
        &["--help"],
        &["submit", "--help"],
        &["account", "--epsilon", "3", "--delta", "1e-6"],
        &["plan", &path],
        &["jobs"],
        &["jobs", "--json"],
        &["summary", job],
        &["summary", job, "--json"],
        &["summary", "no-such-job"],
        &["watch", job],
        &["budget"],
        &["ca", "show", "ca"],
    ];
    let owner: [&[&str]; 12] = [
        &["run", "--help"],
        &["run", "--check"],
        &["ledger"],
        &["ledger", "--json"],
        &["export"],
        &["budget"],
        &["jobs"],
        &["status"],
        &["status", "--json"],
        &["statement", job],
        &["verify", job],
        &["fingerprint"],
    ];
    let operator: [&[&str]; 6] = [
        &["run", "--help"],
        &["run", "--check"],
        &["doctor"],
        &["doctor", "--json"],
        &["health"],
        &["prune", "--older-than", "9", "--dry-run"],
    ];
    let commands = analyst.iter().map(|args| args.to_vec());
    let commands = commands.chain(owner.iter().map(|args| [&["__party"][..], args, &PARTY].concat()));
    let commands = commands.chain(operator.iter().map(|args| [&["__coordinator"][..], args, &COORDINATOR].concat()));
    for args in commands {
        let (read, unread) = (cluster.run(&args), cluster.run_unread(&args));
        let (expected, said) = (String::from_utf8_lossy(&read.stderr), String::from_utf8_lossy(&unread.stderr));
        assert!(!said.contains("panicked") && !said.contains("roken pipe"), "{args:?}: {said}");
        assert_eq!(
            (unread.status.code(), said.lines().count()),
            (read.status.code(), expected.lines().count()),
            "{args:?}: {said}"
        );
        assert!(!read.stdout.is_empty() || args.contains(&"no-such-job"), "{args:?} prints nothing: {expected}");
    }
}
