//! Sixty-four concurrent queries of several analysts, and budget for one of them.

use conclave_party::{init_ledger, run_with};
use conclave_privacy::accounting::{Budget, PrivacyFilter};
use conclave_privacy::mechanism::NoiseScale;
use conclave_proto::identity::Role;
use conclave_proto::v1::{self, coordinator_frame, party_frame};
use rusqlite::Connection;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::town::{SPEC, Session, Town, next};

const CLIENTS: u64 = 64;
const JOBS: u64 = 4;

fn query(ids: &[String], iteration: u64) -> coordinator_frame::Body {
    let noise_scale = NoiseScale::from_sd(1.0).unwrap().units();
    let proposals = vec![v1::Proposal { chain: 0, from: vec![0.0], to: vec![0.008], noise_scale, kind: 0 }];
    let job = ids[(iteration % JOBS) as usize].clone();
    coordinator_frame::Body::Query(v1::Query { job, iteration, proposals, attempt: 0 })
}

async fn status(session: &mut Session) -> Option<u32> {
    match session.receive().await {
        party_frame::Body::Answer(answer) => answer.status,
        other => panic!("{other:?}"),
    }
}

/// Returns the charge units spent, and the price of the last charge.
fn spent(ledger: &Connection) -> (u64, u64) {
    let sql = "SELECT coalesce(sum(charge), 0), coalesce(max(charge), 0) FROM charges";
    ledger.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_the_budget_goes_to_one_of_sixty_four() {
    let town = Town::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = town.config(listener.local_addr().unwrap().port());
    config.budget = Budget::new(3.0, 1e-6).unwrap();
    // Without it, only one of the jobs is open at a time.
    config.policy.over_commit = true;
    let limit = PrivacyFilter::new(&config.budget).unwrap().limit_units();
    init_ledger(&config).unwrap();
    let (mut sessions, server) = town.door(listener).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let party = tokio::spawn(run_with(config.clone(), None, async move { drop(stopped.await) }));
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    let mut ids = Vec::new();
    for job in 0..JOBS {
        let analyst = format!("analyst-{job}");
        town.enrol(Role::Analyst, &analyst, &[]);
        let open = town.job(&analyst, &SPEC.replace("\"mean\"", &format!("\"mean {job}\"")));
        ids.push(open.job.clone());
        session.send(coordinator_frame::Body::OpenJob(open)).await;
        assert!(matches!(session.receive().await, party_frame::Body::JobOpened(_)));
    }
    let ledger = Connection::open(&config.ledger).unwrap();
    let mut iteration = 1_000;
    let (before, price) = loop {
        session.send(query(&ids, iteration)).await;
        assert_eq!(status(&mut session).await, Some(0));
        iteration += 1;
        let (before, price) = spent(&ledger);
        if limit - before < 2 * price {
            break (before, price);
        }
    };
    assert!(limit - before >= price);
    // Queries do not wait for each other's answers.
    let sender = session.to.clone();
    tokio::spawn(async move {
        for iteration in 0..CLIENTS {
            sender.send(Ok(v1::CoordinatorFrame { body: Some(query(&ids, iteration)) })).await.unwrap();
        }
    });
    let mut won = 0;
    for _ in 0..CLIENTS {
        match status(&mut session).await {
            Some(0) => won += 1,
            other => assert_eq!(other, Some(1)),
        }
    }
    assert_eq!((won, spent(&ledger)), (1, (before + price, price)));
    stop.send(()).unwrap();
    drop(session);
    party.await.unwrap().unwrap();
    server.abort();
}
