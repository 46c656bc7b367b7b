//! Tests over real sockets: answers to strangers, browsers and pages of other sites.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Extension, Router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::connection::{FORM_BYTES, HEAD_BYTES};
use super::*;
use crate::source::SourceHost;

struct Served {
    address: SocketAddr,
    token: String,
    _folder: tempfile::TempDir,
}

async fn served() -> Served {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let site = Site::bind("dashboard", ([127, 0, 0, 1], 0).into(), &path, &[], Transport::Plain).await.unwrap();
    let address = site.address();
    tokio::spawn(site.serve(pages(), Arc::new(|| true)));
    Served { address, token: std::fs::read_to_string(path).unwrap().trim().to_owned(), _folder: folder }
}

fn pages() -> Router {
    Router::new()
        .route("/", get(|Extension(visitor): Extension<Visitor>| async move { format!("word={};secret", visitor.csrf) }))
        .route(
            "/do",
            post(|Extension(fields): Extension<Fields>| async move { format!("did {}", fields.get("x").unwrap_or("-")) }),
        )
}

impl Served {
    async fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    async fn get(&self, path: &str, headers: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address)).await
    }

    async fn post(&self, path: &str, headers: &str, form: &str) -> String {
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n{headers}\r\n{form}",
            self.address,
            form.len()
        ))
        .await
    }

    fn origin(&self) -> String {
        format!("Origin: http://{}\r\n", self.address)
    }

    /// Logs in; returns the cookie's header and the session's CSRF token.
    async fn login(&self) -> (String, String) {
        let answer = self.post("/login", &self.origin(), &format!("token={}", self.token)).await;
        assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("location: /\r\n"), "{answer}");
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
        let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
        let page = self.get("/", &cookie).await;
        let word = page.split("word=").nth(1).unwrap().split(';').next().unwrap().to_owned();
        (cookie, word)
    }
}

#[tokio::test]
async fn a_link_opens_the_pages_once() {
    let served = served().await;
    let link = link(&served._folder.path().join("token")).unwrap();
    for foreign in ["Sec-Fetch-Site: cross-site\r\n", "Sec-Purpose: prefetch\r\n"] {
        assert!(served.get(&link, foreign).await.starts_with("HTTP/1.1 401"), "{foreign}");
    }
    let opened = served.get(&link, "Sec-Fetch-Site: none\r\n").await;
    assert!(opened.starts_with("HTTP/1.1 303") && opened.contains("location: /\r\n"), "{opened}");
    let cookie =
        opened.lines().find_map(|line| line.strip_prefix("set-cookie: ")).and_then(|line| line.split(';').next()).unwrap();
    assert!(served.get("/", &format!("Cookie: {cookie}\r\n")).await.contains("secret"));
    let again = served.get(&link, "").await;
    assert!(again.starts_with("HTTP/1.1 401") && !again.contains("set-cookie"), "{again}");
    assert!(again.contains("style-src 'sha256-") && !again.contains("script-src"), "{again}");
}

#[tokio::test]
async fn without_a_token_every_path_but_health_answers_401_and_nothing_else() {
    let served = served().await;
    assert!(served.get("/healthz", "").await.starts_with("HTTP/1.1 200"));
    let bare = served.get("/", "").await;
    assert!(bare.starts_with("HTTP/1.1 401") && bare.contains("<form") && !bare.contains("secret"), "{bare}");
    let body = |text: &str| text.split_once("\r\n\r\n").unwrap().1.to_owned();
    for path in ["/", "/do", "/nothing", "/style.css", "/login", "/logout", "/healthz/x", "//healthz", "/%2e%2e/"] {
        let answer = served.get(path, "").await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
        assert_eq!(body(&answer), body(&bare), "{path}");
    }
    for (path, headers) in [("/do", String::new()), ("/logout", served.origin()), ("/healthz", String::new())] {
        assert!(served.post(path, &headers, "x=1").await.starts_with("HTTP/1.1 401"), "{path}");
    }
    for method in ["PUT", "DELETE", "OPTIONS", "TRACE", "X"] {
        let answer = served.ask(&format!("{method} / HTTP/1.1\r\nHost: {}\r\n\r\n", served.address)).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{method}: {answer}");
    }
    for wrong in ["Cookie: conclave-x=1\r\n", "Authorization: Bearer x\r\n", "Authorization: Basic x\r\n"] {
        assert!(served.get("/", wrong).await.starts_with("HTTP/1.1 401"), "{wrong}");
    }
    let rebound = served.ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").await;
    assert!(rebound.starts_with("HTTP/1.1 401"), "{rebound}");
}

