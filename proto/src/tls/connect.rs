//! Dialling the coordinator.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::explain::{explain, explain_in_chain};
use super::folder::IdentityDir;
use crate::error::{ErrorCode, Fault};
use crate::revoked::RevokedList;

/// A TCP connection and TLS handshake that take longer are given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that has not greeted by then is taken to wait for us to begin.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);
/// An HTTP/2 ping is sent after this long without traffic, so that dead connections and idle firewalls are noticed.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// A connection whose ping is not answered by then is dead.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Dials the coordinator at `url` (`https://HOST[:PORT]`, port 443 by default) as this identity.
///
/// Verifies the server's chain, its host name, and that its certificate carries the role of coordinator. The channel
/// dials again by itself when the connection has broken; calls fail meanwhile.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for a bad URL or identity, [`ErrorCode::Unreachable`] where nobody answers,
/// [`ErrorCode::Unauthenticated`] where one end does not accept the other's certificate.
pub async fn connect(url: &str, identity: &IdentityDir) -> Result<Channel, Fault> {
    connect_unless_revoked(url, identity, None).await
}

/// As [`connect`], to a coordinator whose certificate `revoked` does not name.
///
/// # Errors
/// As [`connect`]; [`ErrorCode::Unauthenticated`] where it is named.
pub async fn connect_unless_revoked(url: &str, identity: &IdentityDir, revoked: Option<RevokedList>) -> Result<Channel, Fault> {
    let target = Target::parse(url)?;
    identity.check_at(std::time::SystemTime::now())?;
    let tls = TlsConnector::from(Arc::new(identity.client_config(revoked)?));
    let endpoint = target.endpoint()?;
    let shown = target.to_string();
    let connector = service_fn(move |_: Uri| {
        let (target, tls) = (target.clone(), tls.clone());
        async move { dial(&target, tls).await.map(TokioIo::new) }
    });
    endpoint.connect_with_connector(connector).await.map_err(|error| {
        explain_in_chain(&error).unwrap_or_else(|| {
            Fault::new(
                ErrorCode::Unreachable,
                format!(
                    "The coordinator at {shown} did not answer within {} s: {}.",
                    CONNECT_TIMEOUT.as_secs(),
                    innermost(&error)
                ),
            )
        })
    })
}

/// Host and port of a coordinator's URL, an IPv6 address without its brackets.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for anything but `https://HOST[:PORT]`.
pub fn host_and_port(url: &str) -> Result<(String, u16), Fault> {
    Target::parse(url).map(|target| (target.host, target.port))
}

/// Where to dial.
#[derive(Clone, Debug)]
struct Target {
    host: String,
    port: u16,
    server_name: ServerName<'static>,
}

impl Target {
    fn parse(url: &str) -> Result<Self, Fault> {
        let bad = |why: &str| {
            Fault::new(
                ErrorCode::InvalidInput,
                format!("the coordinator's URL {url:?} {why}: write https://HOST or https://HOST:PORT"),
            )
        };
        let uri: Uri = url.parse().map_err(|_| bad("is not a URL"))?;
        if uri.scheme_str() != Some("https") {
            return Err(bad("does not begin with https://"));
        }
        if uri.path_and_query().is_some_and(|p| p.as_str() != "/") {
            return Err(bad("must not have a path"));
        }
        let host = uri.host().filter(|h| !h.is_empty()).ok_or_else(|| bad("names no host"))?;
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(bad("must not hold a user name"));
        }
        // An IPv6 address stands in brackets in a URL, and without them everywhere else.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server_name =
            ServerName::try_from(host.clone()).map_err(|_| bad("names a host that is neither a DNS name nor an IP address"))?;
        Ok(Self { host, port: uri.port_u16().unwrap_or(443), server_name })
    }

    /// The URI's scheme is plain, since tonic would refuse https without its own TLS; the origin that stands in the
    /// requests is the true one.
    fn endpoint(&self) -> Result<Endpoint, Fault> {
        let authority = self.authority();
        let invalid = |_| Fault::new(ErrorCode::InvalidInput, format!("the coordinator's address {authority} cannot be used"));
        let origin: Uri = format!("https://{authority}").parse().map_err(invalid)?;
        let plain: Uri = format!("http://{authority}").parse().map_err(invalid)?;
        Ok(Endpoint::from(plain)
            .origin(origin)
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .keep_alive_while_idle(true))
    }

    fn authority(&self) -> String {
        if self.host.contains(':') { format!("[{}]:{}", self.host, self.port) } else { format!("{}:{}", self.host, self.port) }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.authority())
    }
}

/// A connection whose first bytes may have been read ahead.
type Connection = BufReader<TlsStream<TcpStream>>;

async fn dial(target: &Target, tls: TlsConnector) -> Result<Connection, Fault> {
    let unreachable = |error: &std::io::Error| {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        tls.map_or_else(
            || {
                Fault::new(
                    ErrorCode::Unreachable,
                    format!(
                        "The coordinator at {target} cannot be reached ({error}): check that it runs and that the \
                         URL is right."
                    ),
                )
            },
            explain,
        )
    };
    let stream = TcpStream::connect((target.host.as_str(), target.port)).await.map_err(|e| unreachable(&e))?;
    // Queries and answers are small and every one is waited for.
    stream.set_nodelay(true).map_err(|e| unreachable(&e))?;
    let stream = tls.connect(target.server_name.clone(), stream).await.map_err(|e| unreachable(&e))?;
    // Under TLS 1.3 the server judges our certificate after our handshake has ended, and HTTP/2 would report its
    // refusal as a mere broken connection. A server that accepts us begins with its settings, so wait for those.
    let mut connection = BufReader::new(stream);
    match tokio::time::timeout(GREETING_TIMEOUT, connection.fill_buf()).await {
        Ok(Err(error)) => Err(unreachable(&error)),
        // A server that waits for our preface first is fine too.
        Ok(Ok(_)) | Err(_) => Ok(connection),
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut here = error;
    while let Some(next) = here.source() {
        here = next;
    }
    here.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn urls() {
        for (url, shown) in [
            ("https://coordinator.example", "coordinator.example:443"),
            ("https://coordinator.example/", "coordinator.example:443"),
            ("https://127.0.0.1:8443", "127.0.0.1:8443"),
            ("https://[::1]:8443", "[::1]:8443"),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!(target.to_string(), shown);
            target.endpoint().unwrap();
        }
        for url in
            ["", "coordinator.example", "http://coordinator.example", "https://", "https://a/b", "https://user@a", "https://a b"]
        {
            let fault = Target::parse(url).unwrap_err();
            assert_eq!(fault.code, ErrorCode::InvalidInput, "{url}");
        }
    }
}
