//! The power fails: what was not synced may be gone, or there in part.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use conclave_proto::v1::{self, party_frame};
use conclave_tests::crash::Mode;
use conclave_tests::crash::disk::Disk;
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
        if call.kind == 'o' {
            heard.extend_from_slice(&call.data);
            hear(&mut heard, case.mode, &mut outside);
        }
        if case.window.contains(&at) {
            moments.insert(at, Moment { disk: disk.clone(), outside: outside.clone() });
        }
    }
    moments
}

fn hear(bytes: &mut Vec<u8>, mode: Mode, outside: &mut Outside) {
    while let Some(length) = bytes.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize) {
        if bytes.len() < 4 + length {
            return;
        }
        let frame: Vec<u8> = bytes.drain(..4 + length).skip(4).collect();
        let frame = v1::PartyFrame::decode(frame.as_slice()).expect("a frame");
        let Some(party_frame::Body::Answer(answer)) = frame.body else { continue };
        if answer.status != Some(0) {
            continue;
        }
        let job = jobs::number(&answer.job).expect("a job");
        outside.hears_all(job, &answer, 0, mode);
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
