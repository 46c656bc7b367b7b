//! The power fails: what was not synced may be gone, or there in part.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use conclave_proto::v1::{self, party_frame};
use conclave_tests::crash::Mode;
use conclave_tests::crash::disk::{Call, Disk};
use conclave_tests::crash::jobs;
use conclave_tests::crash::outside::Outside;
use conclave_tests::crash::session::Step;
use prost::Message;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::common::{Case, for_each, recover, room};

/// What was on the disk and what had left, after each call.
struct Moment {
    disk: Disk,
    outside: Outside,
}

/// The moments of an undisturbed session that are in its window.
fn moments(case: &Case) -> BTreeMap<usize, Moment> {
    let (mut disk, mut outside, mut heard) = (case.disk.clone(), case.heard_before(), Vec::new());
    // Everything that the script asks may have been asked.
    for step in &case.script {
        if let Step::Ask(job, iteration) = step {
            outside.asks(*job, *iteration);
        }
    }
    let mut moments = BTreeMap::new();
    for (at, call) in case.calls.iter().enumerate() {
        disk.take(call, case.folder);
        hear_call(call, &mut heard, case.mode, &mut outside);
        if case.window.contains(&at) {
            moments.insert(at, Moment { disk: disk.clone(), outside: outside.clone() });
        }
    }
    moments
}

/// Whether a call let something out; what has come out whole is heard, and the rest of it kept in `heard`.
pub(super) fn hear_call(call: &Call, heard: &mut Vec<u8>, mode: Mode, outside: &mut Outside) -> bool {
    if call.kind == 'o' {
        heard.extend_from_slice(&call.data);
        hear(heard, mode, outside);
    }
    call.kind == 'o'
}

fn hear(bytes: &mut Vec<u8>, mode: Mode, outside: &mut Outside) {
    while let Some(length) = bytes.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize) {
        if bytes.len() < 4 + length {
            return;
        }
        let frame: Vec<u8> = bytes.drain(..4 + length).skip(4).collect();
        let frame = v1::PartyFrame::decode(frame.as_slice()).expect("a frame");
        let number = |job: &str| jobs::number(job).expect("a job");
        match frame.body {
            Some(party_frame::Body::Answer(answer)) if answer.status == Some(0) => {
                outside.hears_all(number(&answer.job), &answer, 0, mode);
            }
            Some(party_frame::Body::JobOpened(opened)) => {
                opened.mask_key.iter().for_each(|key| outside.sees_key(number(&opened.job), &key.public));
            }
            Some(party_frame::Body::RosterAccepted(accepted)) => {
                outside.sees_roster(number(&accepted.job), (accepted.digest, accepted.confirm));
            }
            Some(party_frame::Body::JobPending(pending)) => outside.is_closed(number(&pending.job)),
            _ => {}
        }
    }
}

/// Cuts the power after every `stride`-th call of the window: with nothing but what was synced, and with any part of the rest. Gives how
/// many numbers were given afresh.
fn cut(case: &Case, stride: usize) -> u64 {
    let (started, mode) = (Instant::now(), case.mode);
    let moments = moments(case);
    let (afresh, cuts) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each((2 * case.window.start..2 * case.window.end).step_by(stride), |workshop, number| {
        let (at, torn) = (number / 2, number % 2 == 1);
        let Moment { disk, outside } = &moments[&at];
        // What is synced does not change but by a sync, and is judged by what had left at the end.
        let same_disk = case.calls.get(at + 1).is_some_and(|next| next.kind != 's');
        if !torn && same_disk {
            return;
        }
        let folder = room(workshop, "party");
        if torn {
            disk.write_torn(&folder, &mut ChaCha8Rng::seed_from_u64(at as u64));
        } else {
            disk.write_synced(&folder);
        }
        let mut outside = outside.clone();
        outside.check_dead(&folder, mode, false);
        outside.is_held_to(&folder);
        recover(&folder, mode, case.whole, &mut outside, &format!("{mode:?} cut after call {at}, torn {torn}"));
        afresh.fetch_add(outside.afresh, Ordering::Relaxed);
        cuts.fetch_add(1, Ordering::Relaxed);
    });
    let (afresh, cuts) = (afresh.into_inner(), cuts.into_inner());
    let seconds = started.elapsed().as_secs_f64();
    println!("{}; {cuts} cuts, {afresh} numbers given afresh, {seconds:.1} s", case.words());
    afresh
}

/// Only a block's answers may be given afresh, and some are where the power fails.
fn cut_while_it_answers(case: &Case, stride: usize) {
    let afresh = cut(case, stride);
    assert_eq!(case.mode == Mode::Strict, afresh == 0, "{afresh} numbers were given afresh");
}

#[test]
fn the_power_fails_at_some_calls() {
    Case::short().iter().for_each(|case| cut_while_it_answers(case, 29));
}

/// Of masked jobs: each goes on with the key and the roster that the ledger on the disk has entered, or that ledger has closed it.
#[test]
fn the_power_fails_at_some_calls_of_masked_jobs() {
    Case::masked().iter().for_each(|case| cut_while_it_answers(case, 7));
    Case::masked_again().iter().for_each(|case| assert_eq!(cut(case, 13), 0));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_power_fails_at_every_call_of_masked_jobs() {
    Case::masked().iter().for_each(|case| cut_while_it_answers(case, 1));
    Case::masked_again().iter().for_each(|case| assert_eq!(cut(case, 1), 0));
}

/// Of a job over samples: in reserve mode, too, what left has its place on the disk. The local job beside it is what is given afresh.
#[test]
fn the_power_fails_at_some_calls_of_sampled_jobs() {
    Case::sampled().iter().for_each(|case| cut_while_it_answers(case, 7));
    Case::sampled_again().iter().for_each(|case| assert_eq!(cut(case, 13), 0));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_power_fails_at_every_call_of_sampled_jobs() {
    Case::sampled().iter().for_each(|case| cut_while_it_answers(case, 1));
    Case::sampled_again().iter().for_each(|case| assert_eq!(cut(case, 1), 0));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_power_fails_at_every_call() {
    Case::short().iter().for_each(|case| cut_while_it_answers(case, 1));
    Case::long().iter().for_each(|case| cut_while_it_answers(case, 1));
}

/// What was there before was on the disk: a conversion loses none of it.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_power_fails_at_every_call_of_a_conversion() {
    Case::converted().iter().for_each(|case| assert_eq!(cut(case, 1), 0));
}
