#![allow(clippy::unwrap_used)]
mod place;
mod wal;

use std::sync::Arc;

use conclave_common::query::PartyMetadata;
use rusqlite::Connection;

use super::*;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_proto::error::{ErrorCode, Fault};

fn new_job(id: &str) -> NewJob {
    let job = SubmittedJob {
        id: id.to_owned(),
        name: "readmission".to_owned(),
        analyst: "alice".to_owned(),
        spec: "name = 'readmission'".to_owned(),
        submitted_ms: 1_700_000_000_000,
        submission: vec![1, 2],
        protocol: 2,
    };
    NewJob { job, parties: vec!["a".to_owned(), "b".to_owned()] }
}

fn settled(store: &Store) -> Result<(), StoreError> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(store.barrier())
}

fn rounds(store: &Store, job: &str) -> Vec<LoggedRound> {
    let mut all = Vec::new();
    store
        .replay::<StoreError>(job, 2, |round| {
            all.push(round);
            Ok(())
        })
        .unwrap();
    all
}

/// Jobs and releases are private to the coordinator's user, whatever the umask, even if an earlier version left them open.
#[test]
#[cfg(unix)]
fn a_store_is_its_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    for round in 0..2 {
        let (store, _) = Store::open(&path).unwrap();
        store.insert_job(new_job(&format!("job-{round}")));
        settled(&store).unwrap();
        for suffix in ["", "-wal", "-shm", ".lock"] {
            let file = folder.path().join(format!("c.sqlite{suffix}"));
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{suffix}");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        drop(store);
    }
}

#[test]
fn a_job_and_its_log_survive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/coordinator.sqlite");
    let (store, loaded) = Store::open(&path).unwrap();
    assert!(loaded.jobs.is_empty() && loaded.parties.is_empty());
    store.insert_job(new_job("j1"));
    store.insert_job(new_job("j2"));
    let person = PrivacyUnit::person(Adjacency::AddRemove, 3).unwrap();
    store.set_metadata("j1", 0, PartyMetadata::rows(100));
    store.set_metadata("j1", 1, PartyMetadata::new(person, 7));
    store.seen("a", "x 1", 5);
    store.seen("a", "x 2", 6);
    store.store_certificate("a", "ab01");
    store.store_certificate("a", "ab02");
    let id: Arc<str> = "j1".into();
    let logged: Vec<_> = (0..500u64)
        .map(|i| LoggedRound { iteration: i, elapsed_us: 3 * i, releases: vec![vec![i as i64, i64::MIN], vec![-1, i64::MAX]] })
        .collect();
    for round in &logged {
        store.log_round(&id, round.iteration, round.elapsed_us, &round.releases).unwrap();
    }
    settled(&store).unwrap();
    assert_eq!(rounds(&store, "j1"), logged);
    assert!(rounds(&store, "j2").is_empty());
    store.close();
    assert!(store.log_round(&id, 500, 0, &[vec![1], vec![2]]).is_err(), "a closed store takes no rounds");
    assert!(settled(&store).is_err());
    drop(store);

    let (store, loaded) = Store::open(&path).unwrap();
    assert_eq!(rounds(&store, "j1"), logged);
    assert_eq!(loaded.jobs.len(), 2);
    assert_eq!(loaded.jobs[0].state, "queued");
    assert_eq!(loaded.jobs[0].parties[0].metadata, Some(PartyMetadata::rows(100)));
    assert_eq!(loaded.jobs[0].parties[1].metadata, Some(PartyMetadata::new(person, 7)));
    assert_eq!(loaded.jobs[1].parties[1].metadata, None);
    assert_eq!(loaded.parties.into_iter().collect::<Vec<_>>(), ["a"]);
    assert_eq!(loaded.certificates.into_iter().collect::<Vec<_>>(), [("a".to_owned(), "ab02".to_owned())]);
    assert!(loaded.software.contains_key("a"));
}

