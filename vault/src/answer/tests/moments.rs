//! Hashed times never depend on how long an answer took.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use conclave_proto::v1;
use prost::Message;
use tokio::sync::mpsc;

use super::*;
use crate::answer::testing::Watched;
use crate::answer::thread::{self, Command};
use crate::clock::{now_ms, stand_at};
use crate::data::BadRows;
use crate::ledger::{Durability, LedgerSettings};
use crate::members::Members;
use crate::testing::{JOB, MEAN_TOML, budget, data, open_policy, open_request, query, write};

const MODES: [Durability; 2] = [Durability::Strict, Durability::Reserve { block: 6 }];

fn settings(folder: &Path, durability: Durability) -> LedgerSettings {
    LedgerSettings { durability, ..LedgerSettings::beside(&folder.join("ledger.sqlite"), "hospital-a", &budget()) }
}

/// Returns a party whose every pass over the records takes this long.
fn slow(folder: &Path, durability: Durability, takes: Duration) -> Answerer {
    let shard = Shard::load(&data(write(folder, "a.csv", "height\n150\n170\n"), BadRows::Stop), None).unwrap();
    let ledger = Ledger::open_kept(&settings(folder, durability)).unwrap();
    let mut answerer = Answerer::new("hospital-a".into(), open_policy(), budget(), shard, ledger, Noise::seeded(7))
        .with_members(Members::anyone());
    assert!(matches!(answerer.open(&open_request(MEAN_TOML)).unwrap(), Opening::Opened(..)));
    answerer.plant_model(JOB, |inner, _| Box::new(Watched(inner, Box::new(move || std::thread::sleep(takes)))));
    answerer
}

/// Returns everything that a party sends for queries at fixed times, heads included, and its final head.
fn left(template: &Path, durability: Durability, takes: Duration) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    for file in ["ledger.sqlite", "ledger.sqlite.key"] {
        std::fs::copy(template.join(file), folder.path().join(file)).unwrap();
    }
    stand_at(Some(1_000));
    let mut answerer = slow(folder.path(), durability, takes);
    let (outbox, mut inbox) = mpsc::channel(1);
    let mut left = Vec::new();
    for round in 0..20 {
        let request = query(round, &[(0, 0.0, 1e-4), (1, 0.0, -1e-4)]);
        answerer.take(2_000 + 10 * round as i64, Command::Query(request, Instant::now(), outbox.clone()));
        left.push(inbox.try_recv().unwrap().encode_to_vec());
    }
    answerer.take(9_000, Command::Close(v1::CloseJob { job: JOB.into(), reason: "done".into(), waits: false }));
    left.push(answerer.ledger().head().to_bytes());
    left
}

#[test]
fn answers_of_any_duration_give_the_same_heads() {
    for durability in MODES {
        let template = tempfile::tempdir().unwrap();
        settings(template.path(), durability).init().unwrap();
        let quick = left(template.path(), durability, Duration::ZERO);
        assert!(quick.windows(2).filter(|two| two[0] != two[1]).count() == quick.len() - 1);
        let long = left(template.path(), durability, Duration::from_millis(7));
        assert!(quick == long, "{durability:?}: the frames depend on how long an answer took");
    }
}

/// The same on the daemon's own thread, also for a message that waits for an earlier one: every time is that of an arrival.
#[tokio::test]
async fn the_times_in_a_ledger_are_those_at_which_messages_arrived() {
    for durability in MODES {
        let folder = tempfile::tempdir().unwrap();
        settings(folder.path(), durability).init().unwrap();
        let (answers, answering) = thread::start(slow(folder.path(), durability, Duration::from_millis(300))).unwrap();
        let (outbox, mut inbox) = mpsc::channel(8);
        for round in 0..2 {
            let request = query(round, &[(0, 0.0, 1e-4), (1, 0.0, -1e-4)]);
            answers.send(Command::Query(request, Instant::now(), outbox.clone())).await.map_err(|_| "gone").unwrap();
        }
        let sent = now_ms();
        inbox.recv().await.unwrap();
        inbox.recv().await.unwrap();
        let reader = rusqlite::Connection::open(folder.path().join("ledger.sqlite")).unwrap();
        let times = "SELECT count(*), max(time_ms) FROM (SELECT time_ms FROM charges UNION ALL SELECT time_ms FROM events)";
        let (entries, last): (u64, i64) = reader.query_row(times, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert!(
            entries >= 6 && last <= sent,
            "{durability:?}: {entries} entries, the last {} ms after the last message",
            last - sent
        );
        drop((reader, answers));
        answering.join().unwrap();
    }
}
