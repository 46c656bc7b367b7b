//! Rosters, second keys, confirmations and masks that do not cancel: which faults name a party, and which can't.
#![allow(clippy::unwrap_used)]

use std::time::SystemTime;

use conclave_common::job::JobSpec;
use conclave_common::query::{PartyMetadata, Phase, Query};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::secagg::{MaskSecret, PairKeys, confirmation_digest, cover};
use conclave_proto::ca::{self, KeyedPem, Validity};
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::tls::IdentityDir;

use super::*;
use crate::clock::Timestamp;
use crate::driver::deadline::Limits;
use crate::driver::members::{Members, PartyUpdate};
use crate::driver::round_terms::RoundTerms;
use crate::driver::stop::StopReason;
use crate::party_event::Message;
use crate::send_queue::send_queue;

const NAMES: [&str; 3] = ["a", "b", "c"];
const JOB: &str = "8b8d95f5-aad7-8a3e-a2fe-b4c84182d5e2";
const DIGEST: [u8; 32] = [9; 32];

fn secret(party: usize) -> MaskSecret {
    MaskSecret::from_bytes([party as u8 + 1; 32].into())
}

fn authority() -> KeyedPem {
    ca::create_ca("town", Validity { now: SystemTime::now(), days: 10 }).unwrap()
}

/// A party's key, signed by an identity of its name.
fn signed(authority: &KeyedPem, name: &str, secret: &MaskSecret) -> v1::MaskKey {
    let folder = tempfile::tempdir().unwrap();
    let validity = Validity { now: SystemTime::now(), days: 10 };
    let issued = ca::issue(authority, &PeerIdentity::new(Role::Party, name).unwrap(), &[], validity).unwrap();
    for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &authority.pem)] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let identity = IdentityDir::load(folder.path()).unwrap();
    mask_key::sign(&identity, JOB, &DIGEST, &secret.public()).unwrap()
}

fn masking() -> Masking {
    Masking::new(JOB.into(), DIGEST, &NAMES.map(str::to_owned), 1)
}

fn keyed() -> Masking {
    let (mut masking, authority) = (masking(), authority());
    for (party, name) in NAMES.iter().enumerate() {
        assert!(masking.make().unwrap().is_none(), "a roster before every key is there");
        masking.accept_key(party, Some(signed(&authority, name, &secret(party)))).unwrap();
    }
    masking
}

/// Each party's pairwise keys under a masking's roster.
fn keys(masking: &Masking) -> Vec<PairKeys> {
    let members = masking.keys.iter().flatten().map(|(_, member)| member.clone()).collect();
    let roster = Roster::new(JOB, DIGEST, 1, members).unwrap();
    (0..NAMES.len()).map(|party| PairKeys::agree(&roster, party, &secret(party)).unwrap()).collect()
}

fn accepted(masking: &Masking, keys: &PairKeys) -> v1::RosterAccepted {
    let digest = masking.digest().unwrap();
    let confirm = keys.masks(&confirmation_digest(&digest), CONFIRMATION_LANES);
    v1::RosterAccepted { job: JOB.into(), digest: digest.to_vec(), confirm }
}

/// A masking that all have confirmed.
fn confirmed() -> (Masking, Vec<PairKeys>) {
    let mut masking = keyed();
    masking.make().unwrap().unwrap();
    let keys = keys(&masking);
    for (party, own) in keys.iter().enumerate() {
        let said = accepted(&masking, own);
        let expected = if party == 2 { Confirmed::All } else { Confirmed::NotAll };
        assert_eq!(masking.confirm(party, &said).unwrap(), expected);
    }
    (masking, keys)
}

#[test]
fn the_roster_is_made_once_and_is_the_same_bytes_after_a_restart() {
    let mut masking = keyed();
    let kept = masking.make().unwrap().unwrap();
    assert_eq!(masking.make().unwrap(), None, "a second roster");
    let mut again = self::masking();
    again.resume(&kept).unwrap();
    assert_eq!(again.digest(), masking.digest());
    assert_eq!(format!("{:?}", again.pieces()), format!("{:?}", masking.pieces()));
    // A party attaches with a renewed certificate for the same key: the stored roster is sent.
    again.accept_key(0, Some(signed(&authority(), "a", &secret(0)))).unwrap();
    assert_eq!(again.make().unwrap(), None);
    assert_eq!(format!("{:?}", again.pieces()), format!("{:?}", masking.pieces()));
    for broken in [&kept[1..], &kept[..kept.len() - 1], b"nonsense".as_slice()] {
        assert!(self::masking().resume(broken).is_err());
    }
}

#[test]
fn a_second_key_and_none_are_their_partys_fault() {
    let mut masking = keyed();
    let first = masking.keys[1].clone().unwrap().0;
    masking.accept_key(1, Some(first)).unwrap();
    let second = masking.accept_key(1, Some(signed(&authority(), "b", &secret(7)))).unwrap_err();
    assert_eq!((second.code, second.party.as_deref()), (ErrorCode::Conflict, Some("b")));
    let none = self::masking().accept_key(1, None).unwrap_err();
    assert_eq!((none.code, none.party.as_deref()), (ErrorCode::Policy, Some("b")));
    let anothers = self::masking().accept_key(1, Some(signed(&authority(), "c", &secret(1)))).unwrap_err();
    assert_eq!((anothers.code, anothers.party.as_deref()), (ErrorCode::Unauthenticated, Some("b")));
}