/// A store of an earlier build has no certificates; it can be inspected before a coordinator of this build has opened it.
#[test]
fn a_store_without_certificates_is_read_and_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    Store::open(&path).unwrap().0.close();
    Connection::open(&path).unwrap().execute_batch("DROP TABLE certificates").unwrap();
    inspect(&path).unwrap();
    let (store, loaded) = Store::open(&path).unwrap();
    assert!(loaded.certificates.is_empty());
    store.store_certificate("a", "ab01");
    settled(&store).unwrap();
}

/// A store of the previous build has no column for the protocol, and its jobs were accepted under protocol 1.
#[test]
fn a_store_of_protocol_1_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let (store, _) = Store::open(&path).unwrap();
    store.insert_job(new_job("before"));
    store.close();
    drop(store);
    Connection::open(&path).unwrap().execute_batch("ALTER TABLE jobs DROP COLUMN protocol").unwrap();
    let (store, loaded) = Store::open(&path).unwrap();
    assert_eq!(loaded.jobs[0].job.protocol, 1);
    store.insert_job(new_job("after"));
    store.close();
    drop(store);
    let (_store, loaded) = Store::open(&path).unwrap();
    assert_eq!(loaded.jobs.iter().map(|row| row.job.protocol).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn an_end_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let (store, _) = Store::open(&path).unwrap();
    store.insert_job(new_job("j1"));
    let fault = Fault::new(ErrorCode::Budget, "no budget left").at_party("b");
    store.end_job(JobEnd {
        id: "j1".to_owned(),
        state: "failed",
        run: RunEnd {
            iterations: 12,
            draws: 3,
            acceptance_rate: 0.5,
            seconds: 1.25,
            fault: Some(fault.clone()),
            result: Some("{}".to_owned()),
        },
        at_ms: 1_700_000_000_123,
        spent: vec![(48, 1 << 40), (44, 7)],
    });
    store.close();
    drop(store);
    let (_store, loaded) = Store::open(&path).unwrap();
    let job = &loaded.jobs[0];
    assert_eq!((job.state.as_str(), job.run.iterations, job.run.draws), ("failed", 12, 3));
    assert_eq!(job.run.fault, Some(fault));
    assert_eq!(job.parties[0].charge_units, 1 << 40);
    assert_eq!(job.parties[1].queries, 44);
    let ended = ended_jobs(&path).unwrap();
    assert_eq!((ended.len(), ended[0].has_draws, ended[0].ended_ms), (1, true, Some(1_700_000_000_123)));
}

#[test]
fn the_waits_of_a_job_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let (store, _) = Store::open(&path).unwrap();
    store.insert_job(new_job("j1"));
    store.store_waits("j1", vec![Some(5), Some(7)]);
    store.store_waits("j1", vec![None, Some(9)]);
    store.close();
    drop(store);
    let (_store, loaded) = Store::open(&path).unwrap();
    let waits: Vec<Option<i64>> = loaded.jobs[0].parties.iter().map(|party| party.waiting_since_ms).collect();
    assert_eq!(waits, [None, Some(9)]);
}

/// A store of an earlier build lacks columns. It is read as it is by commands that change nothing, and taken over by a coordinator.
#[test]
fn a_store_without_ends_and_waits_is_read_and_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let (store, _) = Store::open(&path).unwrap();
    store.insert_job(new_job("j1"));
    store.close();
    drop(store);
    let earlier = "ALTER TABLE jobs DROP COLUMN ended_ms; ALTER TABLE job_parties DROP COLUMN waiting_since_ms;
                   UPDATE jobs SET state = 'finished'";
    Connection::open(&path).unwrap().execute_batch(earlier).unwrap();
    assert_eq!(inspect(&path).unwrap(), (1, 0));
    assert_eq!(ended_jobs(&path).unwrap()[0].ended_ms, None);
    let (store, loaded) = Store::open(&path).unwrap();
    assert_eq!((loaded.jobs.len(), loaded.jobs[0].parties[0].waiting_since_ms), (1, None));
    store.store_waits("j1", vec![Some(5), None]);
    settled(&store).unwrap();
    assert_eq!(ended_jobs(&path).unwrap()[0].ended_ms, None);
}

