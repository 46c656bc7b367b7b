#![allow(clippy::unwrap_used)]
use tempfile::TempDir;

use conclave_proto::v1;
use rusqlite::Connection;

use super::store::{LONGEST_JOB, MOST_AWAITING, MOST_AWAITING_OF_ONE};
use super::*;
use crate::testing::{JOB, MEAN_TOML, open_request};

fn digest(request: &v1::OpenJob) -> [u8; 32] {
    request.spec_digest.as_slice().try_into().unwrap()
}

fn store() -> (TempDir, ConsentStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = ConsentStore::open(&folder.path().join("ledger.sqlite")).unwrap();
    (folder, store)
}

#[test]
fn a_job_awaits_until_its_owner_decides_and_decisions_last() {
    let (folder, mut store) = store();
    let request = open_request(MEAN_TOML);
    assert_eq!(store.standing(JOB).unwrap(), None);
    assert!(matches!(store.decide(JOB, Standing::Approved, Decider::Owner, ""), Err(ConsentError::Unknown(_))));
    assert_eq!(store.ask(&request, &digest(&request)).unwrap(), Standing::Awaiting);
    assert_eq!(store.ask(&request, &digest(&request)).unwrap(), Standing::Awaiting);
    store.decide(JOB, Standing::Approved, Decider::Owner, "").unwrap();
    drop(store);
    let mut store = ConsentStore::open(&folder.path().join("ledger.sqlite")).unwrap();
    assert_eq!(store.ask(&request, &digest(&request)).unwrap(), Standing::Approved);
    store.decide(JOB, Standing::Revoked, Decider::Owner, "the study ended").unwrap();
    assert_eq!(store.ask(&request, &digest(&request)).unwrap(), Standing::Revoked);
    let shown = store.request(JOB).unwrap();
    assert_eq!((shown.standing(), shown.digest_hex().len()), (Standing::Revoked, 64));
    assert_eq!(shown.decided.unwrap().reason, "the study ended");
}

#[test]
fn decisions_go_one_way() {
    let (_folder, mut store) = store();
    let request = open_request(MEAN_TOML);
    store.ask(&request, &digest(&request)).unwrap();
    let mut refused = |decision, hint: &str| {
        let e = store.decide(JOB, decision, Decider::Owner, "").unwrap_err();
        assert!(e.to_string().contains(hint) && e.is_input(), "{e}");
    };
    refused(Standing::Revoked, "reject");
    store.decide(JOB, Standing::Approved, Decider::Policy, "").unwrap();
    let mut refused = |decision, hint: &str| {
        let e = store.decide(JOB, decision, Decider::Owner, "").unwrap_err();
        assert!(e.to_string().contains(hint), "{e}");
    };
    refused(Standing::Rejected, "revoke");
    refused(Standing::Approved, "is approved");
    store.decide(JOB, Standing::Revoked, Decider::Owner, "").unwrap();
    assert!(store.decide(JOB, Standing::Approved, Decider::Owner, "").is_err());
}

#[test]
fn another_text_under_the_same_id_is_refused_even_once_approved() {
    let (_folder, mut store) = store();
    let request = open_request(MEAN_TOML);
    store.ask(&request, &digest(&request)).unwrap();
    store.decide(JOB, Standing::Approved, Decider::Owner, "").unwrap();
    let changed = open_request(&MEAN_TOML.replace("noise_sd = 1.0", "noise_sd = 0.9"));
    assert!(matches!(store.ask(&changed, &digest(&changed)), Err(ConsentError::Changed(_))));
    let other = v1::OpenJob { analyst: "mallory".into(), ..request };
    assert!(matches!(store.ask(&other, &digest(&other)), Err(ConsentError::Changed(_))));
}

#[test]
fn waiting_jobs_are_bounded_and_found_by_their_ids() {
    let (_folder, mut store) = store();
    let request = open_request(MEAN_TOML);
    for n in 0..MOST_AWAITING {
        let analyst = format!("analyst-{}", n / MOST_AWAITING_OF_ONE);
        let one = v1::OpenJob { job: format!("job-{n:03}"), analyst, ..request.clone() };
        store.ask(&one, &digest(&one)).unwrap();
    }
    assert!(matches!(store.ask(&request, &digest(&request)), Err(ConsentError::Crowded(_))));
    // A part of an id names no job; the owner's commands take the first characters of one (`owner::find`).
    for part in ["job-00", "", "jab"] {
        assert!(matches!(store.request(part), Err(ConsentError::Unknown(_))));
    }
    assert_eq!(store.request("job-007").unwrap().job, "job-007");
    assert_eq!(store.requests().unwrap().len() as u64, MOST_AWAITING);
    store.decide("job-007", Standing::Rejected, Decider::Owner, "no").unwrap();
    assert_eq!(store.ask(&request, &digest(&request)).unwrap(), Standing::Awaiting);
    let long = v1::OpenJob { spec_toml: " ".repeat(LONGEST_JOB + 1), ..request };
    assert!(matches!(store.ask(&long, &[0; 32]), Err(ConsentError::TooLong)));
}

