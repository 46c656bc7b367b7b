//! The link: attaching, breaking, reconnecting, stopping.

use std::path::Path;
use std::time::Duration;

use conclave_party::{PartyConfig, StartError, init_ledger, run_with};
use conclave_proto::identity::Role;
use conclave_proto::v1::{self, coordinator_frame, party_frame};
use conclave_proto::{OLDEST_PROTOCOL, PROTOCOL};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::Status;

use crate::town::{PATIENCE, SPEC, Session, Town, next, query};

fn start(config: PartyConfig, ready: &Path) -> (oneshot::Sender<()>, JoinHandle<Result<(), StartError>>) {
    let (stop, stopped) = oneshot::channel();
    let ready = Some(ready.to_owned());
    (stop, tokio::spawn(run_with(config, ready, async move { drop(stopped.await) })))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_party_attaches_answers_and_comes_back() {
    let town = Town::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = town.config(port);
    init_ledger(&config).unwrap();
    let ready = town.path("ready");
    let (mut sessions, server) = town.door(listener).await;
    let (stop, party) = start(config.clone(), &ready);

    let mut session = next(&mut sessions).await;
    assert_eq!(session.name, "hospital-a");
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(o) if o.records == 2));
    assert!(ready.exists());
    let first = session.ask(0).await;
    assert_eq!(first.status, Some(0));
    assert_eq!(session.ask(0).await, first);

    // The stream breaks: the party redials, and its open job continues.
    drop(session);
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    assert_eq!(session.ask(0).await, first);

    // The coordinator stops and comes back on the same port.
    server.abort();
    let _ = server.await;
    drop((session, sessions));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (mut sessions, server) = town.door(listener).await;
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    assert_eq!(session.ask(0).await, first);

    // Asked to stop, the party finishes its current answers.
    for iteration in 1..20 {
        session.send(query(&session.job.job, iteration)).await;
    }
    let Session { to, mut from, .. } = session;
    assert!(timeout(PATIENCE, from.message()).await.unwrap().unwrap().is_some());
    stop.send(()).unwrap();
    let mut answers = 1 + 1;
    while let Ok(Some(_)) = timeout(PATIENCE, from.message()).await.unwrap() {
        answers += 1;
    }
    drop(to);
    assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
    server.abort();
    // Every charged answer was sent.
    let ledger = rusqlite::Connection::open(&config.ledger).unwrap();
    let charged: u64 = ledger.query_row("SELECT count(DISTINCT iteration) FROM releases", [], |row| row.get(0)).unwrap();
    assert_eq!(charged, answers);

    // A restarted party answers from its ledger.
    drop(sessions);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = PartyConfig { coordinator: format!("https://{}", listener.local_addr().unwrap()), ..config };
    let (mut sessions, server) = town.door(listener).await;
    let (stop, party) = start(config, &ready);
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    // The same bytes except for the head, which has moved with this start.
    let again = session.ask(0).await;
    assert_eq!(again.head.len(), first.head.len());
    assert_ne!(again.head, first.head);
    assert_eq!(conclave_proto::v1::Answer { head: first.head.clone(), ..again }, first);
    drop(stop);
    drop(session);
    assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
    server.abort();
}

/// If retrying can't help, a party waits long; a broken link is redialled immediately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_with_no_protocol_in_common_is_not_dialled_again_soon() {
    use conclave_proto::error::{ErrorCode, Fault};
    let welcome = |protocol| {
        let welcome = v1::Welcome { protocol, software: "conclave-coordinator 9".into(), head: Vec::new() };
        Ok(v1::CoordinatorFrame { body: Some(coordinator_frame::Body::Welcome(welcome)) })
    };
    let refused = Fault::new(
        ErrorCode::InvalidInput,
        "the coordinator speaks protocols 2 to 3 and the party protocol 1: upgrade the party's",
    );
    for (said, returns) in [
        (welcome(PROTOCOL + 1), false),
        (welcome(0), false),
        (Err(refused.into()), false),
        (Err(Status::unavailable("later")), true),
    ] {
        let town = Town::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = town.config(listener.local_addr().unwrap().port());
        init_ledger(&config).unwrap();
        let (mut sessions, server) = town.door(listener).await;
        let (stop, party) = start(config, &town.path("ready"));
        let mut session = next(&mut sessions).await;
        match session.receive().await {
            party_frame::Body::Hello(hello) => assert_eq!((hello.oldest, hello.protocol), (OLDEST_PROTOCOL, PROTOCOL)),
            other => panic!("{other:?}"),
        }
        session.to.send(said.clone()).await.unwrap();
        let again = timeout(Duration::from_secs(2), sessions.recv()).await;
        assert_eq!(again.is_ok(), returns, "{said:?}");
        assert!(!town.path("ready").exists(), "{said:?}");
        stop.send(()).unwrap();
        drop((session, again));
        assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
        server.abort();
    }
}

