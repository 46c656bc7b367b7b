#![allow(clippy::unwrap_used)]
use tokio::net::TcpListener;

use super::*;

/// A proxy that gives this answer to whatever it is asked, and what it was asked.
async fn answering(answer: &[u8], credentials: &str) -> (Result<Wire, Fault>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{credentials}{}", listener.local_addr().unwrap());
    let answer = answer.to_vec();
    let proxy = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut asked, mut byte) = (Vec::new(), [0]);
        while !asked.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).await.unwrap();
            asked.push(byte[0]);
        }
        // One that reads no further may hang up before all is written.
        let _ = stream.write_all(&answer).await;
        String::from_utf8(asked).unwrap()
    });
    let opened = open(&Proxy::parse(&url, "HTTPS_PROXY").unwrap(), "coordinator.example:443", None).await;
    (opened, proxy.await.unwrap())
}

#[tokio::test]
async fn a_tunnel_opens_and_what_follows_at_once_is_not_lost() {
    for answer in
        ["HTTP/1.1 200 Connection established\r\n\r\nhello", "HTTP/1.0 200 OK\nVia: x\n\nhello", "HTTP/1.1 299\r\n\r\nhello"]
    {
        let (opened, asked) = answering(answer.as_bytes(), "").await;
        let mut word = String::new();
        opened.unwrap_or_else(|fault| panic!("{answer:?}: {fault}")).read_to_string(&mut word).await.unwrap();
        assert_eq!(word, "hello");
        assert_eq!(asked, "CONNECT coordinator.example:443 HTTP/1.1\r\nHost: coordinator.example:443\r\n\r\n");
    }
    let (_, asked) = answering(b"HTTP/1.1 200 OK\r\n\r\n", "Aladdin:open%20sesame@").await;
    assert!(
        asked.ends_with("Host: coordinator.example:443\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_refusal_names_proxy_status_and_remedy() {
    let (exact, long) = ("x".repeat(LONGEST_ANSWER - 24), "x".repeat(LONGEST_ANSWER - 23));
    let (exact, long) = (format!("HTTP/1.1 200 OK\r\nA: {exact}\r\n\r\n"), format!("HTTP/1.1 200 OK\r\nA: {long}\r\n\r\n"));
    assert_eq!(exact.len(), LONGEST_ANSWER);
    assert!(answering(exact.as_bytes(), "").await.0.is_ok());
    for (answer, credentials, code, said) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "",
            ErrorCode::Unauthenticated,
            "wants credentials (407): write them into HTTPS_PROXY",
        ),
        (
            "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n",
            "u:hunter2@",
            ErrorCode::Unauthenticated,
            "does not accept the user and password in HTTPS_PROXY (407)",
        ),
        (
            "HTTP/1.1 407 No\r\nproxy-authenticate: NTLM\r\nProxy-Authenticate: Negotiate\r\n\r\n",
            "u:hunter2@",
            ErrorCode::Unauthenticated,
            "of the kind ntlm, negotiate (407)",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\n\r\n",
            "u:hunter2@",
            ErrorCode::Unreachable,
            "refuses a tunnel to coordinator.example:443 (403)",
        ),
        ("HTTP/1.1 504 Gateway Timeout\r\n\r\n", "", ErrorCode::Unreachable, "cannot reach coordinator.example:443 itself (504)"),
        ("HTTP/1.1 302 Found\r\nLocation: http://login\r\n\r\n", "", ErrorCode::Unreachable, "it answers 302"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "", ErrorCode::Unreachable, "something else than HTTP"),
        ("HTTP/2 200\r\n\r\n", "", ErrorCode::Unreachable, "something else than HTTP"),
        ("HTTP/1.1 20000\r\n\r\n", "", ErrorCode::Unreachable, "something else than HTTP"),
        ("HTTP/1.1 200 OK\r\nVia: x\r\n", "", ErrorCode::Unreachable, "something else than HTTP"),
        ("", "", ErrorCode::Unreachable, "something else than HTTP"),
        (&long, "", ErrorCode::Unreachable, "something else than HTTP"),
    ] {
        let (opened, _) = answering(answer.as_bytes(), credentials).await;
        let fault = opened.err().unwrap_or_else(|| panic!("{answer:?} opens a tunnel"));
        assert_eq!(fault.code, code, "{answer:?}: {fault}");
        assert!(fault.message.starts_with("The proxy http://127.0.0.1:") && fault.message.contains(said), "{answer:?}: {fault}");
        assert!(!fault.message.contains("hunter2") && !fault.message.contains("aHVudGVyMg"), "{fault}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_or_may_not_be_trusted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let through = async |url: String, bundle: Option<&Path>| {
        open(&Proxy::parse(&url, "`proxy`").unwrap(), "coordinator.example:443", bundle).await.err().unwrap()
    };
    let bare = through(format!("https://{address}"), None).await;
    assert!(
        bare.code == ErrorCode::InvalidInput && bare.message.contains("ca_bundle") && bare.message.contains(CA_BUNDLE_VARIABLE),
        "{bare}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.pem");
    let missing = through(format!("https://{address}"), Some(&file)).await;
    assert!(missing.code == ErrorCode::InvalidInput && missing.message.contains("bundle.pem"), "{missing}");
    std::fs::write(&file, "no certificate").unwrap();
    let empty = through(format!("https://{address}"), Some(&file)).await;
    assert!(empty.message.contains("holds no CA certificate"), "{empty}");
    drop(listener);
    let gone = through(format!("http://{address}"), None).await;
    assert_eq!(gone.code, ErrorCode::Unreachable);
    assert!(
        gone.message.contains(&address.to_string()) && gone.message.contains("refused") && gone.message.contains("NO_PROXY"),
        "{gone}"
    );
}
