//! The choice of a proxy between a member and its coordinator.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use hyper_util::client::proxy::matcher::Matcher;
use tonic::codegen::http::{HeaderValue, Uri};

use crate::error::{ErrorCode, Fault};

/// Environment variable with the CA certificates for a proxy that is dialled over TLS, used unless the configuration names them.
pub const CA_BUNDLE_VARIABLE: &str = "CONCLAVE_CA_BUNDLE";

/// Proxy settings of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// The proxy.
    pub choice: ProxyChoice,
    /// PEM file with the CA certificates that may sign a proxy's certificate, for a proxy that is dialled over TLS. It does not
    /// affect the coordinator's certificate, which only the consortium's CA may sign.
    pub ca_bundle: Option<PathBuf>,
}

/// The source of the proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The proxy given by `HTTPS_PROXY` and `NO_PROXY`.
    #[default]
    Environment,
    /// No proxy, regardless of the environment.
    Off,
    /// This proxy, regardless of the environment.
    Given(Proxy),
}

/// An HTTP proxy that opens tunnels. Its `Display` and `Debug` output omit the credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    tls: bool,
    host: String,
    port: u16,
    authorization: Option<HeaderValue>,
    source: &'static str,
}

impl ProxyChoice {
    /// Parses a configured value: `"off"` or a URL.
    ///
    /// # Errors
    /// As [`Proxy::parse`].
    pub fn parse(text: &str, source: &'static str) -> Result<Self, Fault> {
        if text.trim() == "off" { Ok(Self::Off) } else { Proxy::parse(text, source).map(Self::Given) }
    }
}

impl ProxySettings {
    /// Returns the proxy for the coordinator at `host`; `None` for a direct connection.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] if the environment names an invalid proxy.
    pub fn proxy_for(&self, host: &str, port: u16) -> Result<Option<Proxy>, Fault> {
        match &self.choice {
            ProxyChoice::Environment => from_environment(host, port, |name| std::env::var(name).ok()),
            ProxyChoice::Off => Ok(None),
            ProxyChoice::Given(proxy) => Ok(Some(proxy.clone())),
        }
    }

    /// Returns the CA bundle for a proxy's certificate, from the configuration or else from the environment.
    pub(super) fn bundle(&self) -> Option<PathBuf> {
        self.ca_bundle.clone().or_else(|| std::env::var_os(CA_BUNDLE_VARIABLE).filter(|file| !file.is_empty()).map(PathBuf::from))
    }
}

fn from_environment(host: &str, port: u16, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>, Fault> {
    let first = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| variable(name).filter(|value| !value.trim().is_empty()).map(|value| (name, value)))
    };
    let Some((name, url)) = first(["HTTPS_PROXY", "https_proxy"]) else { return Ok(None) };
    let excluded = first(["NO_PROXY", "no_proxy"]).is_some_and(|(_, list)| excludes(&list, host, port));
    // A loopback address never means the proxy's own.
    if excluded || is_loopback(host) { Ok(None) } else { Proxy::parse(&url, name).map(Some) }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns true if a `NO_PROXY` list contains the host. An entry is the host or a parent domain (`example.org`,
/// `.example.org`, `*.example.org`), an IP address or a network, each with an optional `:PORT`, or `*` for every host.
fn excludes(list: &str, host: &str, port: u16) -> bool {
    let entries = || list.split([',', ' ']).filter_map(|entry| for_port(entry.trim(), port));
    if entries().any(|entry| entry == "*") {
        return true;
    }
    let hosts: Vec<&str> = entries().map(|entry| entry.strip_prefix('*').unwrap_or(entry)).collect();
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let Ok(target) = Uri::try_from(format!("https://{host}/")) else { return false };
    Matcher::builder().https("http://proxy").no(hosts.join(",")).build().intercept(&target).is_none()
}

/// Returns an entry without its port; `None` if the entry is for another port.
fn for_port(entry: &str, port: u16) -> Option<&str> {
    // The colons of an IPv6 address or network do not start a port.
    let whole = entry.parse::<IpAddr>().is_ok() || entry.contains('/');
    let host = match entry.rsplit_once(':').map(|(host, its)| (host, its.parse::<u16>())) {
        Some((host, Ok(its))) if !whole => Some(host).filter(|_| its == port)?,
        _ => entry,
    };
    Some(host.trim_start_matches('[').trim_end_matches(']'))
}

impl Proxy {
    /// Parses a proxy's URL from `source`: `http://[USER:PASSWORD@]HOST[:PORT]`, or `https://` for a proxy dialled over TLS.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] with a message that names the source but never the URL, which may hold a password.
    pub fn parse(url: &str, source: &'static str) -> Result<Self, Fault> {
        let bad = |what: &str| {
            let form = "write http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (https:// for a proxy that is itself dialled over \
                        TLS), and percent-encode special characters in user and password: %40 for @, %3A for :, %2F for /, \
                        %23 for #";
            Fault::new(ErrorCode::InvalidInput, format!("{source} {what}: {form}"))
        };
        let url = url.trim();
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let uri: Uri = url.parse().map_err(|_| bad("is not a URL"))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some("socks4" | "socks4a" | "socks5" | "socks5h") => {
                return Err(bad("names a SOCKS proxy, but Conclave supports only HTTP proxies"));
            }
            _ => return Err(bad("has a scheme other than http:// or https://")),
        }
        // A raw # would truncate the URL, and parsers disagree on whether the text after a second @ is a host or a password.
        if uri.path_and_query().is_some_and(|path| path.as_str() != "/") || url.contains('#') || url.matches('@').count() > 1 {
            return Err(bad("is a URL with more than a proxy's address"));
        }
        // The matcher decodes user and password, and returns the bare address.
        let found = Matcher::builder().https(url.as_str()).build().intercept(&Uri::from_static("https://coordinator/"));
        let found = found.ok_or_else(|| bad("is not the URL of a proxy"))?;
        let tls = found.uri().scheme_str() == Some("https");
        let address = found.uri().authority().map(|authority| authority.as_str()).unwrap_or_default();
        let host = found.uri().host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match found.uri().port_u16() {
            Some(port) => port,
            None if address.ends_with(']') || !address.contains(':') => {
                if tls {
                    443
                } else {
                    80
                }
            }
            None => return Err(bad("has an invalid port")),
        };
        if host.is_empty() {
            return Err(bad("names no host"));
        }
        Ok(Self { tls, host, port, authorization: found.basic_auth().cloned(), source })
    }

    /// Returns the host and port, as in a URL.
    pub fn authority(&self) -> String {
        if self.host.contains(':') { format!("[{}]:{}", self.host, self.port) } else { format!("{}:{}", self.host, self.port) }
    }

    /// Returns the variable or key that named the proxy.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Returns the host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns true if the proxy itself is dialled over TLS.
    pub(super) fn has_tls(&self) -> bool {
        self.tls
    }

    /// Returns the credentials as a header value.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

#[cfg(test)]
#[path = "tests/proxy.rs"]
mod tests;
