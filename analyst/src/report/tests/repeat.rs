//! The section on checking and repeating the run.

use conclave_proto::v1::PartyStatus;

use super::Run;
use crate::report::repeat::{build, log_words, party_software};

#[test]
fn a_report_states_commit_log_and_software() {
    let mut run = Run::new(1, 2, 50, "");
    let party = |name: &str, software: &str| PartyStatus {
        name: name.to_owned(),
        software: software.to_owned(),
        ..PartyStatus::default()
    };
    run.status.parties = vec![party("a", "conclave-party 0.1.0"), party("<b>", "conclave-party 0.1.0"), party("c", "")];
    let page = run.page();
    for part in [
        "conclave-party 0.1.0 at <bdi>a</bdi>, <bdi>&lt;b&gt;</bdi>; not known at <bdi>c</bdi>, when they attached last",
        "SHA-256 of the job’s log: <code>ab12</code>",
        &build().into_string(),
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(log_words(None).into_string().contains("not known"));
    assert_eq!(party_software(&[]).into_string(), "not known");
    let commit = env!("BUILD_COMMIT");
    assert!(commit == "not known" || commit.len() >= 7, "{commit}");
}
