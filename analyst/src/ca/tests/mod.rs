#![allow(clippy::unwrap_used)]
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use conclave_proto::ca;
use conclave_proto::error::ErrorCode;

use super::identity_files::*;
use super::init::{InitArgs, init};
use super::install::{InstallArgs, install};
use super::request::{RequestArgs, RoleArg, request};
use super::revoke::{RevokeArgs, revoke};
use super::show::{ShowArgs, show};
use super::sign::{SignArgs, sign};
use crate::files;
use conclave_proto::revoked::RevokedList;
use conclave_proto::tls::IdentityDir;

fn init_args(out: &Path) -> InitArgs {
    InitArgs {
        name: "Test".to_owned(),
        out: out.to_owned(),
        days: 100,
        coordinator: Vec::new(),
        coordinator_name: "main".to_owned(),
        coordinator_out: PathBuf::new(),
    }
}

fn request_args(role: RoleArg, name: &str, host: &[&str], out: &Path) -> RequestArgs {
    let host = host.iter().map(|h| (*h).to_owned()).collect();
    RequestArgs { role: Some(role), name: Some(name.to_owned()), host, out: out.to_owned(), renew: false, new_key: false }
}

fn sign_args(folder: &Path, ca: &Path, coordinator: bool) -> SignArgs {
    SignArgs {
        request: folder.join(REQUEST),
        ca: ca.to_owned(),
        out: None,
        coordinator,
        days: 10,
        renew: false,
        expect_fingerprint: None,
        yes: true,
    }
}

fn renewal(out: &Path, new_key: bool) -> RequestArgs {
    RequestArgs { role: None, name: None, host: Vec::new(), out: out.to_owned(), renew: true, new_key }
}

fn serial(folder: &Path) -> String {
    ca::summarise(&files::read(&folder.join(CERTIFICATE)).unwrap()).unwrap().serial
}

#[test]
fn a_consortium_from_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca");
    init(&init_args(&ca)).unwrap();
    assert!(init(&init_args(&ca)).is_err(), "a CA is never overwritten");

    let alice = folder.path().join("alice");
    request(&request_args(RoleArg::Analyst, "alice", &[], &alice)).unwrap();
    sign(&sign_args(&alice, &ca, false)).unwrap();
    let identity = IdentityDir::load(&alice).unwrap();
    identity.check_at(SystemTime::now()).unwrap();
    assert_eq!(identity.identity().uri(), "conclave://analyst/alice");
    assert!(sign(&sign_args(&alice, &ca, false)).is_err(), "a certificate is never overwritten without --renew");

    let main = folder.path().join("main");
    request(&request_args(RoleArg::Coordinator, "main", &["localhost", "::1"], &main)).unwrap();
    let refused = sign(&sign_args(&main, &ca, false)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Policy);
    sign(&sign_args(&main, &ca, true)).unwrap();
    let identity = IdentityDir::load(&main).unwrap();
    identity.check_at(SystemTime::now()).unwrap();
    identity.server_config().unwrap();
    for path in [&ca, &main] {
        show(&ShowArgs { path: path.clone(), json: false }).unwrap();
    }
}

#[test]
fn ca_and_coordinator_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, main) = (folder.path().join("ca"), folder.path().join("coordinator/identity"));
    let hosts = |host: &str| vec![host.to_owned()];
    let args = |host| InitArgs { coordinator: hosts(host), coordinator_out: main.clone(), ..init_args(&ca) };
    assert!(init(&args("a b")).is_err());
    assert!(!ca.exists(), "a typing error leaves no files behind");
    init(&args("localhost")).unwrap();
    let identity = IdentityDir::load(&main).unwrap();
    identity.check_at(SystemTime::now()).unwrap();
    identity.server_config().unwrap();
    assert_eq!(identity.identity().uri(), "conclave://coordinator/main");
    let elsewhere = InitArgs { out: folder.path().join("other"), ..args("localhost") };
    assert!(init(&elsewhere).unwrap_err().message.contains("--coordinator-out"));
}

#[test]
fn hosts_are_for_coordinators() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x");
    for (role, host) in [(RoleArg::Coordinator, &[][..]), (RoleArg::Party, &["h"][..])] {
        let fault = request(&request_args(role, "x", host, &out)).unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidInput);
    }
    assert!(request(&request_args(RoleArg::Party, "X y", &[], &out)).is_err());
}

