//! A file without records, or without an end, is refused quickly and with little memory.
#![allow(clippy::unwrap_used)]
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::data::*;
use crate::testing::{data, write};

/// Longer than any of these operations on a busy machine, and far shorter than one that grows with the square of the columns.
const SOON: Duration = Duration::from_secs(20);

fn soon(path: PathBuf, needed: Option<Vec<String>>) -> Result<Shard, DataError> {
    let (done, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody waits any longer once the test has failed.
        let _ = done.send(Shard::load(&data(path, BadRows::Stop), needed.as_deref()));
    });
    waiting.recv_timeout(SOON).unwrap()
}

#[test]
fn columns_are_bounded_and_found_in_linear_time() {
    let folder = tempfile::tempdir().unwrap();
    let header = |columns: usize| (0..columns).map(|i| format!("the_name_of_column_{i:06}")).collect::<Vec<_>>();
    let names = header(1 << 16);
    let text = format!("{}\n{}\n", names.join(","), vec!["7"; names.len()].join(","));
    let path = write(folder.path(), "wide.csv", &text);
    let began = Instant::now();
    let mut needed = names.clone();
    needed.reverse();
    let shard = soon(path.clone(), Some(needed)).unwrap();
    assert_eq!((shard.records(), shard.header().len()), (1, names.len()));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let error = soon(path, Some(vec!["the_name_of_column_x".into()])).unwrap_err().to_string();
    assert!(error.contains("and 65436 more") && error.len() < 10_000, "{}", &error[..1000.min(error.len())]);
    let wider = header((1 << 16) + 1).join(",");
    let error = soon(write(folder.path(), "wider.csv", &format!("{wider}\n1\n")), None).unwrap_err().to_string();
    assert!(error.contains("65537 columns; at most 65536"), "{error}");
    let twice = format!("{},the_name_of_column_000003", header(60_000).join(","));
    let error = soon(write(folder.path(), "twice.csv", &format!("{twice}\n1\n")), None).unwrap_err().to_string();
    assert!(error.contains("the_name_of_column_000003") && error.contains("twice"), "{error}");
}

/// A sparse file of 4 GiB: one line, of zeros.
#[test]
fn a_line_without_an_end_is_read_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let endless = |name: &str, begins: &str| {
        let path = write(folder.path(), name, begins);
        File::options().write(true).open(&path).unwrap().set_len(1 << 32).unwrap();
        path
    };
    for (name, begins) in [("header.csv", "age"), ("row.csv", "age\n1\n2\n"), ("quoted.csv", "age\n1\n\"2\n")] {
        let error = soon(endless(name, begins), None).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("longer than 16 MiB"), "{error}");
    }
    // A long line with an end is read.
    let long = format!("age,note\n1,{}\n2,b\n", "x".repeat(3 << 20));
    assert_eq!(soon(write(folder.path(), "long.csv", &long), Some(vec!["age".into()])).unwrap().records(), 2);
}

/// Anyone who opens a pipe waits until somebody writes into it: for ever.
#[test]
#[cfg(unix)]
fn a_pipe_is_not_a_file_of_records() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.parquet"] {
        let path = folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = soon(path, None).unwrap_err().to_string();
        assert!(error.contains("a pipe") && error.contains("data.path"), "{error}");
    }
    let error = soon(folder.path().join("none.csv"), None).unwrap_err().to_string();
    assert!(error.contains("none.csv") && error.contains("data.path"), "{error}");
}
