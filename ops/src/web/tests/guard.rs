//! Tests of each rule in isolation.
#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use hyper::Request;

use super::*;
use crate::source::SourceHost;
use crate::web::Member;

fn guard() -> (Guard, String) {
    guard_over(Transport::Plain)
}

fn guard_over(transport: Transport) -> (Guard, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let guard = Guard::new(Token::load_or_create(&path).unwrap(), &["Board.Example".to_owned()], transport).unwrap();
    (guard, std::fs::read_to_string(&path).unwrap())
}

/// Creates a peer at this address, connected to a server whose certificate has one host name.
fn peer(address: [u8; 4], member: Option<Member>) -> Peer {
    Peer { source: SourceHost::at(address.into()), hosts: Arc::from(["coordinator.test".to_owned()]), member }
}

fn stranger() -> Peer {
    peer([10, 0, 0, 1], None)
}

fn member(name: &str, certificate: &[u8]) -> Peer {
    peer([10, 0, 0, 1], Some(Member { name: name.to_owned(), certificate: certificate.to_vec() }))
}

fn parts(headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::get("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[test]
fn hosts_are_known_by_name_and_under_any_port() {
    let (guard, _) = guard();
    for good in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "[::1]", "board.example:443", "coordinator.test"] {
        assert_eq!(guard.check_host(&parts(&[("host", good)]), &stranger()), Ok(()), "{good}");
    }
    for bad in ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "", "evil@127.0.0.1", "::1"] {
        assert_eq!(guard.check_host(&parts(&[("host", bad)]), &stranger()), Err(Refusal::Host), "{bad}");
    }
    assert!(guard.check_host(&parts(&[]), &stranger()).is_err());
    assert!(guard.check_host(&parts(&[("host", "localhost"), ("host", "evil.example")]), &stranger()).is_err());
}

#[test]
fn only_pages_of_this_site_change_anything() {
    let (guard, _) = guard();
    let check_origin = |headers: &HeaderMap| guard.check_origin(headers);
    let ours = [("host", "localhost:8080"), ("origin", "http://localhost:8080")];
    assert_eq!(check_origin(&parts(&ours).headers), Ok(()));
    let with = |name, value| check_origin(&parts(&[ours[0], ours[1], (name, value)]).headers);
    assert_eq!(with("sec-fetch-site", "same-origin"), Ok(()));
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(with("sec-fetch-site", site), Err(Refusal::Origin), "{site}");
    }
    for origin in ["http://localhost:8081", "http://evil.example", "null", "http://localhost", ""] {
        assert!(check_origin(&parts(&[ours[0], ("origin", origin)]).headers).is_err(), "{origin}");
    }
    assert!(check_origin(&parts(&ours[..1]).headers).is_err());
}

#[test]
fn a_session_needs_its_csrf_token_and_a_program_needs_none() {
    let (guard, token) = guard();
    let now = Instant::now();
    let ours = parts(&[("host", "localhost"), ("origin", "http://localhost")]);
    assert_eq!(guard.login(&ours, &Fields::new(&[("token", "wrong")]), &stranger(), now), Err(Refusal::Unknown));
    assert_eq!(
        guard.login(&parts(&[("host", "localhost")]), &Fields::new(&[("token", &token)]), &stranger(), now),
        Err(Refusal::Origin)
    );
    let [one, other] = [0, 1].map(|_| guard.login(&ours, &Fields::new(&[("token", &token)]), &stranger(), now).unwrap());
    let of = |id: &str| guard.caller(&parts(&[("cookie", &format!("a=b; {}={id}", guard.cookie()))]).headers, &stranger(), now);
    let (caller, other) = (of(&one).unwrap(), of(&other).unwrap());
    assert_eq!(of("x"), Err(Refusal::Unknown));
    assert_eq!(guard.check_form(&caller, &Fields::new(&[(CSRF_FIELD, &caller.visitor().csrf)])), Ok(()));
    for wrong in ["", "x", &other.visitor().csrf] {
        assert_eq!(guard.check_form(&caller, &Fields::new(&[(CSRF_FIELD, wrong)])), Err(Refusal::Form));
    }
    assert_eq!(guard.check_form(&caller, &Fields::new(&[])), Err(Refusal::Form));
    guard.logout(&caller);
    assert_eq!(of(&one), Err(Refusal::Unknown));

    let bearer = parts(&[("authorization", &format!("Bearer {}", token.trim()))]);
    assert_eq!(guard.caller(&bearer.headers, &stranger(), now), Ok(Caller::Program));
    assert_eq!(guard.check_form(&Caller::Program, &Fields::new(&[])), Ok(()));
    let elsewhere = parts(&[("host", "localhost"), ("origin", "http://evil.example")]);
    assert_eq!(guard.check_request(&elsewhere, &stranger(), &Caller::Program, true), Err(Refusal::Origin));
}

