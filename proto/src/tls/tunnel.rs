//! The tunnel that a proxy opens with CONNECT.
//!
//! hyper-util's `Tunnel` is not used because its errors hide the proxy's status and its authentication schemes, which the
//! operator needs in order to fix the connection.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::{CertificateError, ClientConfig, Error as TlsError, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::provider::provider;
use super::proxy::{CA_BUNDLE_VARIABLE, Proxy};
use super::reach::reach;
use crate::error::{ErrorCode, Fault};

/// Maximum length of a proxy's answer before the tunnel starts, in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 10;
/// Timeout of the TLS handshake with the proxy.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the proxy's answer, which includes dialling the coordinator.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A byte stream in both directions over any transport.
pub type Wire = Box<dyn Duplex>;

/// A transport of bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Opens a tunnel to `target` (`HOST:PORT`).
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] if the proxy requires credentials or rejects them; [`ErrorCode::InvalidInput`] for an
/// unusable bundle; else [`ErrorCode::Unreachable`]. Each names the proxy, but never its password.
pub(super) async fn open(proxy: &Proxy, target: &str, bundle: Option<&Path>) -> Result<Wire, Fault> {
    let stream = reach(&proxy.authority()).await.map_err(|why| {
        unreachable(
            proxy,
            &format!("cannot be reached ({why}): check its address, or name {target} in NO_PROXY where no proxy is needed"),
        )
    })?;
    let wire: Wire = if proxy.has_tls() { Box::new(over_tls(proxy, stream, bundle).await?) } else { Box::new(stream) };
    match timeout(ANSWER_TIMEOUT, request_tunnel(proxy, target, wire)).await {
        Ok(opened) => opened,
        Err(_) => Err(unreachable(proxy, &format!("did not answer within {} s", ANSWER_TIMEOUT.as_secs()))),
    }
}

async fn request_tunnel(proxy: &Proxy, target: &str, wire: Wire) -> Result<Wire, Fault> {
    let broke = |error: std::io::Error| unreachable(proxy, &format!("closed the connection ({error})"));
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(credentials) = proxy.authorization() {
        request.extend([b"Proxy-Authorization: ", credentials.as_bytes(), b"\r\n"].concat());
    }
    request.extend(b"\r\n");
    // Bytes after the answer belong to the tunnel and stay in the reader's buffer.
    let mut wire = BufReader::new(wire);
    wire.write_all(&request).await.map_err(broke)?;
    wire.flush().await.map_err(broke)?;
    let head = read_head(&mut wire).await.map_err(broke)?;
    let answer = head.as_deref().and_then(Answer::parse).ok_or_else(|| {
        unreachable(
            proxy,
            "does not answer in HTTP: check that its address is that of an HTTP proxy, and its scheme http:// or https://",
        )
    })?;
    answer.check(proxy, target)?;
    Ok(Box::new(wire))
}

/// Reads the answer up to its empty line; `None` if it is too long or ends early.
async fn read_head(wire: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    loop {
        let start = head.len();
        let mut rest = wire.take((MAX_ANSWER_BYTES - start) as u64);
        rest.read_until(b'\n', &mut head).await?;
        match &head[start..] {
            b"\r\n" | b"\n" => return Ok(Some(head)),
            line if line.ends_with(b"\n") => {}
            _ => return Ok(None),
        }
    }
}

/// The relevant parts of an answer.
struct Answer {
    status: u16,
    /// The offered authentication schemes, in lower case.
    schemes: Vec<String>,
}

impl Answer {
    fn parse(head: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.lines();
        let mut words = lines.next()?.split_ascii_whitespace();
        words.next().filter(|version| version.starts_with("HTTP/1."))?;
        let status = words.next().filter(|status| status.len() == 3)?.parse().ok()?;
        let schemes = lines
            .filter_map(|line| line.split_once(':'))
            .filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authenticate"))
            .filter_map(|(_, value)| value.split_ascii_whitespace().next())
            .map(|scheme| scheme.chars().filter(char::is_ascii_alphanumeric).take(20).collect::<String>().to_ascii_lowercase())
            .collect();
        Some(Self { status, schemes })
    }

