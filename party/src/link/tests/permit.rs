//! Queries of a job whose permit has expired.
#![allow(clippy::unwrap_used)]
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use conclave_ops::Clock;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::tls::ProxySettings;
use conclave_vault::answer::{Answerer, thread};
use conclave_vault::consent::{ConsentStore, Decider, Standing};
use conclave_vault::data::{BadRows, Shard};
use conclave_vault::ledger::Ledger;
use conclave_vault::members::Members;
use conclave_vault::noise::Noise;
use conclave_vault::testing::{JOB, MEAN_TOML, budget, data, open_policy, open_request, query, write};
use sha2::{Digest, Sha256};

use super::*;

static NOW: AtomicI64 = AtomicI64::new(0);
const DAY_MS: i64 = 86_400_000;

/// Approves the job through tomorrow; returns the first moment after that.
fn approve(ledger: &Path) -> i64 {
    let tomorrow = Clock::Party.now_ms() / DAY_MS + 1;
    let day = time::OffsetDateTime::from_unix_timestamp(tomorrow * 86_400).unwrap().date();
    let mut store = ConsentStore::open(ledger).unwrap();
    let digest: [u8; 32] = Sha256::digest(MEAN_TOML.as_bytes()).into();
    store.ask(&open_request(MEAN_TOML), &digest).unwrap();
    let permit = format!("{{\"until\":\"{day}\"}}");
    store.decide_under(JOB, Standing::Approved, Decider::Owner, "", Some(&permit)).unwrap();
    (tomorrow + 1) * DAY_MS
}

fn link(folder: &Path, ledger: &Path) -> Link {
    let shard = Shard::load(&data(write(folder, "a.csv", "height\n150\n160\n"), BadRows::Stop), None).unwrap();
    let book = Ledger::open(ledger, "hospital-a", &budget()).unwrap();
    let permits = Permits::with_clock(ledger, || NOW.load(Ordering::SeqCst)).unwrap();
    let answerer = Answerer::new("hospital-a".into(), open_policy(), budget(), shard, book, Noise::from_os().unwrap())
        .with_members(Members::anyone())
        .with_consent(ConsentStore::open(ledger).unwrap())
        .permitted_by(Box::new(permits.clone()));
    let dial = Dial {
        party: "hospital-a".into(),
        coordinator: "https://c".into(),
        proxy: ProxySettings::default(),
        identity: folder.to_owned(),
        key: folder.to_owned(),
        revoked: None,
    };
    Link { dial, answers: thread::start(answerer).unwrap().0, ready_file: None, presence: Announcement::new(ledger), permits }
}

fn events(ledger: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(ledger).unwrap();
    let mut select = connection.prepare("SELECT kind FROM events WHERE job > 0 ORDER BY seq").unwrap();
    select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn charges(ledger: &Path) -> u64 {
    rusqlite::Connection::open(ledger).unwrap().query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).unwrap()
}

/// The session refuses the query itself: the vault never sees it, nothing is charged, and the job is let go. The consent stays.
#[tokio::test]
async fn a_query_after_the_last_day_does_not_reach_the_vault() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger.sqlite");
    Ledger::init(&ledger, "hospital-a", &budget()).unwrap();
    let end = approve(&ledger);
    let mut link = link(folder.path(), &ledger);
    let (outbox, mut inbox) = mpsc::channel(8);
    let ask = |body: coordinator_frame::Body| v1::CoordinatorFrame { body: Some(body) };
    let mut stage = Stage::Attached;
    let mut said = async |body: coordinator_frame::Body, link: &mut Link| {
        let taken = link.take(ask(body), None, std::time::Instant::now(), &outbox, &mut stage).await;
        assert!(matches!(taken, Ok(Ok(()))));
        timeout(Duration::from_secs(60), inbox.recv()).await.unwrap().unwrap().body.unwrap()
    };
    let opened = said(coordinator_frame::Body::OpenJob(open_request(MEAN_TOML)), &mut link).await;
    assert!(matches!(opened, Body::JobOpened(_)), "{opened:?}");
    let answer = said(coordinator_frame::Body::Query(query(0, &[(0, 0.0, 1e-4)])), &mut link).await;
    assert!(matches!(&answer, Body::Answer(a) if a.status == Some(AnswerStatus::Released.to_wire())), "{answer:?}");
    assert_eq!(charges(&ledger), 1);

    NOW.store(end, Ordering::SeqCst);
    let refused = said(coordinator_frame::Body::Query(query(1, &[(0, 0.0, 1e-4)])), &mut link).await;
    let Body::JobRefused(refused) = refused else { panic!("{refused:?}") };
    assert!(
        refused.code == "revoked" && refused.reason.contains("hospital-a no longer answers this job: permit_expired: "),
        "{refused:?}"
    );
    link.answers.flush().await;
    let standing = ConsentStore::open(&ledger).unwrap().standing(JOB).unwrap();
    assert_eq!((charges(&ledger), standing), (1, Some(Standing::Approved)));
    assert_eq!(events(&ledger), ["approve", "lapse", "close"]);

    // A clock that is set back opens it no more.
    NOW.store(0, Ordering::SeqCst);
    let again = said(coordinator_frame::Body::OpenJob(open_request(MEAN_TOML)), &mut link).await;
    assert!(matches!(&again, Body::JobRefused(refused) if refused.code == "revoked"), "{again:?}");
}
