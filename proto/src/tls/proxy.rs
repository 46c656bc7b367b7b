//! Which proxy lies between a member and its coordinator, if any.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use hyper_util::client::proxy::matcher::Matcher;
use tonic::codegen::http::{HeaderValue, Uri};

use crate::error::{ErrorCode, Fault};

/// Environment variable with the CA certificates of a proxy that is dialled over TLS, where no configuration names them.
pub const CA_BUNDLE_VARIABLE: &str = "CONCLAVE_CA_BUNDLE";

/// How a member gets out of its network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// The proxy.
    pub choice: ProxyChoice,
    /// PEM file with the CA certificates that a proxy's own certificate may be signed by, for a proxy that is dialled over TLS. The
    /// coordinator's certificate is the consortium's CA's to sign and no one else's, whatever stands here.
    pub ca_bundle: Option<PathBuf>,
}

/// Which proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyChoice {
    /// As `HTTPS_PROXY` and `NO_PROXY` say.
    #[default]
    Environment,
    /// None, whatever the environment says.
    Off,
    /// This one, whatever the environment says.
    Given(Proxy),
}

/// An HTTP proxy that opens tunnels. It shows itself without its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    tls: bool,
    host: String,
    port: u16,
    authorization: Option<HeaderValue>,
    source: &'static str,
}

impl ProxyChoice {
    /// What a configuration says: `"off"` or a URL.
    ///
    /// # Errors
    /// As [`Proxy::parse`].
    pub fn parse(text: &str, source: &'static str) -> Result<Self, Fault> {
        if text.trim() == "off" { Ok(Self::Off) } else { Proxy::parse(text, source).map(Self::Given) }
    }
}

impl ProxySettings {
    /// The proxy by which the coordinator at `host` is reached; none where it is dialled directly.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] where the environment names a proxy that is none.
    pub fn proxy_for(&self, host: &str, port: u16) -> Result<Option<Proxy>, Fault> {
        match &self.choice {
            ProxyChoice::Environment => of_environment(host, port, |name| std::env::var(name).ok()),
            ProxyChoice::Off => Ok(None),
            ProxyChoice::Given(proxy) => Ok(Some(proxy.clone())),
        }
    }

    /// The bundle for a proxy's certificate: the configuration's, else the environment's.
    pub(super) fn bundle(&self) -> Option<PathBuf> {
        self.ca_bundle.clone().or_else(|| std::env::var_os(CA_BUNDLE_VARIABLE).filter(|file| !file.is_empty()).map(PathBuf::from))
    }
}

fn of_environment(host: &str, port: u16, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>, Fault> {
    let first = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| variable(name).filter(|value| !value.trim().is_empty()).map(|value| (name, value)))
    };
    let Some((name, url)) = first(["HTTPS_PROXY", "https_proxy"]) else { return Ok(None) };
    let excluded = first(["NO_PROXY", "no_proxy"]).is_some_and(|(_, list)| excludes(&list, host, port));
    // A proxy's own loopback is never meant.
    if excluded || is_loopback(host) { Ok(None) } else { Proxy::parse(&url, name).map(Some) }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether a `NO_PROXY` list names the host: itself or a domain above it (`example.org`, `.example.org`, `*.example.org`), an IP address
/// or network, each of them with `:PORT` for one port alone, or `*` for everything.
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

/// An entry without its port; `None` where that is another one.
fn for_port(entry: &str, port: u16) -> Option<&str> {
    // The colons of an IPv6 address or network begin no port.
    let whole = entry.parse::<IpAddr>().is_ok() || entry.contains('/');
    let host = match entry.rsplit_once(':').map(|(host, its)| (host, its.parse::<u16>())) {
        Some((host, Ok(its))) if !whole => Some(host).filter(|_| its == port)?,
        _ => entry,
    };
    Some(host.trim_start_matches('[').trim_end_matches(']'))
}

impl Proxy {
    /// A proxy's URL, as `source` gives it: `http://[USER:PASSWORD@]HOST[:PORT]`, or `https://` for one that is dialled over TLS.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] with a sentence that names the source and never the URL, which may hold a password.
    pub fn parse(url: &str, source: &'static str) -> Result<Self, Fault> {
        let bad = |what: &str| {
            let form = "write http://HOST:PORT or http://USER:PASSWORD@HOST:PORT (https:// for a proxy that is itself dialled over \
                        TLS), with signs other than letters and digits in user and password as %40 for @, %3A for :, %2F for /, \
                        %23 for #";
            Fault::new(ErrorCode::InvalidInput, format!("{source} {what}: {form}"))
        };
        let url = url.trim();
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let uri: Uri = url.parse().map_err(|_| bad("holds no URL"))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some("socks4" | "socks4a" | "socks5" | "socks5h") => {
                return Err(bad("names a SOCKS proxy, and Conclave goes through HTTP proxies alone"));
            }
            _ => return Err(bad("names a proxy of another kind than http:// or https://")),
        }
        // A raw # would cut the URL short, and what follows a second @ is a host for some and a password for others.
        if uri.path_and_query().is_some_and(|path| path.as_str() != "/") || url.contains('#') || url.matches('@').count() > 1 {
            return Err(bad("holds a URL with more in it than a proxy's address"));
        }
        // It decodes user and password, and leaves the bare address.
        let found = Matcher::builder().https(url.as_str()).build().intercept(&Uri::from_static("https://coordinator/"));
        let found = found.ok_or_else(|| bad("holds no proxy's URL"))?;
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
            None => return Err(bad("names a port that is none")),
        };
        if host.is_empty() {
            return Err(bad("names no host"));
        }
        Ok(Self { tls, host, port, authorization: found.basic_auth().cloned(), source })
    }

    /// Its host and port, as in a URL.
    pub fn authority(&self) -> String {
        if self.host.contains(':') { format!("[{}]:{}", self.host, self.port) } else { format!("{}:{}", self.host, self.port) }
    }

    /// What named it: a variable or a key.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Its host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether it is itself dialled over TLS.
    pub(super) fn tls(&self) -> bool {
        self.tls
    }

    /// The credentials, as they stand in a header.
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