#[tokio::test]
async fn what_is_wrong_at_the_start_is_said_before_anything_is_dialled() {
    let town = Town::new();
    let config = town.config(1);
    let never = || std::future::pending::<()>();
    let missing = run_with(config.clone(), None, never()).await.unwrap_err();
    assert!(missing.to_string().contains("init") && missing.exit_code() == 2, "{missing}");
    init_ledger(&config).unwrap();
    let again = init_ledger(&config).unwrap_err();
    assert_eq!(again.exit_code(), 2);
    let named = PartyConfig { name: "hospital-b".into(), ..config.clone() };
    let wrong = run_with(named, None, never()).await.unwrap_err();
    assert!(wrong.to_string().contains("hospital-b") && wrong.exit_code() == 2, "{wrong}");
    std::fs::write(town.path("a.csv"), "height\n170\ntall\n").unwrap();
    let bad = run_with(config, None, never()).await.unwrap_err();
    assert!(bad.to_string().contains("line 3") && bad.exit_code() == 2, "{bad}");
}

/// Attacks by a coordinator: invented, changed or renamed jobs, and an old signature under a new id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_its_analyst_has_not_signed_is_opened_for_nobody() {
    let town = Town::new();
    town.enrol(Role::Analyst, "mallory", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = town.config(listener.local_addr().unwrap().port());
    init_ledger(&config).unwrap();
    let (mut sessions, server) = town.door(listener).await;
    let (stop, party) = start(config.clone(), &town.path("ready"));
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));

    let good = session.job.clone();
    let mallorys = town.job("mallory", SPEC);
    let greedy = SPEC.replace("epsilon = 3.0", "epsilon = 8.0");
    let attacks = [
        v1::OpenJob { submission: None, job: "fresh".into(), ..good.clone() },
        v1::OpenJob { job: "00000000-0000-8000-a000-000000000000".into(), ..good.clone() },
        v1::OpenJob { analyst: "mallory".into(), ..good.clone() },
        v1::OpenJob { analyst: "alice".into(), ..mallorys.clone() },
        v1::OpenJob { spec_toml: greedy.clone(), spec_digest: Sha256::digest(greedy.as_bytes()).to_vec(), ..good.clone() },
        v1::OpenJob { submission: mallorys.submission.clone(), ..good.clone() },
        // Signed by the coordinator itself.
        town.forged("hall", "alice", SPEC),
    ];
    for attack in attacks {
        session.send(coordinator_frame::Body::OpenJob(attack.clone())).await;
        match session.receive().await {
            party_frame::Body::JobRefused(refused) => assert_eq!(refused.code, "unauthenticated", "{attack:?}: {refused:?}"),
            other => panic!("{attack:?}: {other:?}"),
        }
    }
    // The same signature again is the same job again.
    session.send(coordinator_frame::Body::OpenJob(good)).await;
    assert!(matches!(session.receive().await, party_frame::Body::JobOpened(_)));
    drop(stop);
    drop(session);
    assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
    server.abort();
    let ledger = rusqlite::Connection::open(&config.ledger).unwrap();
    let jobs: u64 = ledger.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
    assert!(jobs <= 1, "{jobs}");
}

/// An analyst is revoked, then the coordinator itself: the list is read again when it changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_revoked_count_for_nothing() {
    let town = Town::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let list = town.path("revoked.txt");
    std::fs::write(&list, "# nobody yet\n").unwrap();
    let config = PartyConfig { revoked: Some(list.clone()), ..town.config(listener.local_addr().unwrap().port()) };
    init_ledger(&config).unwrap();
    let (mut sessions, server) = town.door(listener).await;
    let (stop, party) = start(config.clone(), &town.path("ready"));
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    assert_eq!(session.ask(0).await.status, Some(0));

    std::fs::write(&list, "analyst/alice\n").unwrap();
    session.send(coordinator_frame::Body::OpenJob(session.job.clone())).await;
    match session.receive().await {
        party_frame::Body::JobRefused(refused) => {
            assert!(refused.code == "revoked" && refused.reason.contains("analyst/alice is revoked"), "{refused:?}");
        }
        other => panic!("{other:?}"),
    }
    // The revoked analyst's running job has ended.
    assert_ne!(session.ask(1).await.status, Some(0));

    // The party does not reconnect to a revoked coordinator.
    std::fs::write(&list, "coordinator/hall\n").unwrap();
    drop(session);
    assert!(timeout(Duration::from_secs(2), sessions.recv()).await.is_err());
    stop.send(()).unwrap();
    assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
    server.abort();
}

/// A query that is too long is refused by a reply. A party that gave up its stream would be asked the same at every reconnection, and other
/// jobs would wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_is_too_long_is_refused_and_the_stream_stays() {
    let town = Town::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = town.config(listener.local_addr().unwrap().port());
    init_ledger(&config).unwrap();
    let (mut sessions, server) = town.door(listener).await;
    let (stop, party) = start(config, &town.path("ready"));
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    let coordinator_frame::Body::Query(good) = query(&session.job.job, 0) else { panic!("no query") };
    let long = |proposals: usize, numbers: usize| {
        let one = |chain| v1::Proposal { chain, from: vec![0.5; numbers], to: vec![0.5; numbers], ..good.proposals[0].clone() };
        v1::Query { proposals: (0..proposals as u32).map(one).collect(), ..good.clone() }
    };
    for too_long in [long(1, 1 << 16), long(257, 1), long(256, 1 << 10)] {
        session.send(coordinator_frame::Body::Query(too_long)).await;
        match session.receive().await {
            // Malformed, and with the ledger's head as any answer.
            party_frame::Body::Answer(answer) => assert_eq!((answer.status, answer.head.len()), (Some(2), 72)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(session.ask(0).await.status, Some(0));
    stop.send(()).unwrap();
    drop(session);
    assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
    server.abort();
}
