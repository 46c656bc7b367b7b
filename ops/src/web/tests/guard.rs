//! Each rule by itself.
#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use hyper::Request;

use super::*;
use crate::source::Source;
use crate::web::Member;

fn guard() -> (Guard, String) {
    guard_over(Over::Plain)
}

fn guard_over(over: Over) -> (Guard, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let guard = Guard::new(Token::at(&path).unwrap(), &["Board.Example".to_owned()], over).unwrap();
    (guard, std::fs::read_to_string(&path).unwrap())
}

/// Somebody at this address, at a server whose certificate is good for one name.
fn peer(address: [u8; 4], member: Option<Member>) -> Peer {
    Peer { source: Source::of(address.into()), hosts: Arc::from(["coordinator.test".to_owned()]), member }
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
        assert_eq!(guard.host(&parts(&[("host", good)]), &stranger()), Ok(()), "{good}");
    }
    for bad in ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "", "evil@127.0.0.1", "::1"] {
        assert_eq!(guard.host(&parts(&[("host", bad)]), &stranger()), Err(Refusal::Host), "{bad}");
    }
    assert!(guard.host(&parts(&[]), &stranger()).is_err());
    assert!(guard.host(&parts(&[("host", "localhost"), ("host", "evil.example")]), &stranger()).is_err());
}

#[test]
fn only_pages_of_this_site_change_anything() {
    let (guard, _) = guard();
    let same_origin = |headers: &HeaderMap| guard.same_origin(headers);
    let ours = [("host", "localhost:8080"), ("origin", "http://localhost:8080")];
    assert_eq!(same_origin(&parts(&ours).headers), Ok(()));
    let with = |name, value| same_origin(&parts(&[ours[0], ours[1], (name, value)]).headers);
    assert_eq!(with("sec-fetch-site", "same-origin"), Ok(()));
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(with("sec-fetch-site", site), Err(Refusal::Origin), "{site}");
    }
    for origin in ["http://localhost:8081", "http://evil.example", "null", "http://localhost", ""] {
        assert!(same_origin(&parts(&[ours[0], ("origin", origin)]).headers).is_err(), "{origin}");
    }
    assert!(same_origin(&parts(&ours[..1]).headers).is_err());
}

#[test]
fn a_session_needs_its_own_word_and_a_program_none() {
    let (guard, token) = guard();
    let now = Instant::now();
    let ours = parts(&[("host", "localhost"), ("origin", "http://localhost")]);
    assert_eq!(guard.login(&ours, &Fields::of(&[("token", "wrong")]), &stranger(), now), Err(Refusal::Unknown));
    assert_eq!(
        guard.login(&parts(&[("host", "localhost")]), &Fields::of(&[("token", &token)]), &stranger(), now),
        Err(Refusal::Origin)
    );
    let [one, other] = [0, 1].map(|_| guard.login(&ours, &Fields::of(&[("token", &token)]), &stranger(), now).unwrap());
    let of = |id: &str| guard.caller(&parts(&[("cookie", &format!("a=b; {}={id}", guard.cookie()))]).headers, &stranger(), now);
    let (caller, other) = (of(&one).unwrap(), of(&other).unwrap());
    assert_eq!(of("x"), Err(Refusal::Unknown));
    assert_eq!(guard.admits_form(&caller, &Fields::of(&[(CSRF_FIELD, &caller.visitor().csrf)])), Ok(()));
    for wrong in ["", "x", &other.visitor().csrf] {
        assert_eq!(guard.admits_form(&caller, &Fields::of(&[(CSRF_FIELD, wrong)])), Err(Refusal::Form));
    }
    assert_eq!(guard.admits_form(&caller, &Fields::of(&[])), Err(Refusal::Form));
    guard.logout(&caller);
    assert_eq!(of(&one), Err(Refusal::Unknown));

    let bearer = parts(&[("authorization", &format!("Bearer {}", token.trim()))]);
    assert_eq!(guard.caller(&bearer.headers, &stranger(), now), Ok(Caller::Program));
    assert_eq!(guard.admits_form(&Caller::Program, &Fields::of(&[])), Ok(()));
    let elsewhere = parts(&[("host", "localhost"), ("origin", "http://evil.example")]);
    assert_eq!(guard.admits(&elsewhere, &stranger(), &Caller::Program, true), Err(Refusal::Origin));
}

