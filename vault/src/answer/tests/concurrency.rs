//! Many clients compete for the last of the budget: the queue that the link feeds, and one thread behind it.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::time::Instant;

use conclave_privacy::accounting::Budget;
use conclave_privacy::mechanism::NoiseScale;
use conclave_proto::v1::{self, party_frame::Body};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use crate::answer::thread::Command;
use crate::answer::{Answerer, Opening, thread};
use crate::config::Policy;
use crate::data::BadRows;
use crate::data::Shard;
use crate::ledger::Ledger;
use crate::members::Members;
use crate::noise::Noise;
use crate::testing::{MEAN_TOML, data, open_policy, write};

const CLIENTS: u64 = 64;
const JOBS: u64 = 4;
const ROUNDS: u64 = 25;

fn budget() -> Budget {
    Budget::new(3.0, 1e-6).unwrap()
}

fn query(job: u64, iteration: u64) -> v1::Query {
    let noise_scale = NoiseScale::from_sd(1.0).unwrap().units();
    let proposals = vec![v1::Proposal { chain: 0, from: vec![0.0], to: vec![0.008], noise_scale, kind: 0 }];
    v1::Query { job: format!("job-{job}"), iteration, proposals, attempt: 0 }
}

/// Returns an answerer whose budget covers one more of these queries, and the price of one.
fn nearly_spent(folder: &std::path::Path) -> (Answerer, u64) {
    let path = write(folder, "a.csv", &format!("height\n{}", "150\n170\n".repeat(20)));
    let file = folder.join("ledger.sqlite");
    Ledger::init(&file, "hospital-a", &budget()).unwrap();
    let ledger = Ledger::open(&file, "hospital-a", &budget()).unwrap();
    let shard = Shard::load(&data(path, BadRows::Stop), None).unwrap();
    // Each job may spend the whole budget.
    let policy = Policy { over_commit: true, ..open_policy() };
    let mut answerer = Answerer::new("hospital-a".into(), policy, budget(), shard, ledger, Noise::from_os().unwrap())
        .with_members(Members::anyone());
    for job in 0..JOBS {
        let spec_toml = MEAN_TOML.replace("\"mean\"", &format!("\"mean {job}\""));
        let spec_digest = Sha256::digest(spec_toml.as_bytes()).to_vec();
        let open = v1::OpenJob {
            job: format!("job-{job}"),
            analyst: format!("analyst-{job}"),
            spec_toml,
            spec_digest,
            submission: None,
        };
        assert!(matches!(answerer.open(&open).unwrap(), Opening::Opened(..)));
    }
    let mut price = 0;
    for iteration in 1_000.. {
        let (spent, limit) = answerer.ledger().units();
        if price > 0 && limit - spent < 2 * price {
            assert!(limit - spent >= price);
            return (answerer, price);
        }
        assert_eq!(answerer.answer(query(iteration % JOBS, iteration)).status, Some(0));
        price = answerer.ledger().units().0 - spent;
    }
    unreachable!("the budget is spent some time")
}

/// All clients send queries at the same time, `distinct` different ones among them.
async fn race(distinct: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (answerer, price) = nearly_spent(folder.path());
    let (before, limit) = answerer.ledger().units();
    let answers = answerer.ledger().state().answers();
    let (desk, answering) = thread::start(answerer).unwrap();
    let start = std::sync::Arc::new(tokio::sync::Barrier::new(CLIENTS as usize));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (desk, start) = (desk.clone(), start.clone());
            tokio::spawn(async move {
                let (outbox, mut replies) = mpsc::channel(4);
                let content = client % distinct;
                let query = query(content % JOBS, content);
                start.wait().await;
                desk.send(Command::Query(query, Instant::now(), outbox)).await.unwrap();
                match replies.recv().await.unwrap().body.unwrap() {
                    Body::Answer(answer) => (content, answer),
                    other => panic!("{other:?}"),
                }
            })
        })
        .collect();
    drop(desk);
    let (mut won, mut lost) = (HashSet::new(), 0);
    for client in clients {
        let (content, answer) = client.await.unwrap();
        match answer.status {
            Some(0) => drop(won.insert((content, answer.releases))),
            Some(1) => lost += 1,
            other => panic!("{other:?}"),
        }
    }
    // Anyone who asked the winner's query got the winner's number.
    assert_eq!(won.len(), 1, "{won:?}");
    assert_eq!(lost, CLIENTS - CLIENTS / distinct);
    tokio::task::spawn_blocking(move || answering.join().unwrap()).await.unwrap();
    let ledger = Ledger::open(&folder.path().join("ledger.sqlite"), "hospital-a", &budget()).unwrap();
    assert_eq!(ledger.units(), (before + price, limit));
    assert_eq!(ledger.state().answers(), answers + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_sixty_four_clients_exactly_one_gets_the_last_of_the_budget() {
    for _ in 0..ROUNDS {
        race(CLIENTS).await;
        race(CLIENTS / 4).await;
    }
}
