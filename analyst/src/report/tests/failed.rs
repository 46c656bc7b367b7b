//! Reports of jobs without a result.

use conclave_proto::error::ErrorCode;
use conclave_proto::v1::PartyStatus;

use super::{Run, is_self_contained};
use crate::report::failed;

fn page(state: &str, code: &str, error: &str, queries: u64) -> String {
    let mut run = Run::new(2, 2, 10, "");
    let party = |name: &str| PartyStatus {
        name: name.to_owned(),
        records: 1234,
        queries,
        epsilon_spent: 0.0125 * queries as f64,
        epsilon_budget: 3.0,
        ..PartyStatus::default()
    };
    run.status.parties = vec![party("hospital-<a>"), party("b")];
    run.status.result_json = String::new();
    (run.status.state, run.status.error_code, run.status.error) = (state.to_owned(), code.to_owned(), error.to_owned());
    failed::page(&run.status, &run.source, &run.spec, None, "https://c.example:1")
}

/// The report of a failed job states the reason, the remedy, the request and the spending.
#[test]
fn a_failed_job_has_a_report() {
    let text = page("failed", "policy", "party b: `columns.x1` is not allowed <here>", 40);
    for part in [
        "Failed before its first draw",
        "`columns.x1` is not allowed &lt;here&gt;",
        "An owner’s policy forbids the job",
        "logistic regression of y on x1, x2",
        "epsilon 3 at delta 1e-6",
        "<data value=\"0.5\">0.500</data>",
        "stay charged",
        "hospital-&lt;a&gt;",
        "policy)",
        "kind = &quot;logistic&quot;",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(is_self_contained(&text) && !text.contains("<here>"));
    let text = page("cancelled", "", "", 0);
    assert!(
        text.contains("Cancelled before its first draw") && text.contains("nothing was spent") && !text.contains("stay charged")
    );
}

#[test]
fn every_code_has_a_remedy() {
    let remedy = |code: &str| {
        let text = page("failed", code, "x", 0);
        text.split("id=\"remedy\"").nth(1).unwrap().split("</p>").next().unwrap().to_owned()
    };
    for code in ErrorCode::ALL {
        assert!(remedy(code.as_str()).len() > 60, "{code}");
    }
    assert_ne!(remedy("budget"), remedy("policy"));
    // The end of a permit is no revocation.
    let lapsed = page("failed", "revoked", "a no longer answers this job: permit_expired: it ended on 2027-03-31", 0);
    assert!(lapsed.contains("Ask the owner for a new one") && !lapsed.contains("withdrawn its consent"), "{lapsed}");
    assert_eq!(remedy("a code of a later version"), remedy("internal"));
}
