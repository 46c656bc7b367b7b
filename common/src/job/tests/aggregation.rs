//! `[aggregation]`.

#![allow(clippy::unwrap_used)]

use crate::job::{Aggregation, JobSpec, KeyFingerprint, Secure};

fn job(parties: usize, aggregation: &str) -> String {
    let names: Vec<String> = (0..parties).map(|i| format!("\"p{i}\"")).collect();
    format!(
        "name = \"t\"\nparties = [{}]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = {{ binary = true }}\n\
         [privacy]\nepsilon = 1.0\ndelta = 1e-6\n{aggregation}",
        names.join(", ")
    )
}

fn refused(parties: usize, aggregation: &str) -> String {
    JobSpec::parse(&job(parties, aggregation)).unwrap_err().to_string()
}

#[test]
fn answers_are_opened_one_by_one_unless_the_job_says_otherwise() {
    for text in ["", "[aggregation]\nmode = \"local\""] {
        let spec = JobSpec::parse(&job(2, text)).unwrap();
        assert_eq!((spec.aggregation.clone(), spec.honest().get()), (Aggregation::Local, 1));
        assert_eq!(spec.aggregation.opened(2), 2);
    }
}

#[test]
fn the_greater_half_of_the_others_may_collude() {
    for (parties, colluders, honest) in [(3, 1, 2), (4, 2, 2), (5, 2, 3), (10, 5, 5), (31, 15, 16)] {
        let spec = JobSpec::parse(&job(parties, "[aggregation]\nmode = \"secure\"")).unwrap();
        assert_eq!(spec.aggregation.secure().map(|s| s.colluders), Some(colluders), "{parties}");
        assert_eq!((spec.honest().get(), spec.aggregation.opened(parties)), (honest, 1));
        // The chain's own noise is unchanged.
        assert_eq!(spec.privacy.noise, JobSpec::parse(&job(parties, "")).unwrap().privacy.noise);
    }
    let spec = JobSpec::parse(&job(5, "[aggregation]\nmode = \"secure\"\ncolluders = 1")).unwrap();
    assert_eq!(spec.honest().get(), 4);
}

#[test]
fn members_are_named_by_their_keys() {
    let print = format!("sha256:{}", "0f".repeat(32));
    let text = format!("[aggregation]\nmode = \"secure\"\nmembers = {{ p1 = \"{print}\" }}");
    let spec = JobSpec::parse(&job(3, &text)).unwrap();
    let Some(Secure { members, .. }) = spec.aggregation.secure() else { panic!("secure") };
    assert_eq!(members["p1"], KeyFingerprint([15; 32]));
    assert_eq!(members["p1"].to_string(), print);
    for wrong in ["sha256:0f", "0f", "sha256:zz"] {
        assert!(wrong.parse::<KeyFingerprint>().is_err());
        let text = format!("[aggregation]\nmode = \"secure\"\nmembers = {{ p1 = \"{wrong}\" }}");
        assert!(refused(3, &text).contains("aggregation.members.p1"));
    }
    let text = format!("[aggregation]\nmode = \"secure\"\nmembers = {{ q = \"{print}\" }}");
    assert!(refused(3, &text).contains("not a party of the job"));
}

#[test]
fn aggregation_that_protects_no_party_is_refused() {
    let secure = "[aggregation]\nmode = \"secure\"";
    for parties in [1, 2] {
        assert!(refused(parties, secure).contains("mode = \"local\""));
    }
    assert!(refused(1025, secure).contains("1024"));
    for colluders in [-1, 0, 2, 3] {
        let error = refused(3, &format!("{secure}\ncolluders = {colluders}"));
        assert!(error.contains("aggregation.colluders") && error.contains("between 1 and 1"), "{error}");
    }
    assert!(refused(3, "[aggregation]\nmode = \"masked\"").contains("known: local, secure"));
    assert!(refused(3, "[aggregation]\nmode = \"local\"\ncolluders = 1").contains("aggregation.mode"));
    assert!(refused(3, "[aggregation]\nmode = \"secure\"\ncoluders = 1").contains("colluders"));
}