#[tokio::test]
async fn every_answer_carries_the_strict_headers() {
    let served = served().await;
    let (cookie, _) = served.login().await;
    for answer in [
        served.get("/", "").await,
        served.get("/healthz", "").await,
        served.get("/", &cookie).await,
        served.get("/no", &cookie).await,
    ] {
        for header in [
            // The login page admits no script at all.
            "content-security-policy: default-src 'none'; s",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: same-origin",
            "cache-control: no-store",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.contains(header), "{header}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_browser_logs_in_acts_and_logs_out() {
    let served = served().await;
    let (cookie, word) = served.login().await;
    let (ours, form) = (format!("{cookie}{}", served.origin()), format!("csrf={word}&x=a%26b"));
    assert!(served.post("/do", &ours, &form).await.ends_with("did a&b"));
    for (headers, form, why) in [
        (cookie.clone(), form.clone(), "no origin"),
        (format!("{cookie}Origin: http://evil.example\r\n"), form.clone(), "another origin"),
        (format!("{cookie}Origin: null\r\n"), form.clone(), "no named origin"),
        (format!("{ours}Sec-Fetch-Site: same-site\r\n"), form.clone(), "another port"),
        (ours.clone(), "x=1".to_owned(), "no word"),
        (ours.clone(), "csrf=wrong&x=1".to_owned(), "a wrong word"),
    ] {
        let answer = served.post("/do", &headers, &form).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{why}: {answer}");
    }
    let rebound = served.ask(&format!("GET / HTTP/1.1\r\nHost: evil.example:80\r\n{cookie}\r\n")).await;
    assert!(rebound.starts_with("HTTP/1.1 421") && !rebound.contains("secret"), "{rebound}");
    let embedded = served.get("/", &format!("{cookie}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n")).await;
    assert!(embedded.starts_with("HTTP/1.1 403"), "{embedded}");
    assert!(served.get("/do", &cookie).await.starts_with("HTTP/1.1 405"));
    assert!(served.post("/logout", &ours, "csrf=x").await.starts_with("HTTP/1.1 403"));
    assert!(served.post("/logout", &ours, &form).await.contains("Max-Age=0"));
    assert!(served.get("/", &cookie).await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn a_program_sends_the_token_with_every_request() {
    let served = served().await;
    let bearer = format!("Authorization: Bearer {}\r\n", served.token);
    assert!(served.get("/", &bearer).await.contains("word=;secret"));
    assert!(served.post("/do", &bearer, "x=1").await.ends_with("did 1"));
    assert!(served.post("/do", &format!("{bearer}Origin: http://evil.example\r\n"), "x=1").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn long_and_foreign_bodies_are_refused() {
    let served = served().await;
    let bearer = format!("Authorization: Bearer {}\r\n", served.token);
    let long = format!("x={}", "y".repeat(FORM_BYTES));
    assert!(served.post("/do", &bearer, &long).await.starts_with("HTTP/1.1 413"));
    let json = format!(
        "POST /do HTTP/1.1\r\nHost: {}\r\n{bearer}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
        served.address
    );
    assert!(served.ask(&json).await.starts_with("HTTP/1.1 415"));
    let head = format!("GET /{} HTTP/1.1\r\n", "x".repeat(2 * HEAD_BYTES));
    assert!(!served.ask(&head).await.contains(" 200 "));
}

#[tokio::test]
async fn wrong_tokens_run_out() {
    let served = served().await;
    let mut last = String::new();
    for _ in 0..12 {
        last = served.post("/login", &served.origin(), "token=wrong").await;
        assert!(last.starts_with("HTTP/1.1 401"), "{last}");
    }
    assert!(last.contains("Too many wrong tokens") && last.contains("retry-after"), "{last}");
    let right = served.post("/login", &served.origin(), &format!("token={}", served.token)).await;
    assert!(right.starts_with("HTTP/1.1 401"), "{right}");
}

/// Returns the answer to a request whose TLS was already terminated.
async fn behind_tls(connections: &PageConnections, member: Option<Member>, place: Option<Slot>, request: &str) -> String {
    let hosts = Arc::from(["board.example".to_owned()]);
    let (mut near, far) = tokio::io::duplex(64 << 10);
    let peer = Peer { source: SourceHost::at([10, 0, 0, 1].into()), hosts, member };
    near.write_all(request.as_bytes()).await.unwrap();
    connections.serve(far, peer, place).await;
    let mut text = String::new();
    near.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn over_tls_cookies_are_secure_and_a_certificate_opens_the_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let site = Site::bind("dashboard", ([127, 0, 0, 1], 0).into(), &path, &[], Transport::Tls).await.unwrap();
    let token = std::fs::read_to_string(&path).unwrap();
    let (_listener, connections) = site.into_parts(pages(), Arc::new(|| true));
    let alice = || Some(Member { name: "alice".to_owned(), certificate: vec![1] });
    let get = "GET / HTTP/1.1\r\nHost: board.example:8443\r\n\r\n";
    let stranger = behind_tls(&connections, None, None, get).await;
    assert!(stranger.starts_with("HTTP/1.1 401") && !stranger.contains("secret"), "{stranger}");
    assert!(stranger.contains("strict-transport-security: max-age=15552000\r\n"), "{stranger}");
    let page = behind_tls(&connections, alice(), None, get).await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("secret"), "{page}");
    let word = page.split("word=").nth(1).unwrap().split(';').next().unwrap().to_owned();
    let post = |path: &str, origin: &str, form: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: board.example:8443\r\nOrigin: {origin}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n{form}",
            form.len()
        )
    };
    let (ours, form) = ("https://board.example:8443", format!("csrf={word}&x=1"));
    assert!(behind_tls(&connections, alice(), None, &post("/do", ours, &form)).await.ends_with("did 1"));
    for (origin, form) in [("https://evil.example", &*form), ("http://board.example:8443", &form), (ours, "csrf=x&x=1")] {
        let answer = behind_tls(&connections, alice(), None, &post("/do", origin, form)).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{origin} {form}: {answer}");
    }
    let login = behind_tls(&connections, None, None, &post("/login", ours, &format!("token={}", token.trim()))).await;
    let cookie = login.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(
        cookie.starts_with("__Host-conclave-") && cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/; Secure"),
        "{cookie}"
    );
}

#[tokio::test]
async fn a_valid_token_frees_the_place_among_strangers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let site = Site::bind("dashboard", ([127, 0, 0, 1], 0).into(), &path, &[], Transport::Tls).await.unwrap();
    let token = std::fs::read_to_string(&path).unwrap();
    // A page that completes only once the place of its connection is free.
    let held = Arc::new(());
    let waits = Arc::downgrade(&held);
    let pages = Router::new().route(
        "/",
        get(|| async move {
            while waits.strong_count() > 0 {
                tokio::task::yield_now().await;
            }
            "alone"
        }),
    );
    let (_listener, connections) = site.into_parts(pages, Arc::new(|| true));
    let request = format!("GET / HTTP/1.1\r\nHost: board.example\r\nAuthorization: Bearer {}\r\n\r\n", token.trim());
    assert!(behind_tls(&connections, None, Some(Box::new(held)), &request).await.ends_with("alone"));
}

#[test]
fn other_addresses_are_refused_with_the_remedy() {
    assert!(check_loopback("dashboard", ([127, 0, 0, 1], 80).into()).is_ok());
    let refused = check_loopback("dashboard", ([0, 0, 0, 0], 8080).into()).unwrap_err();
    assert!(refused.contains("`dashboard`") && refused.contains("ssh -L 8080:127.0.0.1:8080"), "{refused}");
}