    fn check(&self, proxy: &Proxy, target: &str) -> Result<(), Fault> {
        let (status, source) = (self.status, proxy.source());
        match status {
            200..=299 => Ok(()),
            407 => {
                let basic = self.schemes.is_empty() || self.schemes.iter().any(|scheme| scheme == "basic");
                let what = if !basic {
                    let schemes = self.schemes.join(", ");
                    format!(
                        "requires {schemes} authentication (407), but Conclave supports only Basic: ask its operator to admit \
                         {target} without authentication, or with Basic"
                    )
                } else if proxy.authorization().is_some() {
                    format!("does not accept the user and password in {source} (407): correct them")
                } else {
                    format!("requires credentials (407): write them into {source} as http://USER:PASSWORD@HOST:PORT")
                };
                Err(fault(ErrorCode::Unauthenticated, proxy, &what))
            }
            401 | 403 | 405 => Err(unreachable(
                proxy,
                &format!(
                    "refuses a tunnel to {target} ({status}): ask its operator to admit CONNECT to this host and port; many proxies \
                     admit only port 443"
                ),
            )),
            502..=504 => Err(unreachable(
                proxy,
                &format!("cannot reach {target} itself ({status}): check that the coordinator runs and that its URL is right"),
            )),
            _ => Err(unreachable(
                proxy,
                &format!("opens no tunnel to {target} (it answers {status}): ask its operator for the reason"),
            )),
        }
    }
}

/// Starts TLS with the proxy itself, whose certificate a CA in the bundle must have signed.
async fn over_tls(proxy: &Proxy, stream: TcpStream, bundle: Option<&Path>) -> Result<TlsStream<TcpStream>, Fault> {
    let input = |what: String| Fault::new(ErrorCode::InvalidInput, what);
    let Some(bundle) = bundle else {
        return Err(input(format!(
            "the proxy {proxy} ({}) is dialled over TLS, but no CA for its certificate is configured: name a PEM file with the CA's \
             certificate as ca_bundle in party.toml or in {CA_BUNDLE_VARIABLE}, such as /etc/ssl/certs/ca-certificates.crt",
            proxy.source()
        )));
    };
    let roots = roots(bundle).map_err(input)?;
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| Fault::new(ErrorCode::Internal, format!("could not set up TLS: {e}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(proxy.host().to_owned())
        .map_err(|_| input(format!("{} names a host that is neither a DNS name nor an IP address", proxy.source())))?;
    match timeout(TLS_TIMEOUT, TlsConnector::from(Arc::new(config)).connect(name, stream)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(refused_tls(proxy, bundle, &error)),
        Err(_) => Err(unreachable(proxy, &format!("did not finish the TLS handshake within {} s", TLS_TIMEOUT.as_secs()))),
    }
}

fn roots(bundle: &Path) -> Result<RootCertStore, String> {
    let pem = std::fs::read(bundle).map_err(|e| format!("ca_bundle = {} cannot be read: {e}", bundle.display()))?;
    let mut roots = RootCertStore::empty();
    // A system's bundle may hold old certificates that are no longer readable.
    let (added, _) = roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok));
    if added == 0 {
        return Err(format!("ca_bundle = {} holds no CA certificate in PEM", bundle.display()));
    }
    Ok(roots)
}

fn refused_tls(proxy: &Proxy, bundle: &Path, error: &std::io::Error) -> Fault {
    let what = match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            format!("has a certificate not signed by any CA in ca_bundle = {}: add the proxy's CA to it", bundle.display())
        }
        Some(TlsError::InvalidCertificate(why)) => format!("has a certificate that is not accepted ({why})"),
        Some(TlsError::InvalidMessage(_)) => "does not speak TLS: write http:// instead of https://".to_owned(),
        _ => format!("aborted the TLS handshake ({error})"),
    };
    unreachable(proxy, &what)
}

fn unreachable(proxy: &Proxy, what: &str) -> Fault {
    fault(ErrorCode::Unreachable, proxy, what)
}

fn fault(code: ErrorCode, proxy: &Proxy, what: &str) -> Fault {
    Fault::new(code, format!("the proxy {proxy} ({}) {what}", proxy.source()))
}

#[cfg(test)]
#[path = "tests/tunnel.rs"]
mod tests;
