//! Chains of ended jobs, read from their stores on disk.
#![allow(clippy::unwrap_used)]
use serde_json::Map;

use super::*;
use conclave_draws::zarr::{DrawStore, Row};

/// A store of three chains of two parameters, after some warm-up.
fn store(root: &Path, draws: usize) -> ReadRequest {
    let parameters = vec!["intercept".to_owned(), "age/10".to_owned()];
    let mut store = DrawStore::create(root, 3, &parameters, &Map::new()).unwrap();
    let row = |i: usize, warmup| {
        let at = if warmup { 1e6 } else { i as f64 };
        Row { chain: i % 3, warmup, theta: vec![at, -at], accepted: i % 6 < 3, log_alpha: 0.5, iteration: i as u64 }
    };
    (0..30).for_each(|i| store.push(&row(i, true)));
    (0..3 * draws).for_each(|i| store.push(&row(i, false)));
    store.flush().unwrap();
    ReadRequest { job: root.display().to_string(), root: root.to_owned(), chains: 3, parameters }
}

async fn settled(stored: &StoredChains, request: &ReadRequest) -> ReadState {
    loop {
        match stored.chains(request.clone()).await {
            ReadState::Reading => {}
            found => return found,
        }
    }
}

#[tokio::test]
async fn what_is_on_disk_is_shown_as_if_it_had_been_watched() {
    let folder = tempfile::tempdir().unwrap();
    let stored = StoredChains::default();
    let request = store(&folder.path().join("j.zarr"), 2500);
    let ReadState::Chains(live) = settled(&stored, &request).await else { panic!("unreadable") };
    let view = live.view(0..9).unwrap();
    assert_eq!((view.warmup, view.parameters.len(), view.chains.as_slice()), (false, 2, &[(2500, 0.5); 3][..]));
    assert_eq!(view.parameters[1].traces[2].range(), (-7499.0, -2.0));
    assert!((view.parameters[0].summary().mean - 3749.5).abs() < 1e-9);
    // It is read once.
    std::fs::remove_dir_all(&request.root).unwrap();
    assert!(matches!(settled(&stored, &request).await, ReadState::Chains(again) if Arc::ptr_eq(&again, &live)));
}

#[tokio::test]
async fn only_a_few_jobs_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let stored = StoredChains::default();
    let requests: Vec<ReadRequest> = (0..=KEPT).map(|i| store(&folder.path().join(format!("{i}.zarr")), 5)).collect();
    for request in &requests {
        assert!(matches!(settled(&stored, request).await, ReadState::Chains(_)));
    }
    requests.iter().for_each(|request| std::fs::remove_dir_all(&request.root).unwrap());
    assert!(matches!(settled(&stored, &requests[KEPT]).await, ReadState::Chains(_)));
    // A finished read makes room at the next view.
    assert_eq!(stored.jobs.lock().unwrap().len(), KEPT);
    assert!(matches!(settled(&stored, &requests[0]).await, ReadState::Unreadable(_)));
}

/// Pages of more jobs than are kept, viewed repeatedly while one job at a time is read.
#[tokio::test]
async fn all_jobs_that_are_viewed_are_read_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let stored = StoredChains::default();
    let requests: Vec<ReadRequest> = (0..3 * KEPT).map(|i| store(&folder.path().join(format!("{i}.zarr")), 5)).collect();
    // Nothing is read yet.
    let turn = Arc::clone(&stored.turns).acquire_owned().await.unwrap();
    let readings: Vec<_> = requests.iter().map(|request| stored.reading(request.clone())).collect();
    let again: Vec<_> = requests.iter().map(|request| stored.reading(request.clone())).collect();
    assert!(readings.iter().zip(&again).all(|(one, other)| Arc::ptr_eq(one, other)));
    drop(turn);
    for (reading, request) in readings.iter().zip(&requests) {
        let mut found = reading.found.clone();
        assert!(
            matches!(*found.wait_for(|found| !matches!(found, ReadState::Reading)).await.unwrap(), ReadState::Chains(_)),
            "{request:?}"
        );
    }
    stored.reading(requests[0].clone());
    assert_eq!(stored.jobs.lock().unwrap().len(), KEPT);
}

#[tokio::test]
async fn a_damaged_store_is_named_and_read_again_once_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let stored = StoredChains::default();
    let request = store(&folder.path().join("j.zarr"), 1500);
    let chunk = request.root.join("posterior").join(conclave_draws::zarr::encode("age/10", 1)).join("c/2/1");
    let whole = std::fs::read(&chunk).unwrap();
    let said = async || match settled(&stored, &request).await {
        ReadState::Unreadable(words) => words,
        found => panic!("{found:?}"),
    };
    std::fs::write(&chunk, &whole[..100]).unwrap();
    let words = said().await;
    assert!(words.contains("c/2/1") && words.contains("contradicts its metadata"), "{words}");
    std::fs::remove_file(&chunk).unwrap();
    assert!(said().await.contains("c/2/1 cannot be read"));
    std::fs::write(&chunk, whole).unwrap();
    assert!(matches!(settled(&stored, &request).await, ReadState::Chains(_)));
    // A store with another job's shape.
    let other = ReadRequest { job: "other".to_owned(), chains: 4, ..request };
    assert!(matches!(settled(&stored, &other).await, ReadState::Unreadable(words) if words.contains("differ in shape")));
}
