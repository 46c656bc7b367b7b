//! Dialling the coordinator.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::explain::{explain, explain_in_chain};
use super::folder::IdentityDir;
use super::proxy::{Proxy, ProxySettings};
use super::reach::reach;
use super::tunnel::{self, Wire};
use crate::error::{ErrorCode, Fault};
use crate::revoked::RevokedList;

/// Timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the server's greeting. A server that has not greeted by then is assumed to wait for the client to start.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);
/// Idle time before an HTTP/2 ping. Pings detect dead connections and keep firewalls from dropping idle ones.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// Timeout of a ping, after which the connection counts as dead.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Dials the coordinator at `url` (`https://HOST[:PORT]`, default port 443) as this identity, through the proxy in the
/// environment, if any.
///
/// Verifies the server's chain, its host name and its role of coordinator. The channel reconnects by itself after a broken
/// connection; calls fail until it has.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for an invalid URL, proxy or identity, [`ErrorCode::Unreachable`] if there is no answer,
/// [`ErrorCode::Unauthenticated`] if an end rejects the other's certificate, or a proxy rejects its credentials.
pub async fn connect(url: &str, identity: &IdentityDir) -> Result<Channel, Fault> {
    connect_through(url, identity, &ProxySettings::default(), None).await
}

/// Connects like [`connect`], with these proxy settings and a list of revoked certificates.
///
/// # Errors
/// As [`connect`]; [`ErrorCode::Unauthenticated`] if `revoked` names the coordinator's certificate.
pub async fn connect_through(
    url: &str,
    identity: &IdentityDir,
    settings: &ProxySettings,
    revoked: Option<RevokedList>,
) -> Result<Channel, Fault> {
    let target = Target::parse(url)?;
    identity.check_at(std::time::SystemTime::now())?;
    let route = Route { proxy: settings.proxy_for(&target.host, target.port)?, settings: settings.clone(), target };
    let tls = TlsConnector::from(Arc::new(identity.client_config(revoked)?));
    let endpoint = route.target.endpoint()?;
    let shown = route.target.to_string();
    let connector = service_fn(move |_: Uri| {
        let (route, tls) = (route.clone(), tls.clone());
        async move { route.dial(tls).await.map(TokioIo::new) }
    });
    endpoint.connect_with_connector(connector).await.map_err(|error| {
        explain_in_chain(&error).unwrap_or_else(|| {
            Fault::new(ErrorCode::Unreachable, format!("the coordinator at {shown} did not answer: {}", innermost(&error)))
        })
    })
}

/// Returns the host and port of a coordinator's URL, an IPv6 address without its brackets.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for anything but `https://HOST[:PORT]`.
pub fn host_and_port(url: &str) -> Result<(String, u16), Fault> {
    Target::parse(url).map(|target| (target.host, target.port))
}

/// Opens a tunnel to the coordinator at `url` through the proxy of these settings; `None` for a direct connection.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for an invalid URL or proxy; a message that names the proxy if the tunnel does not open.
pub async fn tunnel_to(url: &str, settings: &ProxySettings) -> Result<Option<(Proxy, Wire)>, Fault> {
    let target = Target::parse(url)?;
    let Some(proxy) = settings.proxy_for(&target.host, target.port)? else { return Ok(None) };
    let wire = tunnel::open(&proxy, &target.authority(), settings.bundle().as_deref()).await?;
    Ok(Some((proxy, wire)))
}

/// The address of a coordinator.
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
            return Err(bad("does not start with https://"));
        }
        if uri.path_and_query().is_some_and(|p| p.as_str() != "/") {
            return Err(bad("must not have a path"));
        }
        let host = uri.host().filter(|h| !h.is_empty()).ok_or_else(|| bad("names no host"))?;
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(bad("must not contain a user name"));
        }
        // An IPv6 address has brackets only in a URL.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server_name =
            ServerName::try_from(host.clone()).map_err(|_| bad("names a host that is neither a DNS name nor an IP address"))?;
        Ok(Self { host, port: uri.port_u16().unwrap_or(443), server_name })
    }

    /// Builds the endpoint. Its URI has a plain scheme, since tonic refuses https without its own TLS. Requests carry the true
    /// origin.
    fn endpoint(&self) -> Result<Endpoint, Fault> {
        let authority = self.authority();
        let invalid = |_| Fault::new(ErrorCode::InvalidInput, format!("invalid address {authority} of the coordinator"));
        let origin: Uri = format!("https://{authority}").parse().map_err(invalid)?;
        let plain: Uri = format!("http://{authority}").parse().map_err(invalid)?;
        Ok(Endpoint::from(plain)
            .origin(origin)
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
type Connection = BufReader<TlsStream<Wire>>;

/// A target, with the proxy on the way to it.
#[derive(Clone, Debug)]
struct Route {
    target: Target,
    proxy: Option<Proxy>,
    settings: ProxySettings,
}

impl Route {
    async fn dial(&self, tls: TlsConnector) -> Result<Connection, Fault> {
        let target = &self.target;
        let wire = match &self.proxy {
            Some(proxy) => tunnel::open(proxy, &target.authority(), self.settings.bundle().as_deref()).await?,
            None => Box::new(reach(&target.authority()).await.map_err(|why| self.unreachable(&why))?),
        };
        let stream = match timeout(HANDSHAKE_TIMEOUT, tls.connect(target.server_name.clone(), wire)).await {
            Ok(shaken) => shaken.map_err(|e| self.explain(&e))?,
            Err(_) => return Err(self.unreachable(&format!("no TLS handshake within {} s", HANDSHAKE_TIMEOUT.as_secs()))),
        };
        // Under TLS 1.3 the server checks our certificate after our handshake has ended, and HTTP/2 would report its
        // refusal as a broken connection. A server that accepts us sends its settings first, so wait for those.
        let mut connection = BufReader::new(stream);
        match timeout(GREETING_TIMEOUT, connection.fill_buf()).await {
            Ok(Err(error)) => Err(self.explain(&error)),
            // A server may also wait for our preface first.
            Ok(Ok(_)) | Err(_) => Ok(connection),
        }
    }

    fn unreachable(&self, why: &str) -> Fault {
        let message =
            format!("the coordinator at {} cannot be reached ({why}): check that it runs and that the URL is right", self.target);
        Fault::new(ErrorCode::Unreachable, message + &self.proxy_note())
    }

    fn explain(&self, error: &std::io::Error) -> Fault {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(tls) => {
                let fault = explain(tls);
                Fault { message: fault.message.clone() + &self.proxy_note(), ..fault }
            }
            None => self.unreachable(&error.to_string()),
        }
    }

    /// Returns a note on the proxy in use, or nothing without a proxy.
    fn proxy_note(&self) -> String {
        self.proxy.as_ref().map_or_else(String::new, |proxy| {
            format!(
                "; the connection went through the proxy {proxy} ({}): if it inspects TLS, exclude {} from inspection",
                proxy.source(),
                self.target
            )
        })
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