#[test]
fn one_coordinator_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let (store, _) = Store::open(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Locked(_)), "{error}");
    assert!(error.to_string().contains("c.sqlite"));
    store.close();
    drop(store);
    Store::open(&path).unwrap();
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    assert!(matches!(Store::open(&path).unwrap_err(), StoreError::Foreign { .. }));
    let path = folder.path().join("text.sqlite");
    std::fs::write(&path, "not a database, but long enough to be read as one".repeat(40)).unwrap();
    assert!(matches!(Store::open(&path).unwrap_err(), StoreError::Foreign { .. }));
}

#[test]
fn a_failed_write_stops_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&folder.path().join("c.sqlite")).unwrap();
    store.insert_job(new_job("j1"));
    let id: Arc<str> = "j1".into();
    store.log_round(&id, 0, 0, &[vec![1], vec![2]]).unwrap();
    store.log_round(&id, 0, 0, &[vec![1], vec![2]]).unwrap();
    let outcome = settled(&store);
    assert!(outcome.is_err(), "the same round twice must not be committed");
    assert!(store.log_round(&id, 1, 0, &[vec![1], vec![2]]).is_err());
    assert!(rounds(&store, "j1").is_empty());
}

/// SQLite's own check skips the bytes of values, but no 4 KiB of them lack a page's head.
#[test]
fn four_kibibytes_flipped_anywhere_are_noticed_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let (store, _) = Store::open(&path).unwrap();
    for job in 0..6 {
        let mut new = new_job(&format!("j{job}"));
        new.job.spec = format!("name = '{}'", "x".repeat(100 + 1500 * job));
        store.insert_job(new);
        let id: Arc<str> = format!("j{job}").as_str().into();
        for i in 0..100u64 {
            store.log_round(&id, i, i, &[vec![i as i64 * 0x1234_5678_9abc; 4], vec![-7 * i as i64; 4]]).unwrap();
        }
    }
    settled(&store).unwrap();
    store.close();
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    assert!(whole.len() > 20 * 4096 && !folder.path().join("c.sqlite-wal").exists());
    for at in (0..whole.len() - 4096).step_by(1024) {
        let mut bytes = whole.clone();
        bytes[at..at + 4096].iter_mut().for_each(|b| *b ^= 0xff);
        std::fs::write(&path, &bytes).unwrap();
        let error = Store::open(&path).unwrap_err();
        let (kind, words) = (matches!(error, StoreError::Damaged { .. } | StoreError::Foreign { .. }), error.to_string());
        assert!(kind && words.contains("c.sqlite") && words.contains("newest backup"), "{at}: {words}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{at}: it is left unchanged");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(Store::open(&path).unwrap().1.jobs.len(), 6);
}

#[test]
fn a_copy_is_of_one_moment_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("c.sqlite"), folder.path().join("copy.sqlite"));
    let (store, _) = Store::open(&path).unwrap();
    store.insert_job(new_job("j1"));
    store.log_round(&"j1".into(), 0, 0, &[vec![1], vec![2]]).unwrap();
    settled(&store).unwrap();
    copy(&path, &to).unwrap();
    store.insert_job(new_job("j2"));
    settled(&store).unwrap();
    assert_eq!((inspect(&path).unwrap(), inspect(&to).unwrap()), ((2, 1), (1, 1)));
    assert!(!folder.path().join("copy.sqlite-wal").exists());
    assert_eq!(Store::open(&to).unwrap().1.jobs.len(), 1, "a coordinator starts on it");
    assert!(ended_jobs(&path).unwrap().is_empty());
}
