//! Malicious coordinator frames, sent to a real party with a real ledger.

use std::cell::RefCell;

use conclave_proto::roster::{Assembly, pieces};
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{CloseJob, CoordinatorFrame, Heartbeat, MaskKey, Proposal, Query, Roster, RosterEntry, Welcome};
use conclave_tests::crash::session::populate;
use conclave_tests::crash::{Mode, jobs};
use conclave_vault::answer::Answerer;
use prost::Message;

use crate::harness::{Target, fuzz};

/// Noise scale for an sd of 40 in log likelihood units, whose lattice unit is 2^-32: cheap enough for many releases.
const NOISE: u64 = 40 << 32;

fn frame(body: Body) -> Vec<u8> {
    CoordinatorFrame { body: Some(body) }.encode_to_vec()
}

fn query(iteration: u64, points: &[(f64, f64)]) -> Query {
    let proposal = |(chain, (from, to)): (usize, &(f64, f64))| Proposal {
        chain: chain as u32,
        from: vec![*from],
        to: vec![*to],
        noise_scale: NOISE,
        kind: 0,
    };
    let proposals = points.iter().enumerate().map(proposal).collect();
    Query { job: jobs::id(0).to_owned(), iteration, proposals, attempt: 0 }
}

/// Returns the whole roster of a job, with unsigned keys.
fn roster() -> Roster {
    let key = MaskKey {
        public: vec![9; 32],
        scheme: "ecdsa_secp256r1_sha256".into(),
        signature: vec![5; 70],
        certificate: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into(),
    };
    let entry = |name: &str| RosterEntry { name: name.to_owned(), key: Some(key.clone()) };
    pieces(jobs::id(0), ["a", "b", "c"].map(entry).to_vec()).remove(0)
}

fn answerer(folder: &std::path::Path) -> Answerer {
    populate(folder);
    Mode::Strict.answerer(folder).expect("an answerer")
}

/// Handles a frame as the answering thread does. A refusal costs nothing, and an answer has one release per proposal.
fn handle(answerer: &mut Answerer, rosters: &mut Assembly, bytes: &[u8]) -> bool {
    let Ok(frame) = CoordinatorFrame::decode(bytes) else { return false };
    let before = answerer.ledger().units().0;
    match frame.body {
        Some(Body::OpenJob(open)) => answerer.open(&open).is_ok(),
        Some(Body::CloseJob(close)) => answerer.close(&close.job, &close.reason).is_ok(),
        Some(Body::Query(query)) => {
            let sound = query.proposals.iter().all(|p| p.from.iter().chain(&p.to).all(|x| x.is_finite() && x.abs() <= 1e3));
            let (asked, answer) = (query.proposals.len(), answerer.answer(query));
            assert_eq!(answer.releases.len(), asked);
            let after = answerer.ledger().units().0;
            let released = answer.status == Some(0);
            assert!(released || after == before, "a refusal was charged: {before} before, {after} after");
            assert!(!released || sound, "an answer at a point outside the box");
            assert!(after >= before && after <= answerer.ledger().units().1);
            released
        }
        Some(Body::Roster(piece)) => matches!(rosters.take(piece), Ok(Some(_))),
        Some(Body::Welcome(_) | Body::Heartbeat(_) | Body::AskBudget(_)) | None => false,
    }
}

#[test]
fn frames_to_a_party() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut party = answerer(folder.path());
    party.open(&jobs::open_job(0)).expect("its job");
    let party = RefCell::new((party, Assembly::default()));
    fuzz(&Target {
        name: "coordinator-frame",
        seeds: vec![
            frame(Body::Query(query(0, &[(0.0, 0.001)]))),
            frame(Body::Query(query(1, &[(0.0, 0.001), (0.1, 0.099)]))),
            frame(Body::Query(query(2, &[(0.5, 0.5)]))),
            frame(Body::OpenJob(jobs::open_job(0))),
            frame(Body::OpenJob(jobs::open_job(1))),
            frame(Body::CloseJob(CloseJob { job: jobs::id(1).into(), reason: "finished".into(), waits: false })),
            frame(Body::Welcome(Welcome { protocol: conclave_proto::PROTOCOL, software: "x".into(), head: vec![7; 72] })),
            frame(Body::Heartbeat(Heartbeat { sequence: 3 })),
            frame(Body::Roster(roster())),
        ],
        words: vec![jobs::id(0).as_bytes().to_vec(), 1e-320_f64.to_le_bytes().to_vec(), 1e3_f64.to_le_bytes().to_vec()],
        run: Box::new(move |bytes| {
            let (answerer, rosters) = &mut *party.borrow_mut();
            handle(answerer, rosters, bytes)
        }),
    });
}