/// However many jobs one analyst sends, another's find room.
#[test]
fn one_analysts_jobs_leave_room_for_others() {
    let (_folder, mut store) = store();
    let request = open_request(MEAN_TOML);
    let ask = |store: &mut ConsentStore, n: u64, analyst: &str| {
        let one = v1::OpenJob { job: format!("{analyst}-{n}"), analyst: analyst.into(), ..request.clone() };
        store.ask(&one, &digest(&one))
    };
    for n in 0..MOST_AWAITING_OF_ONE {
        ask(&mut store, n, "mallory").unwrap();
    }
    let error = ask(&mut store, MOST_AWAITING_OF_ONE, "mallory").unwrap_err();
    assert!(matches!(error, ConsentError::CrowdedBy(..)) && error.to_string().contains("64 jobs of analyst mallory"), "{error}");
    assert_eq!(ask(&mut store, 0, "alice").unwrap(), Standing::Awaiting);
    store.decide("mallory-0", Standing::Rejected, Decider::Owner, "no").unwrap();
    assert_eq!(ask(&mut store, MOST_AWAITING_OF_ONE, "mallory").unwrap(), Standing::Awaiting);
}

#[test]
fn another_process_sees_that_something_changed() {
    let (folder, mut store) = store();
    let watcher = ConsentStore::open(&folder.path().join("ledger.sqlite")).unwrap();
    let before = watcher.version().unwrap();
    assert_eq!(watcher.version().unwrap(), before);
    let request = open_request(MEAN_TOML);
    store.ask(&request, &digest(&request)).unwrap();
    assert_ne!(watcher.version().unwrap(), before);
}

#[test]
fn a_file_of_another_kind_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger.sqlite");
    Connection::open(ConsentStore::path_of(&ledger)).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    assert!(matches!(ConsentStore::open(&ledger), Err(ConsentError::Foreign(_))));
}

/// A file of software that knew no permits is read, gets the column, and is closed to that software once a permit is stored.
#[test]
fn a_file_without_permits_is_extended() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger.sqlite");
    let request = open_request(MEAN_TOML);
    {
        let mut store = ConsentStore::open(&ledger).unwrap();
        store.ask(&request, &digest(&request)).unwrap();
        store.connection.execute_batch("ALTER TABLE decisions DROP COLUMN permit").unwrap();
    }
    let format =
        |store: &ConsentStore| -> i32 { store.connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap() };
    let mut store = ConsentStore::open(&ledger).unwrap();
    assert_eq!((format(&store), store.request(JOB).unwrap().permit), (1, None));
    store.decide_under(JOB, Standing::Approved, Decider::Owner, "", Some("{}")).unwrap();
    assert_eq!(format(&store), 2);
    store.decide(JOB, Standing::Revoked, Decider::Owner, "over").unwrap();
    let store = ConsentStore::open(&ledger).unwrap();
    let kept = store.request(JOB).unwrap();
    assert_eq!((kept.standing(), kept.permit.as_deref()), (Standing::Revoked, Some("{}")));
}

/// The key is kept with the request; one that an earlier version entered without it gets it once, and no other key signs the same job.
#[test]
fn the_signers_key_is_kept_and_does_not_change() {
    let (folder, mut store) = store();
    let request = open_request(MEAN_TOML);
    store.ask(&request, &digest(&request)).unwrap();
    store.connection.execute_batch("ALTER TABLE requests DROP COLUMN signer").unwrap();
    let ledger = folder.path().join("ledger.sqlite");
    let mut store = ConsentStore::open(&ledger).unwrap();
    assert_eq!(store.request(JOB).unwrap().signer, None);
    for signer in [Some([1; 32]), None, Some([1; 32])] {
        store.ask_signed(&request, &digest(&request), signer).unwrap();
    }
    assert!(matches!(store.ask_signed(&request, &digest(&request), Some([2; 32])), Err(ConsentError::Changed(_))));
    assert_eq!(ConsentStore::open(&ledger).unwrap().request(JOB).unwrap().signer, Some([1; 32]));
}
