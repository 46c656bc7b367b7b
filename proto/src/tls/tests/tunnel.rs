#![allow(clippy::unwrap_used)]
use std::path::PathBuf;
use std::time::SystemTime;

use rustls_pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::ca::{self, KeyedPem, Validity};
use crate::identity::{PeerIdentity, Role};

/// Runs a proxy with a fixed answer; returns the tunnel and the request that it received.
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
        // A client that stops reading may close the connection before everything is written.
        let _ = stream.write_all(&answer).await;
        String::from_utf8(asked).unwrap()
    });
    let opened = open(&Proxy::parse(&url, "HTTPS_PROXY").unwrap(), "coordinator.example:443", None).await;
    (opened, proxy.await.unwrap())
}

#[tokio::test]
async fn a_tunnel_opens_and_bytes_after_the_answer_are_kept() {
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
    let (exact, long) = ("x".repeat(MAX_ANSWER_BYTES - 24), "x".repeat(MAX_ANSWER_BYTES - 23));
    let (exact, long) = (format!("HTTP/1.1 200 OK\r\nA: {exact}\r\n\r\n"), format!("HTTP/1.1 200 OK\r\nA: {long}\r\n\r\n"));
    assert_eq!(exact.len(), MAX_ANSWER_BYTES);
    assert!(answering(exact.as_bytes(), "").await.0.is_ok());
    for (answer, credentials, code, said) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "",
            ErrorCode::Unauthenticated,
            "requires credentials (407): write them into HTTPS_PROXY",
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
            "requires ntlm, negotiate authentication (407)",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\n\r\n",
            "u:hunter2@",
            ErrorCode::Unreachable,
            "refuses a tunnel to coordinator.example:443 (403)",
        ),
        ("HTTP/1.1 504 Gateway Timeout\r\n\r\n", "", ErrorCode::Unreachable, "cannot reach coordinator.example:443 itself (504)"),
        ("HTTP/1.1 302 Found\r\nLocation: http://login\r\n\r\n", "", ErrorCode::Unreachable, "it answers 302"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "", ErrorCode::Unreachable, "does not answer in HTTP"),
        ("HTTP/2 200\r\n\r\n", "", ErrorCode::Unreachable, "does not answer in HTTP"),
        ("HTTP/1.1 20000\r\n\r\n", "", ErrorCode::Unreachable, "does not answer in HTTP"),
        ("HTTP/1.1 200 OK\r\nVia: x\r\n", "", ErrorCode::Unreachable, "does not answer in HTTP"),
        ("", "", ErrorCode::Unreachable, "does not answer in HTTP"),
        (&long, "", ErrorCode::Unreachable, "does not answer in HTTP"),
    ] {
        let (opened, _) = answering(answer.as_bytes(), credentials).await;
        let fault = opened.err().unwrap_or_else(|| panic!("{answer:?} opens a tunnel"));
        assert_eq!(fault.code, code, "{answer:?}: {fault}");
        assert!(fault.message.starts_with("the proxy http://127.0.0.1:") && fault.message.contains(said), "{answer:?}: {fault}");
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

/// Runs a proxy that is dialled over TLS, with a certificate of this CA; its tunnel echoes the bytes it receives.
async fn tls_proxy(ca: &KeyedPem) -> String {
    let name = PeerIdentity::new(Role::Coordinator, "proxy").unwrap();
    let keyed = ca::issue(ca, &name, &["127.0.0.1".to_owned()], validity()).unwrap();
    let certificate = CertificateDer::from_pem_slice(keyed.pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(keyed.key_pem.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let (acceptor, listener) = (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut word = [0; 5];
            stream.read_exact(&mut word).await.unwrap();
            stream.write_all(&word).await.unwrap();
        }
    });
    format!("https://{address}")
}

fn validity() -> Validity {
    Validity { now: SystemTime::now(), days: 1 }
}

#[tokio::test]
async fn a_proxy_over_tls_is_trusted_by_the_bundle_and_by_nothing_else() {
    let (its, other) = (ca::create_ca("hospital", validity()).unwrap(), ca::create_ca("hospital", validity()).unwrap());
    let url = tls_proxy(&its).await;
    let folder = tempfile::tempdir().unwrap();
    let bundle = |pem: &str| {
        let file = folder.path().join("bundle.pem");
        std::fs::write(&file, pem).unwrap();
        file
    };
    let through = async |url: &str, bundle: PathBuf| {
        open(&Proxy::parse(url, "`proxy`").unwrap(), "coordinator.example:443", Some(&bundle)).await
    };
    // A bundle of several certificates, one of them unreadable.
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let mut tunnel = through(&url, bundle(&format!("{broken}{}{}", other.pem, its.pem))).await.unwrap_or_else(|e| panic!("{e}"));
    tunnel.write_all(b"hello").await.unwrap();
    tunnel.flush().await.unwrap();
    let mut word = [0; 5];
    tunnel.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"hello");
    for (url, pem, said) in [
        (url.clone(), &other.pem, "bundle.pem: add the proxy's CA to it"),
        (url.replace("127.0.0.1", "localhost"), &its.pem, "has a certificate that is not accepted"),
    ] {
        let fault = through(&url, bundle(pem)).await.err().unwrap();
        assert_eq!(fault.code, ErrorCode::Unreachable);
        assert!(fault.message.contains(said), "{fault}");
    }
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let fault = through(&format!("https://{address}"), bundle(&its.pem)).await.err().unwrap();
    assert!(fault.message.contains("does not speak TLS: write http://"), "{fault}");
}
