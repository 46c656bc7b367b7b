//! Power failures: unsynced data may be lost, or present in part.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use conclave_proto::v1::{self, party_frame};
use conclave_tests::crash::Mode;
use conclave_tests::crash::disk::{Call, Disk};
use conclave_tests::crash::jobs;
use conclave_tests::crash::observer::Observer;
use conclave_tests::crash::session::Step;
use prost::Message;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::common::{Case, for_each, new_folder, recover};

/// Contents of the disk and everything sent, after one call.
struct Moment {
    disk: Disk,
    observer: Observer,
}

/// Returns the moments of an undisturbed session within its window.
fn moments(case: &Case) -> BTreeMap<usize, Moment> {
    let (mut disk, mut observer, mut heard) = (case.disk.clone(), case.earlier_observer(), Vec::new());
    // Any query of the script may have been sent.
    for step in &case.script {
        if let Step::Ask(job, iteration) = step {
            observer.record_query(*job, *iteration);
        }
    }
    let mut moments = BTreeMap::new();
    for (at, call) in case.calls.iter().enumerate() {
        disk.take(call, case.folder);
        record_call(call, &mut heard, case.mode, &mut observer);
        if case.window.contains(&at) {
            moments.insert(at, Moment { disk: disk.clone(), observer: observer.clone() });
        }
    }
    moments
}

/// Records the frames that a call completes, and keeps an incomplete one in `heard`; returns true if the call sent anything.
pub(super) fn record_call(call: &Call, heard: &mut Vec<u8>, mode: Mode, observer: &mut Observer) -> bool {
    if call.kind == 'o' {
        heard.extend_from_slice(&call.data);
        record_frames(heard, mode, observer);
    }
    call.kind == 'o'
}

fn record_frames(bytes: &mut Vec<u8>, mode: Mode, observer: &mut Observer) {
    while let Some(length) = bytes.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize) {
        if bytes.len() < 4 + length {
            return;
        }
        let frame: Vec<u8> = bytes.drain(..4 + length).skip(4).collect();
        let frame = v1::PartyFrame::decode(frame.as_slice()).expect("a frame");
        let number = |job: &str| jobs::number(job).expect("a job");
        match frame.body {
            Some(party_frame::Body::Answer(answer)) if answer.status == Some(0) => {
                observer.record_answer(number(&answer.job), &answer, 0, mode);
            }
            Some(party_frame::Body::JobOpened(opened)) => {
                opened.mask_key.iter().for_each(|key| observer.record_key(number(&opened.job), &key.public));
            }
            Some(party_frame::Body::RosterAccepted(accepted)) => {
                observer.record_roster(number(&accepted.job), (accepted.digest, accepted.confirm));
            }
            Some(party_frame::Body::JobPending(pending)) => observer.record_closed(number(&pending.job)),
            _ => {}
        }
    }
}

/// Cuts the power after every `stride`-th call of the window: with the synced data only, and with any part of the rest. Returns
/// the number of reissued answers.
fn cut(case: &Case, stride: usize) -> u64 {
    let (started, mode) = (Instant::now(), case.mode);
    let moments = moments(case);
    let (reissued, cuts) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each((2 * case.window.start..2 * case.window.end).step_by(stride), |scratch, number| {
        let (at, torn) = (number / 2, number % 2 == 1);
        let Moment { disk, observer } = &moments[&at];
        // Only a sync changes the synced data; they are checked against everything sent until then.
        let same_disk = case.calls.get(at + 1).is_some_and(|next| next.kind != 's');
        if !torn && same_disk {
            return;
        }
        let folder = new_folder(scratch, "party");
        if torn {
            disk.write_torn(&folder, &mut ChaCha8Rng::seed_from_u64(at as u64));
        } else {
            disk.write_synced(&folder);
        }
        let mut observer = observer.clone();
        observer.check_dead(&folder, mode, false);
        observer.check_masked_entries(&folder);
        recover(&folder, mode, case.whole, &mut observer, &format!("{mode:?} cut after call {at}, torn {torn}"));
        reissued.fetch_add(observer.reissued, Ordering::Relaxed);
        cuts.fetch_add(1, Ordering::Relaxed);
    });
    let (reissued, cuts) = (reissued.into_inner(), cuts.into_inner());
    let seconds = started.elapsed().as_secs_f64();
    println!("{}; {cuts} cuts, {reissued} reissued answers, {seconds:.1} s", case.summary());
    reissued
}

/// Only answers of a reserved block may be reissued, and a power failure does cause some.
fn cut_while_it_answers(case: &Case, stride: usize) {
    let reissued = cut(case, stride);
    assert_eq!(case.mode == Mode::Strict, reissued == 0, "{reissued} answers were reissued");
}

#[test]
fn the_power_fails_at_some_calls() {
    Case::short().iter().for_each(|case| cut_while_it_answers(case, 29));
}

/// Masked jobs: each continues with the key and the roster entered in the ledger on disk, or that ledger has closed it.
#[test]
fn the_power_fails_at_some_calls_of_masked_jobs() {
    Case::masked().iter().for_each(|case| cut_while_it_answers(case, 7));
    Case::second_masked_lives().iter().for_each(|case| assert_eq!(cut(case, 13), 0));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_power_fails_at_every_call_of_masked_jobs() {
    Case::masked().iter().for_each(|case| cut_while_it_answers(case, 1));
    Case::second_masked_lives().iter().for_each(|case| assert_eq!(cut(case, 1), 0));
}

/// A job with subsampled releases: even in reserve mode, every release has its place on the disk. Only the local job beside it
/// reissues answers.
#[test]
fn the_power_fails_at_some_calls_of_sampled_jobs() {
    Case::sampled().iter().for_each(|case| cut_while_it_answers(case, 7));
    Case::second_sampled_lives().iter().for_each(|case| assert_eq!(cut(case, 13), 0));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_power_fails_at_every_call_of_sampled_jobs() {
    Case::sampled().iter().for_each(|case| cut_while_it_answers(case, 1));
    Case::second_sampled_lives().iter().for_each(|case| assert_eq!(cut(case, 1), 0));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_power_fails_at_every_call() {
    Case::short().iter().for_each(|case| cut_while_it_answers(case, 1));
    Case::long().iter().for_each(|case| cut_while_it_answers(case, 1));
}

/// Earlier data were on the disk: a conversion loses none.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_power_fails_at_every_call_of_a_conversion() {
    Case::converted().iter().for_each(|case| assert_eq!(cut(case, 1), 0));
}
