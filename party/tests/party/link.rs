//! The link: attaching, breaking, coming back, stopping.

use std::path::Path;
use std::time::Duration;

use conclave_party::{PartyConfig, StartError, init_ledger, run_with};
use conclave_proto::v1::party_frame;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::town::{PATIENCE, Session, Town, next, query};

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

    // The stream breaks: the party dials again, and its open job goes on.
    drop(session);
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    assert_eq!(session.ask(0).await, first);

    // The coordinator dies and comes back on the same port.
    server.abort();
    let _ = server.await;
    drop((session, sessions));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (mut sessions, server) = town.door(listener).await;
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    assert_eq!(session.ask(0).await, first);

    // Told to stop, it finishes what is in hand.
    for iteration in 1..20 {
        session.send(query(iteration)).await;
    }
    let Session { to, mut from, .. } = session;
    assert!(timeout(PATIENCE, from.message()).await.unwrap().unwrap().is_some());
    stop.send(()).unwrap();
    let mut answers = 1;
    while let Ok(Some(_)) = timeout(PATIENCE, from.message()).await.unwrap() {
        answers += 1;
    }
    drop(to);
    assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
    assert!(answers >= 1);
    server.abort();

    // A party that starts anew answers from its ledger.
    drop(sessions);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = PartyConfig { coordinator: format!("https://{}", listener.local_addr().unwrap()), ..config };
    let (mut sessions, server) = town.door(listener).await;
    let (stop, party) = start(config, &ready);
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    // The same bytes but for the head, which has moved with this start.
    let again = session.ask(0).await;
    assert_eq!(again.head.len(), first.head.len());
    assert_ne!(again.head, first.head);
    assert_eq!(conclave_proto::v1::Answer { head: first.head.clone(), ..again }, first);
    drop(stop);
    drop(session);
    assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
    server.abort();
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