#[test]
fn guessing_slows_its_source_even_with_the_right_token_but_no_other() {
    let (guard, token) = guard();
    let now = Instant::now();
    let presents =
        |word: &str, from: &Peer| guard.caller(&parts(&[("authorization", &format!("Bearer {word}"))]).headers, from, now);
    while presents("wrong", &stranger()) == Err(Refusal::Unknown) {}
    assert_eq!(presents(token.trim(), &stranger()), Err(Refusal::TooOften));
    assert_eq!(presents(token.trim(), &peer([10, 0, 0, 2], None)), Ok(Caller::Program));
}

#[test]
fn a_certificate_has_its_own_csrf_token() {
    let (guard, token) = guard_over(Transport::Tls);
    let now = Instant::now();
    let (alice, bob) = (member("alice", b"one"), member("bob", b"two"));
    let of = |peer: &Peer, headers: &[(&str, &str)]| guard.caller(&parts(headers).headers, peer, now).unwrap();
    let caller = of(&alice, &[]);
    let visitor = caller.visitor();
    assert_eq!((&visitor.principal, visitor.has_session()), (&Principal::Member("alice".to_owned()), false));
    assert_eq!(of(&alice, &[]), caller, "the same at every request");
    let (others, renewed) = (of(&bob, &[]).visitor().csrf, of(&member("alice", b"three"), &[]).visitor().csrf);
    assert_eq!(guard.check_form(&caller, &Fields::new(&[(CSRF_FIELD, &visitor.csrf)])), Ok(()));
    for wrong in ["", &*others, &*renewed, &*guard_over(Transport::Tls).0.member(&alice).unwrap().visitor().csrf] {
        assert_eq!(guard.check_form(&caller, &Fields::new(&[(CSRF_FIELD, wrong)])), Err(Refusal::Form));
    }

    // A browser presents the certificate whichever site's page makes the request.
    let check = |headers: &[(&str, &str)], changes| guard.check_request(&parts(headers), &alice, &caller, changes);
    let host = ("host", "coordinator.test:8443");
    assert_eq!(check(&[host, ("origin", "https://coordinator.test:8443")], true), Ok(()));
    for elsewhere in ["https://evil.example", "http://coordinator.test:8443", "https://coordinator.test", "null"] {
        assert_eq!(check(&[host, ("origin", elsewhere)], true), Err(Refusal::Origin), "{elsewhere}");
    }
    assert_eq!(check(&[host], true), Err(Refusal::Origin));
    let fetched = [host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
    assert_eq!(check(&fetched, false), Err(Refusal::Origin));
    assert_eq!(check(&[("host", "evil.example")], false), Err(Refusal::Host));

    // The bearer of the token is the operator, with or without a certificate; a certificate does not excuse a wrong token.
    let bearer = format!("Bearer {}", token.trim());
    assert_eq!(of(&alice, &[("authorization", &*bearer)]), Caller::Program);
    let wrong = parts(&[("authorization", "Bearer x")]);
    assert_eq!(guard.caller(&wrong.headers, &alice, now), Err(Refusal::Unknown));
    let ours = parts(&[host, ("origin", "https://coordinator.test:8443")]);
    let id = guard.login(&ours, &Fields::new(&[("token", &token)]), &alice, now).unwrap();
    assert!(guard.cookie().starts_with("__Host-"));
    let cookie = format!("{}={id}", guard.cookie());
    assert_eq!(of(&alice, &[("cookie", &*cookie)]).visitor().principal, Principal::Operator);
}

#[test]
fn own_hosts_demand_tls() {
    let strict = |transport, host: &str| guard_over(transport).0.is_strict(&parts(&[("host", host)]).headers, &stranger());
    assert!(strict(Transport::Tls, "coordinator.test:8443") && strict(Transport::Tls, "board.example"));
    for host in ["localhost:8443", "127.0.0.1", "[::1]:1", "evil.example", ""] {
        assert!(!strict(Transport::Tls, host), "{host}");
    }
    assert!(!strict(Transport::Plain, "board.example"));
}
