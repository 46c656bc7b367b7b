//! A full disk and EIO, on each write, each new file, each truncation and each sync.
//!
//! The party stops answering and gives the reason. Nothing is sent after the failure, nothing is written or synced again, and on
//! a healthy disk the records are complete.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use conclave_proto::v1::{self, party_frame};
use conclave_tests::crash::disk::{Call, calls};
use conclave_tests::crash::session::{End, Party};
use conclave_tests::crash::shim::{Fault, Plan};
use prost::Message;
use tempfile::TempDir;

use super::common::{Case, EXE, for_each, recover};

const FAULTS: [Fault; 3] = [Fault::Eio, Fault::Full, Fault::Short];

fn fail_at_calls(case: &Case, stride: usize) {
    let started = Instant::now();
    let can_fail: Vec<(usize, Fault)> = case
        .window
        .clone()
        .flat_map(|at| FAULTS.map(|fault| (at, fault, case.calls[at].kind)))
        // Only a write can be cut short.
        .filter(|(_, fault, kind)| matches!(kind, 's' | 't' | 'c' | 'r') && *fault != Fault::Short || *kind == 'w')
        .map(|(at, fault, _)| (at, fault))
        .collect();
    let faults = for_each((0..can_fail.len()).step_by(stride), |scratch, number| {
        let (at, fault) = can_fail[number];
        fail_at(scratch, case, Plan { fault, at, log: None });
    });
    println!("{}; {faults} faults, {:.1} s", case.summary(), started.elapsed().as_secs_f64());
}

fn fail_at(scratch: &TempDir, case: &Case, plan: Plan<'_>) {
    let mode = case.mode;
    let (folder, mut observer) = case.new_folder(scratch);
    let folder = folder.as_path();
    let what = format!("{mode:?} {plan:?}");
    let log = folder.with_extension("log");
    let _ = std::fs::remove_file(&log);
    let mut party = Party::start(EXE, folder, mode, Some(&Plan { log: Some(&log), ..plan }));
    let end = party.run_script(&case.script, mode, &mut observer);
    // It no longer repeats even earlier answers.
    if end == End::Halted {
        for (job, iteration) in observer.rounds() {
            assert_eq!(party.refuses(job, iteration), Some(true), "{what}");
        }
    }
    let status = party.end();
    assert!(status.code().is_some(), "{what}: it crashed ({status:?})");
    let calls = calls(&log);
    let failed_call = calls.iter().position(|call| call.marked).unwrap_or_else(|| panic!("{what}: nothing failed"));
    let of_folder = calls[failed_call].inode == folder.metadata().expect("a folder").ino();
    if of_folder && end == End::Done && status.success() {
        // SQLite syncs the folder of a new log without checking the result: the ledger syncs it again before anything is sent.
        let resynced =
            calls[failed_call + 1..].iter().position(|c| c.kind == 's' && c.inode == calls[failed_call].inode).expect("a sync");
        assert!(calls[..failed_call + resynced].iter().all(|call| call.kind != 'o'), "{what}: something was sent before that");
        observer.check_ended(folder, mode);
        return;
    }
    // A ledger in creation is only a draft until it gets its name; drafts are removed.
    if plan.at > case.creation() && !of_folder {
        assert_nothing_after(&calls[failed_call..], plan.fault, &what);
    }
    let said = std::fs::read_to_string(folder.with_extension("stderr")).expect("a log");
    let summary = ["I/O error", "disk is full", "Input/output error", "No space left", "unable to open"];
    assert!(summary.iter().any(|word| said.contains(word)), "{what}: it does not state the reason: {said}");
    match end {
        End::Halted => assert!(said.contains("failed and this party answers no more"), "{what}: {said}"),
        // At the start, or when everything was done.
        End::Dead => assert_eq!(status.code(), Some(1), "{what}"),
        End::Done => assert!(said.contains("did not end well"), "{what}: {said}"),
    }
    observer.check_dead(folder, mode, true);
    recover(folder, mode, case.whole, &mut observer, &what);
}

/// Checks that after the failed call no release is sent, and that no file is written, synced or renamed, or attempted to be.
/// After a short write, the rest is tried once and fails.
fn assert_nothing_after(calls: &[Call], fault: Fault, what: &str) {
    let rest = calls.get(1..).unwrap_or_default();
    let rest = match rest.first() {
        Some(call) if fault == Fault::Short && call.kind == 'f' => &rest[1..],
        _ => rest,
    };
    for call in rest {
        assert!(call.kind == 'o', "{what}: it continued: {:?} {}, {} bytes", call.kind, call.name, call.data.len());
        let frame = v1::PartyFrame::decode(call.data.get(4..).unwrap_or_default()).expect("a frame");
        if let Some(party_frame::Body::Answer(answer)) = frame.body {
            assert_ne!(answer.status, Some(0), "{what}: a release was sent after the failure");
        }
    }
}

#[test]
fn some_calls_fail() {
    Case::short().iter().chain(&Case::second_lives()).for_each(|case| fail_at_calls(case, 53));
    Case::sampled().iter().chain(&Case::second_sampled_lives()).for_each(|case| fail_at_calls(case, 17));
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
    Case::sampled().iter().chain(&Case::second_sampled_lives()).for_each(|case| fail_at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn every_call_of_a_second_life_fails() {
    Case::second_lives().iter().for_each(|case| fail_at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn every_call_fails_while_the_log_is_copied() {
    Case::long().iter().for_each(|case| fail_at_calls(case, 1));
}
