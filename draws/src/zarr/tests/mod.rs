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
fn the_shape_is_that_of_the_shortest_chain() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("job.zarr");
    let mut draws = store(&root);
    draws.push(&row(0, 0, false));
    draws.flush().unwrap();
    assert_eq!(shape(&root, "posterior/age"), serde_json::json!([2, 0]));
    assert_eq!(draws.kept(), 0);
}

#[test]
fn a_new_store_replaces_an_older_one() {
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

const JOB: &str = "name = \"j\"\nparties = [\"a\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = [\"age\"]\nsd = 1.0\n[columns]\n\
                   y = { min = 0, max = 8 }\nage = { min = 20, max = 60 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";

/// A packed store holds the same draws as the folder, in one chunk per chain, and the folder is removed.
#[test]
fn a_packed_store_reads_the_same() {
    let spec = conclave_common::job::JobSpec::parse(JOB).unwrap();
    let names = spec.model.parameter_names();
    assert_eq!(names, ["intercept", "age"]);
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed, file) = (folder.path().join("a.zarr"), folder.path().join("b.zarr"), folder.path().join("b.zarr.zip"));
    let attributes: Map<String, Value> = [("parameters".to_owned(), serde_json::json!(names))].into_iter().collect();
    for root in [&plain, &packed] {
        let mut draws = DrawStore::create(root, 2, &names, &attributes).unwrap();
        (0..2503).for_each(|n| (0..2).for_each(|chain| draws.push(&row(chain, n, n < 3))));
        match root == &plain {
            true => draws.finish(&spec, &attributes).unwrap(),
            false => draws.pack(&spec, &attributes, &file).unwrap(),
        }
    }
    let mut found: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    found.sort();
    assert_eq!(found, ["a.zarr", "b.zarr.zip"]);
    let read = crate::Draws::read(&plain).unwrap();
    assert_eq!(read, crate::Draws::read(&file).unwrap());
    assert_eq!((read.sampling.draws(), read.warmup.draws()), (2500, 3));
    // theta is n + 0.5 and -n: b = -n 4 / 20, intercept = 4 + 4 (n + 0.5) - 40 b.
    let original = read.original.as_ref().unwrap();
    assert!((original[1][1][7] + 10.0 * 4.0 / 20.0).abs() < 1e-9, "{:?}", original[1][1][7]);
    assert!((original[0][1][7] - (4.0 + 4.0 * 10.5 + 40.0 * 10.0 * 0.2)).abs() < 1e-9);
    let of = |root: &Path| StoreFiles::open(root).unwrap();
    let (plain, file) = (of(&plain), of(&file));
    assert!(file.names().unwrap().len() < plain.names().unwrap().len());
    assert_eq!(file.read("posterior/age/c/1/0").unwrap().len(), 8 * 2500);
    fn of_node(files: &StoreFiles, node: &str) -> Value {
        metadata(files, node).unwrap()
    }
    for files in [&plain, &file] {
        assert_eq!(
            of_node(files, "posterior_original")["attributes"]["columns"]["age"],
            serde_json::json!({"min": 20.0, "max": 60.0})
        );
        // The root's metadata include those of all nodes.
        let root = of_node(files, "");
        let nodes = root["consolidated_metadata"]["metadata"].as_object().unwrap();
        assert!(nodes.len() > 20 && nodes.iter().all(|(name, node)| *node == of_node(files, name)));
    }
    // Each member's checksum detects damage.
    let at = |bytes: &[u8]| bytes.windows(8).position(|eight| eight == 700.5_f64.to_le_bytes()).unwrap();
    let mut bytes = std::fs::read(file.root()).unwrap();
    let place = at(&bytes);
    bytes[place] ^= 1;
    std::fs::write(file.root(), bytes).unwrap();
    let words = crate::Draws::read(file.root()).unwrap_err().to_string();
    assert!(words.contains("b.zarr.zip"), "{words}");
}
