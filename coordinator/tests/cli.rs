//! The daemon as a process: its output, its shutdown and its exit codes.
#![allow(clippy::unwrap_used)]

mod consortium;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use conclave_proto::identity::Role;

fn daemon() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conclave-coordinator"));
    command.arg("run").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts the daemon and waits until it listens.
fn start(config: &Path, prepare: impl FnOnce(&mut Command)) -> Child {
    let ready = config.with_file_name("ready");
    let _ = std::fs::remove_file(&ready);
    let mut command = daemon();
    command.arg("--config").arg(config).arg("--ready-file").arg(&ready);
    prepare(&mut command);
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while !ready.exists() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", child.try_wait());
        std::thread::sleep(Duration::from_millis(10));
    }
    let address: SocketAddr = std::fs::read_to_string(ready).unwrap().trim().parse().unwrap();
    assert_ne!(address.port(), 0);
    std::net::TcpStream::connect(address).unwrap();
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").arg(name).arg(child.id().to_string()).status().unwrap().success());
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn starts_and_stops_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let config = consortium::coordinator(&consortium::new_ca(), folder.path());
    for name in ["-TERM", "-INT"] {
        let child = start(&config, |_| ());
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(said(&output).contains("listening on 127.0.0.1:"));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_killed_daemon_leaves_nothing_locked() {
    let folder = tempfile::tempdir().unwrap();
    let config = consortium::coordinator(&consortium::new_ca(), folder.path());
    let mut child = start(&config, |_| ());
    let second = daemon().arg("--config").arg(&config).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(said(&second).contains("in use by another coordinator"), "{}", said(&second));
    child.kill().unwrap();
    child.wait().unwrap();
    let child = start(&config, |_| ());
    signal(&child, "-TERM");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn follows_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let config = consortium::coordinator(&consortium::new_ca(), folder.path());
    let mut child = start(&config, |command| {
        command.arg("--exit-with-stdin").stdin(Stdio::piped());
    });
    drop(child.stdin.take());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn wrong_input_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let ca = consortium::new_ca();
    let config = consortium::coordinator(&ca, folder.path());
    let check = || daemon().arg("--check").arg("--config").arg(&config).output().unwrap();
    assert_eq!(check().status.code(), Some(0));
    assert!(!folder.path().join("c.sqlite").exists(), "a check creates nothing");

    consortium::identity(&ca, &folder.path().join("identity"), Role::Party, "a");
    let output = check();
    assert_eq!(output.status.code(), Some(2));
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(found.lines().any(|l| l.starts_with("FAULT  identity") && l.contains("conclave://party/a")), "{found}");
    let faults = found.matches("FAULT").count();
    assert_eq!(faults, 1, "{found}");

    std::fs::write(&config, "lisen = \"127.0.0.1:0\"").unwrap();
    let output = daemon().args(["--check", "--json", "--config"]).arg(&config).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let says = found["checks"][0]["says"].as_str().unwrap();
    assert!(found["faults"] == 1 && says.contains("coordinator.toml") && says.contains("`listen`"), "{found}");

    let output = daemon().arg("--config").arg(folder.path().join("none.toml")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(daemon().output().unwrap().status.code(), Some(2));
}

#[test]
fn the_exit_code_reports_health() {
    let folder = tempfile::tempdir().unwrap();
    let config = consortium::coordinator(&consortium::new_ca(), folder.path());
    let health = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conclave-coordinator"));
        let output = command.arg("health").arg("--config").arg(&config).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(health().0, Some(4));
    let child = start(&config, |_| ());
    let begun = Instant::now();
    while health().0 != Some(0) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", health());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(health().1.starts_with("serving on 127.0.0.1:"));
    let check = daemon().arg("--check").arg("--config").arg(&config).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "a check beside a running coordinator: {}", String::from_utf8_lossy(&check.stdout));
    signal(&child, "-TERM");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(health().0, Some(4));
    std::fs::remove_file(&config).unwrap();
    assert_eq!(health().0, Some(2));
}
