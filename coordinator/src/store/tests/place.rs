//! A store that is no longer at its path takes no write, and has one coordinator under all of its names.
use std::fs::{copy, hard_link, read, remove_file, rename};
use std::path::Path;
use std::sync::Arc;

use super::{new_job, settled};
use crate::store::{Store, StoreError};

/// A file that is deleted, replaced or named twice under a running coordinator continues taking what is written. The store halts
/// at the next write, or where it is looked at before one, and stays halted.
#[test]
fn a_store_that_has_left_its_place_takes_no_write() {
    type Act = fn(&Path);
    let acts: [(&str, Act); 5] = [
        ("deleted", |path| remove_file(path).unwrap()),
        ("moved away", |path| rename(path, path.with_extension("gone")).unwrap()),
        ("replaced", |path| {
            copy(path, path.with_extension("copy")).unwrap();
            rename(path.with_extension("copy"), path).unwrap();
        }),
        ("2 names", |path| hard_link(path, path.with_extension("twice")).unwrap()),
        ("-wal", |path| remove_file(path.with_extension("sqlite-wal")).unwrap()),
    ];
    for (how, act) in acts {
        for looked_at in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("c.sqlite");
            let (store, _) = Store::open(&path).unwrap();
            store.insert_job(new_job("j1"));
            settled(&store).unwrap();
            act(&path);
            let halted = if looked_at {
                store.check()
            } else {
                store.insert_job(new_job("j2"));
                settled(&store)
            };
            let why = halted.unwrap_err();
            assert!(matches!(why, StoreError::Moved { .. }) && why.to_string().contains(how), "{how}: {why}");
            let id: Arc<str> = "j1".into();
            assert!(matches!(store.log_round(&id, 0, 0, &[vec![1], vec![2]]), Err(StoreError::Moved { .. })), "{how}");
            assert!(matches!(settled(&store), Err(StoreError::Moved { .. })), "{how}");
        }
    }
}

/// Until the process ends, the deleted store can be read through its open files, as the operator's guide says.
#[test]
#[cfg(target_os = "linux")]
fn a_deleted_store_is_recovered_from_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let (store, _) = Store::open(&path).unwrap();
    store.insert_job(new_job("j1"));
    settled(&store).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        remove_file(path.with_extension(format!("sqlite{suffix}"))).unwrap();
    }
    store.check().unwrap_err();
    let copies = tempfile::tempdir().unwrap();
    for open in std::fs::read_dir("/proc/self/fd").unwrap() {
        let open = open.unwrap().path();
        let Ok(name) = std::fs::read_link(&open) else { continue };
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(" (deleted)")).map(Path::new) else { continue };
        if name.starts_with(folder.path()) && !name.ends_with("c.sqlite-shm") {
            std::fs::write(copies.path().join(name.file_name().unwrap()), read(&open).unwrap()).unwrap();
        }
    }
    let (_, loaded) = Store::open(&copies.path().join("c.sqlite")).unwrap();
    assert_eq!(loaded.jobs.len(), 1);
}

/// Another name of the store has another lock beside it, so the file itself is locked.
#[test]
#[cfg(unix)]
fn one_coordinator_at_a_time_under_all_names() {
    let folder = tempfile::tempdir().unwrap();
    let (path, linked) = (folder.path().join("c.sqlite"), folder.path().join("linked.sqlite"));
    let (store, _) = Store::open(&path).unwrap();
    std::os::unix::fs::symlink(&path, &linked).unwrap();
    assert!(matches!(Store::open(&linked).unwrap_err(), StoreError::Locked(_)));
    store.close();
    drop(store);
    Store::open(&linked).unwrap();
    let twice = folder.path().join("twice.sqlite");
    hard_link(&path, &twice).unwrap();
    for name in [&path, &twice] {
        let refused = Store::open(name).unwrap_err();
        assert!(matches!(refused, StoreError::Foreign { .. }) && refused.to_string().contains("2 names"), "{refused}");
    }
}
