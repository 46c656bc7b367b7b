//! Renewal of a certificate while the party is attached.

use std::time::Duration;

use conclave_party::{init_ledger, run_with};
use conclave_proto::ca::{self, KeyedPem};
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::v1::party_frame;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::town::{PATIENCE, Session, Town, next, validity};

/// Time within which the party has checked its files.
const LOOKED: Duration = Duration::from_millis(2500);

fn file(town: &Town, name: &str) -> String {
    std::fs::read_to_string(town.path("hospital-a").join(name)).unwrap()
}

fn put(town: &Town, name: &str, text: &str) {
    std::fs::write(town.path("hospital-a").join(name), text).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks that the session continues and no other one begins.
async fn session_continues(session: &mut Session, sessions: &mut mpsc::Receiver<Session>, iteration: u64) {
    assert!(timeout(LOOKED, sessions.recv()).await.is_err(), "the party has dialled again");
    assert_eq!(session.ask(iteration).await.status, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_is_taken_up_and_one_that_can_not_be_used_is_not() {
    let town = Town::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = town.config(listener.local_addr().unwrap().port());
    init_ledger(&config).unwrap();
    let (mut sessions, server) = town.door(listener).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let party = tokio::spawn(run_with(config, None, async move { drop(stopped.await) }));
    let mut session = next(&mut sessions).await;
    assert!(matches!(session.open().await, party_frame::Body::JobOpened(_)));
    let first = session.ask(0).await;

    // Half of a renewal: the new certificate beside the old key.
    let ca_pem = file(&town, "ca.pem");
    let renewed = town.issue(Role::Party, "hospital-a", &[]);
    put(&town, "certificate.pem", &renewed.pem);
    session_continues(&mut session, &mut sessions, 1).await;
    put(&town, "certificate.pem", "");
    // A certificate by a CA that the coordinator does not know: it loads here but is not accepted there.
    let other = ca::create_ca("other", validity()).unwrap();
    let KeyedPem { pem, key_pem } =
        ca::issue(&other, &PeerIdentity::new(Role::Party, "hospital-a").unwrap(), &[], validity()).unwrap();
    put(&town, "ca.pem", &format!("{ca_pem}{}", other.pem));
    put(&town, "key.pem", &key_pem);
    put(&town, "certificate.pem", &pem);
    session_continues(&mut session, &mut sessions, 2).await;

    // A complete renewal.
    put(&town, "ca.pem", &ca_pem);
    put(&town, "key.pem", &renewed.key_pem);
    put(&town, "certificate.pem", &renewed.pem);
    let mut again = next(&mut sessions).await;
    assert_ne!(again.certificate, session.certificate);
    assert_eq!(ca::fingerprint(&renewed.pem).unwrap(), hex(&Sha256::digest(&again.certificate)));
    // The old session ended in good order, and the job continues where it was.
    assert!(matches!(timeout(PATIENCE, session.from.message()).await.unwrap(), Ok(None)));
    drop(session);
    assert!(matches!(again.open().await, party_frame::Body::JobOpened(_)));
    assert_eq!(again.ask(0).await.releases, first.releases);
    // Nothing has changed since: the session stays.
    session_continues(&mut again, &mut sessions, 3).await;
    stop.send(()).unwrap();
    drop(again);
    assert!(timeout(PATIENCE, party).await.unwrap().unwrap().is_ok());
    server.abort();
}
