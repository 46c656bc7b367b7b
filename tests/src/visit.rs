//! A minimal client for a daemon's pages: HTTP/1.1 over a new socket for every request.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A visitor of the pages, logged in or not.
#[derive(Clone)]
pub struct Visit {
    address: String,
    /// Name and port under which the pages are requested.
    host: String,
    cookie: String,
    tls: Option<Arc<ClientConfig>>,
}

/// A response: its status and all received text, headers first.
pub type Answer = (u16, String);

impl Visit {
    /// Creates a visitor at an address who is not logged in.
    pub fn stranger(address: &str) -> Self {
        Self { address: address.to_owned(), host: address.to_owned(), cookie: String::new(), tls: None }
    }

    /// Creates a visitor over TLS, at this name and the address's port, who trusts the CA in this file and is not logged in.
    ///
    /// # Panics Panics where the file holds no CA.
    pub fn over_tls(address: &str, name: &str, ca: &Path) -> Self {
        Self::with_tls(address, name, ca, None)
    }

    /// Creates the same visitor with the certificate of an identity folder.
    ///
    /// # Panics Panics as [`Self::over_tls`] does, or where the folder holds no identity.
    pub fn with_certificate(address: &str, name: &str, ca: &Path, identity: &Path) -> Self {
        Self::with_tls(address, name, ca, Some(identity))
    }

    fn with_tls(address: &str, name: &str, ca: &Path, identity: Option<&Path>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca).expect("a CA")).expect("a CA");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
        let config = config.with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(folder) => {
                let certificate = CertificateDer::from_pem_file(folder.join("certificate.pem")).expect("a certificate");
                let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).expect("a key");
                config.with_client_auth_cert(vec![certificate], key).expect("a certificate and its key")
            }
        };
        let port = address.rsplit(':').next().unwrap_or_default();
        Self { host: format!("{name}:{port}"), tls: Some(Arc::new(config)), ..Self::stranger(address) }
    }

    /// Logs in with the token.
    ///
    /// # Panics Panics where the login fails.
    pub fn login(address: &str, token: &str) -> Self {
        Self::stranger(address).log_in(token)
    }

    /// Logs an existing visitor in.
    ///
    /// # Panics Panics where the login fails.
    #[must_use]
    pub fn log_in(self, token: &str) -> Self {
        let (status, text) = self.post("/login", &format!("token={}", token.trim()));
        assert_eq!(status, 303, "{text}");
        let cookie = text.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        let pair = cookie.split(';').next().unwrap_or_default();
        Self { cookie: format!("Cookie: {pair}\r\n"), ..self }
    }

    /// Returns the origin of the site's own pages.
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.host)
    }

    /// Requests a page.
    pub fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{}\r\n", self.host, self.cookie))
    }

    /// Sends a form as one of the site's own pages does.
    pub fn post(&self, path: &str, form: &str) -> Answer {
        self.post_from(&self.origin(), path, form)
    }

    /// Sends a form as a page of this origin would.
    pub fn post_from(&self, origin: &str, path: &str, form: &str) -> Answer {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nOrigin: {origin}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n{}\r\n{form}",
            self.host,
            form.len(),
            self.cookie
        ))
    }

    /// Returns this session's CSRF token from the forms of a page.
    ///
    /// # Panics Panics where the page has no form.
    pub fn word(&self, path: &str) -> String {
        let (_, page) = self.get(path);
        let rest = page.split("name=\"csrf\" value=\"").nth(1).unwrap_or_else(|| panic!("no form on {path}: {page}"));
        rest.split('"').next().unwrap_or_default().to_owned()
    }

    /// Sends bytes and reads until the other end closes. Over TLS, a connection that is not closed properly gives status 0.
    ///
    /// # Panics Panics where the daemon does not respond.
    pub fn send(&self, request: &str) -> Answer {
        self.exchange(request, || {})
    }

    /// Requests a streaming page, calls `began` once its first byte has arrived, and reads it to its end.
    ///
    /// # Panics Panics where the daemon does not respond.
    pub fn follow(&self, path: &str, began: impl FnMut()) -> Answer {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{}\r\n", self.host, self.cookie), began)
    }

    fn exchange(&self, request: &str, began: impl FnMut()) -> Answer {
        let stream = TcpStream::connect(&self.address).expect("a page");
        let bytes = match &self.tls {
            None => exchange(stream, request, began).expect("an answer"),
            Some(config) => {
                let name = self.host.split(':').next().unwrap_or_default().to_owned();
                let name = ServerName::try_from(name).expect("a server's name");
                let session = ClientConnection::new(Arc::clone(config), name).expect("TLS");
                match exchange(StreamOwned::new(session, stream), request, began) {
                    Ok(bytes) => bytes,
                    Err(error) => return (0, error.to_string()),
                }
            }
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, text)
    }
}

fn exchange(mut stream: impl Read + Write, request: &str, mut began: impl FnMut()) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes())?;
    let mut bytes = vec![0];
    stream.read_exact(&mut bytes)?;
    began();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}
