//! Disk full and EIO, on each write, each new file, each truncation and each sync.
//!
//! The party stops answering and says why; nothing leaves after the failure, nothing is written or synced again, and on a
//! healthy disk the books are whole.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use conclave_proto::v1::{self, party_frame};
use conclave_tests::crash::disk::{Call, calls};
use conclave_tests::crash::session::{End, Party};
use conclave_tests::crash::shim::{Deed, Plan};
use prost::Message;
use tempfile::TempDir;

use super::common::{Case, EXE, for_each, recover};

const DEEDS: [Deed; 3] = [Deed::Eio, Deed::Full, Deed::Short];

fn fail_at_calls(case: &Case, stride: usize) {
    let started = Instant::now();
    let can_fail: Vec<(usize, Deed)> = case
        .window
        .clone()
        .flat_map(|at| DEEDS.map(|deed| (at, deed, case.calls[at].kind)))
        // A short write is one.
        .filter(|(_, deed, kind)| matches!(kind, 's' | 't' | 'c' | 'r') && *deed != Deed::Short || *kind == 'w')
        .map(|(at, deed, _)| (at, deed))
        .collect();
    let faults = for_each((0..can_fail.len()).step_by(stride), |workshop, number| {
        let (at, deed) = can_fail[number];
        fail_at(workshop, case, Plan { deed, at, log: None });
    });
    println!("{}; {faults} faults, {:.1} s", case.words(), started.elapsed().as_secs_f64());
}

fn fail_at(workshop: &TempDir, case: &Case, plan: Plan<'_>) {
    let mode = case.mode;
    let (folder, mut outside) = case.room(workshop);
    let folder = folder.as_path();
    let what = format!("{mode:?} {plan:?}");
    let log = folder.with_extension("log");
    let _ = std::fs::remove_file(&log);
    let mut party = Party::start(EXE, folder, mode, Some(&Plan { log: Some(&log), ..plan }));
    let end = party.play(&case.script, mode, &mut outside);
    // Asked again for what it has answered already, it answers no more.
    if end == End::Halted {
        for (job, iteration) in outside.rounds() {
            assert_eq!(party.refuses(job, iteration), Some(true), "{what}");
        }
    }
    let status = party.end();
    assert!(status.code().is_some(), "{what}: it crashed ({status:?})");
    let calls = calls(&log);
    let fault = calls.iter().position(|call| call.marked).unwrap_or_else(|| panic!("{what}: nothing failed"));
    let of_folder = calls[fault].inode == folder.metadata().expect("a folder").ino();
    if of_folder && end == End::Done && status.success() {
        // SQLite syncs the folder of a new log and does not look: the ledger does so itself before anything leaves.
        let mended = calls[fault + 1..].iter().position(|c| c.kind == 's' && c.inode == calls[fault].inode).expect("a sync");
        assert!(calls[..fault + mended].iter().all(|call| call.kind != 'o'), "{what}: something left before that");
        outside.check_ended(folder, mode);
        return;
    }
    // What is being made is no ledger before it has its name: a draft is put away.
    if plan.at > case.made() && !of_folder {
        assert_nothing_after(&calls[fault..], plan.deed, &what);
    }
    let said = std::fs::read_to_string(folder.with_extension("stderr")).expect("a log");
    let words = ["I/O error", "disk is full", "Input/output error", "No space left", "unable to open"];
    assert!(words.iter().any(|word| said.contains(word)), "{what}: it does not say why: {said}");
    match end {
        End::Halted => assert!(said.contains("failed and this party answers no more"), "{what}: {said}"),
        // At its start, or when all was done.
        End::Dead => assert_eq!(status.code(), Some(1), "{what}"),
        End::Done => assert!(said.contains("did not end well"), "{what}: {said}"),
    }
    outside.check_dead(folder, mode, true);
    recover(folder, mode, case.whole, &mut outside, &what);
}

/// After the failed call no number leaves, and no file is written, synced or renamed, or tried to be. Of a short write the
/// rest is tried, once, and fails.
fn assert_nothing_after(calls: &[Call], deed: Deed, what: &str) {
    let rest = calls.get(1..).unwrap_or_default();
    let rest = match rest.first() {
        Some(call) if deed == Deed::Short && call.kind == 'f' => &rest[1..],
        _ => rest,
    };
    for call in rest {
        assert!(call.kind == 'o', "{what}: it went on: {:?} {}, {} bytes", call.kind, call.name, call.data.len());
        let frame = v1::PartyFrame::decode(call.data.get(4..).unwrap_or_default()).expect("a frame");
        if let Some(party_frame::Body::Answer(answer)) = frame.body {
            assert_ne!(answer.status, Some(0), "{what}: a number left after the failure");
        }
    }
}

#[test]
fn some_calls_fail() {
    Case::short().iter().chain(&Case::again()).for_each(|case| fail_at_calls(case, 53));
    Case::sampled().iter().chain(&Case::sampled_again()).for_each(|case| fail_at_calls(case, 17));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn every_call_of_a_conversion_fails() {
    Case::converted().iter().for_each(|case| fail_at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn every_call_fails() {
    Case::short().iter().for_each(|case| fail_at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn every_call_of_sampled_jobs_fails() {
    Case::sampled().iter().chain(&Case::sampled_again()).for_each(|case| fail_at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn every_call_of_a_second_life_fails() {
    Case::again().iter().for_each(|case| fail_at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn every_call_fails_while_the_log_is_copied() {
    Case::long().iter().for_each(|case| fail_at_calls(case, 1));
}