#[test]
fn only_the_expected_key_is_signed() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, alice) = (folder.path().join("ca"), folder.path().join("alice"));
    init(&init_args(&ca)).unwrap();
    request(&request_args(RoleArg::Analyst, "alice", &[], &alice)).unwrap();
    let own = ca::key_fingerprint(&files::read(&alice.join(KEY)).unwrap()).unwrap();
    let expecting =
        |text: &str| SignArgs { expect_fingerprint: Some(text.to_owned()), yes: false, ..sign_args(&alice, &ca, false) };
    for other in ["", &"0".repeat(64), &own[..60]] {
        assert_eq!(sign(&expecting(other)).unwrap_err().code, ErrorCode::Policy, "{other:?}");
    }
    assert!(!alice.join(CERTIFICATE).exists());
    sign(&expecting(&ca::grouped(&own).to_uppercase())).unwrap();
}

#[test]
fn identities_are_renewed_in_place_or_with_a_new_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (ca, main) = (path("ca"), path("main"));
    let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    init(&InitArgs { coordinator: hosts.clone(), coordinator_out: main.clone(), ..init_args(&ca) }).unwrap();
    let first = serial(&main);

    request(&renewal(&main, false)).unwrap();
    assert!(sign(&sign_args(&main, &ca, true)).unwrap_err().message.contains("--renew"));
    sign(&SignArgs { renew: true, ..sign_args(&main, &ca, true) }).unwrap();
    let second = serial(&main);
    assert_ne!(first, second);
    let summary = ca::summarise(&files::read(&main.join(CERTIFICATE)).unwrap()).unwrap();
    assert_eq!(summary.hosts, hosts, "the hosts are copied from the replaced certificate");

    request(&renewal(&main, true)).unwrap();
    let refused = sign(&SignArgs { renew: true, ..sign_args(&main, &ca, true) }).unwrap_err();
    assert!(refused.message.contains("another key") && serial(&main) == second, "{refused}");
    let back = path("back");
    sign(&SignArgs { out: Some(back.clone()), ..sign_args(&main, &ca, true) }).unwrap();
    let into = |certificate: PathBuf| InstallArgs { certificate, into: main.clone(), ca: None };
    install(&into(back.join(CERTIFICATE))).unwrap();
    assert_eq!(serial(&main), serial(&back));
    IdentityDir::load(&main).unwrap().server_config().unwrap();

    // Another member's certificate is neither installed nor used as a replacement.
    let alice = path("alice");
    request(&request_args(RoleArg::Analyst, "alice", &[], &alice)).unwrap();
    sign(&sign_args(&alice, &ca, false)).unwrap();
    assert!(install(&into(alice.join(CERTIFICATE))).is_err());
    let over = SignArgs { renew: true, out: Some(main.clone()), ..sign_args(&alice, &ca, false) };
    assert!(sign(&over).unwrap_err().message.contains("conclave://coordinator/main"));
    assert_eq!(serial(&main), serial(&back));
}

#[test]
fn revoked_certificates_and_names_are_listed_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (ca, alice, list) = (path("ca"), path("alice"), path("revoked.txt"));
    init(&init_args(&ca)).unwrap();
    request(&request_args(RoleArg::Analyst, "alice", &[], &alice)).unwrap();
    sign(&sign_args(&alice, &ca, false)).unwrap();
    let pem = files::read(&alice.join(CERTIFICATE)).unwrap();
    let enter =
        |what: &str, reason: &str| revoke(&RevokeArgs { what: what.to_owned(), list: list.clone(), reason: reason.to_owned() });
    std::fs::write(&list, "# ours\nparty/old").unwrap();
    let certificate = alice.join(CERTIFICATE).display().to_string();
    for _ in 0..2 {
        enter(&certificate, "laptop\nlost").unwrap();
        enter("party/hospital-c", "").unwrap();
        enter("conclave://party/old", "").unwrap();
    }
    let text = files::read(&list).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.contains(&serial(&alice))
            && text.contains("a certificate of analyst/alice, revoked 2")
            && text.contains(": laptop lost"),
        "{text}"
    );
    assert!(RevokedList::parse(&text).unwrap().check_pem(&pem).is_err());
    for wrong in ["Alice Smith", "king/alice", &ca.join(CA).display().to_string()] {
        assert!(enter(wrong, "").is_err(), "{wrong}");
    }
    std::fs::write(&list, "no entry at all\n").unwrap();
    assert!(enter("bob", "").unwrap_err().message.contains("line 1"));
}