#[test]
fn a_confirmation_is_of_the_roster_that_was_sent_and_its_masks_cancel() {
    let (masking, keys) = confirmed();
    assert!((0..3).all(|party| masking.can_ask(party)));
    // A different roster: the party is named.
    let mut other = self::keyed();
    other.make().unwrap().unwrap();
    let mut said = accepted(&other, &keys[0]);
    said.digest[0] ^= 1;
    let fault = other.confirm(0, &said).unwrap_err();
    assert_eq!(fault.party.as_deref(), Some("a"), "{fault}");
    // Masks that do not cancel: no party can be named.
    for lane in 0..CONFIRMATION_LANES {
        let mut off = self::keyed();
        off.make().unwrap().unwrap();
        let keys = self::keys(&off);
        for (party, own) in keys.iter().enumerate() {
            let mut said = accepted(&off, own);
            said.confirm[lane] = said.confirm[lane].wrapping_add(u64::from(party == 1));
            match (party, off.confirm(party, &said)) {
                (2, Err(fault)) => assert!(fault.party.is_none() && fault.message.contains("do not cancel"), "{fault}"),
                (_, heard) => assert_eq!(heard.unwrap(), Confirmed::NotAll),
            }
        }
        assert!((0..3).all(|party| !off.can_ask(party)));
    }
}

fn spec() -> JobSpec {
    JobSpec::parse(
        "name = \"t\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\n\
         y = { min = -10, max = 10 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\nclip = 0.5\n[aggregation]\nmode = \"secure\"\ncolluders = 1\n",
    )
    .unwrap()
}

fn round() -> Round {
    let noise = NoiseScale::from_units(1 << 20).unwrap();
    let queries = vec![Query { chain: 0, kind: QueryKind::Ratio, from: vec![0.0], to: vec![0.3], noise }];
    Round { iteration: 5, phase: Phase::Sampling, queries, apart: Vec::new(), opened: Opened::SumAlone }
}

/// Runs a round in which the second party's answer is changed before it is sent.
fn asked(change: impl Fn(&mut Vec<i64>, &mut Option<Echo>)) -> (Members, Result<(), StopReason>) {
    let (masking, keys) = confirmed();
    let digest = masking.round_digest(&round()).unwrap();
    let names = NAMES.map(str::to_owned);
    let keys_of_all: Vec<v1::MaskKey> = masking.keys.iter().flatten().map(|(key, _)| key.clone()).collect();
    let mut members = Members::new(&names, &[None, None, None], Limits::default(), Timestamp::now()).masked(masking);
    let now = Timestamp::now;
    for (party, key) in keys_of_all.into_iter().enumerate() {
        members.attach(party, send_queue().0, now());
        let opened = Message::Opened(PartyMetadata::rows(10), None, Some(Box::new(key)));
        members.hear(party, opened, now()).unwrap();
    }
    members.ask(&round(), now());
    let spec = spec();
    members.set_terms(RoundTerms::of(
        &round(),
        spec.build_model().as_ref(),
        &spec,
        std::iter::once((PrivacyUnit::default(), 0)),
        &[0; 3],
    ));
    for (party, own) in keys.iter().enumerate() {
        let masks = own.masks(&digest, 2);
        let (mut releases, mut echo) = (vec![cover(100 + party as i64, masks[0])], Some(Echo { digest, check: masks[1] }));
        if party == 1 {
            change(&mut releases, &mut echo);
        }
        match members.hear(party, Message::Answer { iteration: 5, outcome: Ok(releases), echo }, now()) {
            Ok(update) => assert_eq!(update, PartyUpdate::Answered),
            Err(stop) => return (members, Err(stop)),
        }
    }
    members.complete().unwrap();
    let summed = members.check_sums(&round());
    (members, summed)
}

fn fault(outcome: Result<(), StopReason>) -> Fault {
    let Err(StopReason::Failed(fault)) = outcome else { panic!("{outcome:?}") };
    fault
}

#[test]
fn an_honest_round_opens_to_its_sum() {
    let (members, outcome) = asked(|_, _| {});
    outcome.unwrap();
    let totals = conclave_inference::sampler::Totals::of(&round(), members.answers()).unwrap();
    assert_eq!(totals.opened(0), [303]);
}

/// Garbage ends the job at the first round. No party is named, because the faulty one can't be identified, and no party is asked
/// and charged again.
#[test]
fn garbage_under_masks_ends_the_job_and_names_nobody() {
    type Change = fn(&mut Vec<i64>, &mut Option<Echo>);
    let changes: [(&str, Change); 3] = [
        ("a number of any size", |releases, _| releases[0] = releases[0].wrapping_add(1 << 62)),
        ("the least number", |releases, _| releases[0] = releases[0].wrapping_add(i64::MIN)),
        ("a check lane that is off by one", |_, echo| {
            let echo = echo.as_mut().unwrap();
            echo.check = echo.check.wrapping_add(1);
        }),
    ];
    for (what, change) in changes {
        let (members, outcome) = asked(change);
        // The round's cost counts as spent, and no party is waited for as the job ends.
        assert!((0..3).all(|party| members.has_answered(party)), "{what}");
        let fault = fault(outcome);
        assert!(fault.party.is_none() && fault.message.contains("do not cancel"), "{what}: {fault}");
        assert_eq!(fault.code, ErrorCode::Internal);
    }
    // A plausible number passes: an owner's `verify` finds that every sum is off by one.
    asked(|releases, _| releases[0] = releases[0].wrapping_add(1)).1.unwrap();
}

#[test]
fn an_answer_of_another_message_or_without_masks_is_its_partys_fault() {
    type Change = fn(&mut Vec<i64>, &mut Option<Echo>);
    let changes: [Change; 2] = [|_, echo| echo.as_mut().unwrap().digest[31] ^= 1, |_, echo| *echo = None];
    for change in changes {
        assert_eq!(fault(asked(change).1).party.as_deref(), Some("b"));
    }
    assert!(
        with_check_lane(vec![1], Some(Echo { digest: DIGEST, check: 0 }), (1, None)).is_err(),
        "a mask where the job has none"
    );
}