#[test]
fn guessing_is_slow_even_for_who_has_the_token_and_for_nobody_else() {
    let (guard, token) = guard();
    let now = Instant::now();
    let presents =
        |word: &str, from: &Peer| guard.caller(&parts(&[("authorization", &format!("Bearer {word}"))]).headers, from, now);
    while presents("wrong", &stranger()) == Err(Refusal::Unknown) {}
    assert_eq!(presents(token.trim(), &stranger()), Err(Refusal::TooOften));
    assert_eq!(presents(token.trim(), &peer([10, 0, 0, 2], None)), Ok(Caller::Program));
}

#[test]
fn a_certificate_is_a_visitor_with_a_word_of_its_own() {
    let (guard, token) = guard_over(Over::Tls);
    let now = Instant::now();
    let (alice, bob) = (member("alice", b"one"), member("bob", b"two"));
    let of = |peer: &Peer, headers: &[(&str, &str)]| guard.caller(&parts(headers).headers, peer, now).unwrap();
    let caller = of(&alice, &[]);
    let visitor = caller.visitor();
    assert_eq!((&visitor.who, visitor.has_session()), (&Who::Member("alice".to_owned()), false));
    assert_eq!(of(&alice, &[]), caller, "the same at every request");
    let (others, renewed) = (of(&bob, &[]).visitor().csrf, of(&member("alice", b"three"), &[]).visitor().csrf);
    assert_eq!(guard.admits_form(&caller, &Fields::of(&[(CSRF_FIELD, &visitor.csrf)])), Ok(()));
    for wrong in ["", &*others, &*renewed, &*guard_over(Over::Tls).0.member(&alice).unwrap().visitor().csrf] {
        assert_eq!(guard.admits_form(&caller, &Fields::of(&[(CSRF_FIELD, wrong)])), Err(Refusal::Form));
    }

    // A browser shows the certificate for whichever site's page asks.
    let admits = |headers: &[(&str, &str)], changes| guard.admits(&parts(headers), &alice, &caller, changes);
    let host = ("host", "coordinator.test:8443");
    assert_eq!(admits(&[host, ("origin", "https://coordinator.test:8443")], true), Ok(()));
    for elsewhere in ["https://evil.example", "http://coordinator.test:8443", "https://coordinator.test", "null"] {
        assert_eq!(admits(&[host, ("origin", elsewhere)], true), Err(Refusal::Origin), "{elsewhere}");
    }
    assert_eq!(admits(&[host], true), Err(Refusal::Origin));
    let fetched = [host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
    assert_eq!(admits(&fetched, false), Err(Refusal::Origin));
    assert_eq!(admits(&[("host", "evil.example")], false), Err(Refusal::Host));

    // Whoever has the token is the operator, certificate or not; a wrong one is not made good by a certificate.
    let bearer = format!("Bearer {}", token.trim());
    assert_eq!(of(&alice, &[("authorization", &*bearer)]), Caller::Program);
    let wrong = parts(&[("authorization", "Bearer x")]);
    assert_eq!(guard.caller(&wrong.headers, &alice, now), Err(Refusal::Unknown));
    let ours = parts(&[host, ("origin", "https://coordinator.test:8443")]);
    let id = guard.login(&ours, &Fields::of(&[("token", &token)]), &alice, now).unwrap();
    assert!(guard.cookie().starts_with("__Host-"));
    let cookie = format!("{}={id}", guard.cookie());
    assert_eq!(of(&alice, &[("cookie", &*cookie)]).visitor().who, Who::Operator);
}

#[test]
fn hosts_of_ones_own_are_asked_over_tls_alone() {
    let strict = |over, host: &str| guard_over(over).0.is_strict(&parts(&[("host", host)]).headers, &stranger());
    assert!(strict(Over::Tls, "coordinator.test:8443") && strict(Over::Tls, "board.example"));
    for host in ["localhost:8443", "127.0.0.1", "[::1]:1", "evil.example", ""] {
        assert!(!strict(Over::Tls, host), "{host}");
    }
    assert!(!strict(Over::Plain, "board.example"));
}
