#![allow(clippy::unwrap_used)]
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::array::CHUNK;
use super::*;

fn row(chain: usize, n: usize, warmup: bool) -> Row {
    Row {
        chain,
        warmup,
        theta: vec![n as f64 + 0.5, -(n as f64)],
        accepted: n.is_multiple_of(2),
        log_alpha: 0.25 * n as f64,
        iteration: 7 + n as u64,
    }
}

fn store(root: &Path) -> DrawStore {
    let names = ["age".to_owned(), "a/b".to_owned()];
    DrawStore::create(root, 2, &names, &Map::new()).unwrap()
}

fn shape(root: &Path, array: &str) -> Value {
    let text = std::fs::read(root.join(array).join("zarr.json")).unwrap();
    serde_json::from_slice::<Value>(&text).unwrap()["shape"].clone()
}

fn floats(path: PathBuf) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn chunks_hold_the_draws_and_the_fill() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("job.zarr");
    let mut draws = store(&root);
    assert_eq!(shape(&root, "posterior/age"), serde_json::json!([2, 0]));
    for n in 0..1003 {
        for chain in 0..2 {
            draws.push(&row(chain, n, false));
        }
        if n == 600 {
            draws.flush().unwrap();
            assert_eq!(shape(&root, "posterior/age"), serde_json::json!([2, 601]));
        }
    }
    draws.push(&row(0, 0, true));
    draws.push(&row(1, 0, true));
    draws.flush().unwrap();

    assert_eq!(shape(&root, "posterior/a%2Fb"), serde_json::json!([2, 1003]));
    assert_eq!(shape(&root, "sample_stats/accepted"), serde_json::json!([2, 1003]));
    assert_eq!(shape(&root, "posterior/draw"), serde_json::json!([1003]));
    assert_eq!(shape(&root, "warmup_posterior/age"), serde_json::json!([2, 1]));
    let first = floats(root.join("posterior/age/c/1/0"));
    assert_eq!(first.len(), CHUNK);
    assert_eq!(first[999], 999.5);
    let second = floats(root.join("posterior/age/c/1/1"));
    assert_eq!(&second[..3], &[1000.5, 1001.5, 1002.5]);
    assert!(second[3..].iter().all(|v| v.is_nan()));
    assert_eq!(std::fs::read(root.join("sample_stats/accepted/c/0/1")).unwrap().len(), CHUNK);
    assert_eq!(draws.kept(), 1003);
    assert_eq!(draws.samples(0)[1][1002], 1002.5);
    assert!((draws.acceptance_rate() - 502.0 / 1003.0).abs() < 1e-15);
}

#[test]
fn the_shape_is_what_every_chain_has() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("job.zarr");
    let mut draws = store(&root);
    draws.push(&row(0, 0, false));
    draws.flush().unwrap();
    assert_eq!(shape(&root, "posterior/age"), serde_json::json!([2, 0]));
    assert_eq!(draws.kept(), 0);
}

#[test]
fn made_anew_over_an_older_store() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("job.zarr");
    let mut draws = store(&root);
    for chain in 0..2 {
        draws.push(&row(chain, 0, false));
    }
    draws.flush().unwrap();
    store(&root);
    assert!(!root.join("posterior/age/c").exists());
}

#[test]
fn every_group_names_its_maker() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("job.zarr");
    store(&root);
    for group in ["posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"] {
        let text = std::fs::read(root.join(group).join("zarr.json")).unwrap();
        let metadata: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(metadata["attributes"]["inference_library"], "conclave", "{group}");
    }
}
