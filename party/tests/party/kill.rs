//! kill -9 at any moment: no id has two answers, and every released number is charged.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use conclave_party::init_ledger;
use conclave_proto::v1::party_frame;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::town::{Session, Town, next, query};

fn spawn(town: &Town) -> Child {
    Command::new(env!("CARGO_BIN_EXE_conclave-party"))
        .args(["run", "--exit-with-stdin", "--config"])
        .arg(town.path("party.toml"))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Sends round after round, two at a time, until the party dies; records its answers.
async fn ask_until_death(session: &mut Session, answers: &mut HashMap<u64, Vec<i64>>, from: u64) -> u64 {
    let mut last = from;
    for iteration in from.. {
        for round in [iteration, iteration + 1] {
            if session.to.send(Ok(query_frame(&session.job.job, round))).await.is_err() {
                return last;
            }
        }
        for _ in 0..2 {
            match timeout(Duration::from_secs(20), session.from.message()).await.unwrap() {
                Ok(Some(frame)) => match frame.body.unwrap() {
                    party_frame::Body::Answer(answer) => {
                        assert_eq!(answer.status, Some(0));
                        last = answer.iteration;
                        let first = answers.entry(last).or_insert_with(|| answer.releases.clone());
                        assert_eq!(*first, answer.releases, "iteration {last} was answered twice");
                    }
                    other => panic!("{other:?}"),
                },
                _ => return last,
            }
        }
    }
    last
}

fn query_frame(job: &str, iteration: u64) -> conclave_proto::v1::CoordinatorFrame {
    conclave_proto::v1::CoordinatorFrame { body: Some(query(job, iteration)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_twenty_times_a_party_never_says_two_things() {
    let town = Town::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = town.config(listener.local_addr().unwrap().port());
    init_ledger(&config).unwrap();
    let (mut sessions, server) = town.door(listener).await;
    let mut answers = HashMap::new();
    let mut at = 0;
    for round in 0..20u64 {
        let mut child = spawn(&town);
        let mut session = next(&mut sessions).await;
        assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
        // Moments spread over the few milliseconds of a round.
        let killer = tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_micros(5_000 + round * 1_730));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        at = ask_until_death(&mut session, &mut answers, at).await;
        killer.await.unwrap();
    }
    server.abort();
    let ledger = rusqlite::Connection::open(&config.ledger).unwrap();
    let mut released = ledger.prepare("SELECT released FROM releases WHERE iteration = ?1 ORDER BY chain").unwrap();
    for (iteration, values) in &answers {
        let rows: Vec<i64> = released.query_map([*iteration], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows, *values, "iteration {iteration}");
    }
    let charges: usize = ledger.query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).unwrap();
    assert!(answers.len() > 20, "{}", answers.len());
    // Two chains per round; per life, at most two rounds were sent without an answer being received.
    assert!(charges >= 2 * answers.len() && charges <= 2 * (answers.len() + 2 * 20), "{charges} for {}", answers.len());
}
