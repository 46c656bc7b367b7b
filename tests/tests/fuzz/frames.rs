//! Messages from a party or an analyst to the coordinator, and from the coordinator to an analyst.

use conclave_common::query::PartyMetadata;
use conclave_proto::convert::{Answer, answer_from_wire, answer_to_wire, opened_from_wire, opened_to_wire, query_from_wire};
use conclave_proto::echo::Echo;
use conclave_proto::v1::party_frame::Body;
use conclave_proto::v1::{self, PartyFrame};
use conclave_proto::{mask_key, submission};
use conclave_tests::crash::jobs;
use prost::Message;

use crate::harness::{Target, fuzz};

fn party(body: Body) -> Vec<u8> {
    PartyFrame { body: Some(body) }.encode_to_vec()
}

#[test]
fn frames_to_the_coordinator() {
    let answer = |outcome| Answer { job: "j".into(), iteration: 7, outcome };
    let mut hello = v1::Hello::default();
    (hello.protocol, hello.software) = (1, "conclave-party 0.1.0".into());
    let echo = Some(Echo { digest: [7; 32], check: 5 });
    let mask_key =
        v1::MaskKey { public: vec![9; 32], scheme: "ed25519".into(), signature: vec![5; 64], certificate: "pem".into() };
    let refused = conclave_proto::convert::AnswerStatus::ALL.into_iter().find(|s| s.to_wire() != 0);
    fuzz(&Target {
        name: "party-frame",
        seeds: vec![
            party(Body::Hello(hello)),
            party(Body::Answer(answer_to_wire(&answer(Ok(vec![1, -5, i64::MAX])), 3))),
            party(Body::Answer(answer_to_wire(&answer(Err(refused.expect("a refusal"))), 3))),
            party(Body::Answer(Echo::attach(echo, answer_to_wire(&answer(Ok(vec![1, -5, i64::MAX])), 3)))),
            party(Body::Answer(Echo::attach(None, answer_to_wire(&answer(Err(refused.expect("a refusal"))), 3)))),
            party(Body::JobOpened(opened_to_wire("j", &PartyMetadata::rows(30_000)))),
            party(Body::JobOpened(v1::JobOpened { mask_key: Some(mask_key), ..opened_to_wire("j", &PartyMetadata::rows(9)) })),
            party(Body::RosterAccepted(v1::RosterAccepted {
                job: "j".into(),
                digest: vec![3; 32],
                confirm: vec![1, u64::MAX, 3, 4],
            })),
            party(Body::JobPending(v1::JobPending { job: "j".into(), reason: "its disk is full".into(), full: false })),
            party(Body::JobRefused(v1::JobRefused { job: "j".into(), code: "policy".into(), reason: "no".into() })),
        ],
        words: Vec::new(),
        run: Box::new(|bytes| match PartyFrame::decode(bytes).map(|frame| frame.body) {
            Ok(Some(Body::Answer(answer))) => Echo::read(&answer).is_ok() & answer_from_wire(answer).is_ok(),
            Ok(Some(Body::JobOpened(opened))) => {
                let key = opened.mask_key.as_ref().is_none_or(|key| mask_key::check(key, "j", &[0; 32], "a").is_ok());
                opened_from_wire(&opened).is_ok() & key
            }
            Ok(Some(_)) => true,
            _ => false,
        }),
    });
}

#[test]
fn submissions() {
    let open = jobs::open_job(0);
    let submission = open.submission.expect("a signed job");
    let certificate = submission.certificate.clone();
    let (toml, analyst) = (open.spec_toml, open.analyst);
    fuzz(&Target {
        name: "submission",
        seeds: vec![submission::encode(&submission)],
        words: vec![certificate.into_bytes(), b"-----BEGIN CERTIFICATE-----".to_vec()],
        run: Box::new(move |bytes| {
            let Some(found) = submission::decode(bytes) else { return false };
            let accepted = submission::check(Some(&found), &analyst, &toml);
            let trusted = submission::check_signer(&found, jobs::ca_pem(), std::time::SystemTime::now());
            if let (Ok(id), Ok(())) = (&accepted, &trusted) {
                // One signature stands for one job: no change may give the same text a second id.
                assert!(id == &open.job || found.signature != submission.signature, "{id} and {}", open.job);
            }
            accepted.is_ok()
        }),
    });
}

/// Messages that an analyst's program reads: it only decodes and prints them.
#[test]
fn statuses() {
    let status = v1::JobStatus {
        job: "j".into(),
        name: "readmission".into(),
        state: "paused".into(),
        waiting_for: vec!["hospital-a".into()],
        parties: vec![v1::PartyStatus { name: "hospital-a".into(), epsilon_spent: 0.3, ..Default::default() }],
        ..Default::default()
    };
    fuzz(&Target {
        name: "job-status",
        seeds: vec![status.encode_to_vec(), v1::ListReply { jobs: vec![status] }.encode_to_vec()],
        words: Vec::new(),
        run: Box::new(|bytes| v1::JobStatus::decode(bytes).is_ok() | v1::ListReply::decode(bytes).is_ok()),
    });
}

#[test]
fn queries() {
    let proposal = v1::Proposal { chain: 1, from: vec![0.5, 2.0], to: vec![0.5, -1e-3], noise_scale: 1 << 32, kind: 0 };
    let query = v1::Query { job: "j".into(), iteration: 9, proposals: vec![proposal], attempt: 0 };
    fuzz(&Target {
        name: "query",
        seeds: vec![query.encode_to_vec()],
        words: Vec::new(),
        run: Box::new(|bytes| {
            let Some(queries) = v1::Query::decode(bytes).ok().and_then(|query| query_from_wire(query).ok()) else { return false };
            for query in &queries {
                assert_eq!(query.from.len(), query.to.len());
                assert!(query.from.iter().chain(&query.to).all(|x| *x == 0.0 || x.is_normal()), "{query:?}");
            }
            true
        }),
    });
}
