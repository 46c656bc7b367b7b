//! A ledger that is no longer at its path answers nothing.
#![allow(clippy::unwrap_used)]
use std::fs::{copy, hard_link, remove_file, rename};
use std::path::Path;

use super::open_job::{charged, opened};
use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{JOB, key, no_sum};

/// A file that is deleted, replaced or named twice under a running party continues taking what is written: nothing is charged to it, and no answer
/// leaves, whether it happens between two messages or while an answer is computed.
#[test]
fn an_answer_that_could_not_be_recorded_is_not_released() {
    type Act = fn(&Path);
    let acts: [(&str, Act); 5] = [
        ("deleted", |path| remove_file(path).unwrap()),
        ("moved away", |path| rename(path, path.with_extension("gone")).unwrap()),
        ("replaced", |path| {
            copy(path, path.with_extension("copy")).unwrap();
            rename(path.with_extension("copy"), path).unwrap();
        }),
        ("2 names", |path| hard_link(path, path.with_extension("twice")).unwrap()),
        ("-wal", |path| remove_file(path.with_extension("sqlite-wal")).unwrap()),
    ];
    let mut noise = Noise::from_os().unwrap();
    for durability in [Durability::Strict, Durability::Reserve { block: 8 }] {
        for (how, act) in acts {
            for computing in [false, true] {
                let (folder, mut ledger) = opened(durability);
                let first = charged(&mut ledger, 0);
                ledger.record(vec![release(first, no_sum(), &mut noise)]).unwrap();
                let receipt = computing.then(|| charged(&mut ledger, 1));
                act(&folder.path().join("ledger.sqlite"));
                let left = match receipt {
                    Some(receipt) => ledger.record(vec![release(receipt, no_sum(), &mut noise)]).map(|_| ()),
                    None => ledger.charge(JOB, 1, &[key(0, 1, 1000)]).map(|_| ()),
                };
                assert!(matches!(left, Err(LedgerError::Halted(_))), "{how} {durability:?} {computing}");
                let why = ledger.halted().unwrap();
                assert!(why.contains(how) && why.contains("recorded nowhere"), "{why}");
                let again = ledger.charge(JOB, 0, &[key(0, 1, 1000)]);
                assert!(matches!(again, Err(LedgerError::Halted(_))), "not even what was answered before");
            }
        }
    }
}
