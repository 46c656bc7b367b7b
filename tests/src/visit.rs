//! A visitor of a daemon's pages, as simple as a browser can be: HTTP/1.1 over a socket of its own for every request.

use std::io::{Read, Write};
use std::net::TcpStream;

/// Somebody who has logged in, or has not.
pub struct Visit {
    address: String,
    cookie: String,
}

/// An answer: its status and everything that came, headers first.
pub type Answer = (u16, String);

impl Visit {
    /// A stranger at an address.
    pub fn stranger(address: &str) -> Self {
        Self { address: address.to_owned(), cookie: String::new() }
    }

    /// Logs in with the token.
    ///
    /// # Panics
    /// Where that is not possible.
    pub fn login(address: &str, token: &str) -> Self {
        let (status, text) = Self::stranger(address).post("/login", &format!("token={}", token.trim()));
        assert_eq!(status, 303, "{text}");
        let cookie = text.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        let pair = cookie.split(';').next().unwrap_or_default();
        Self { address: address.to_owned(), cookie: format!("Cookie: {pair}\r\n") }
    }

    /// Asks for a page.
    pub fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{}\r\n", self.address, self.cookie))
    }

    /// Sends a form, as one of the site's own pages does.
    pub fn post(&self, path: &str, form: &str) -> Answer {
        self.post_from(&format!("http://{}", self.address), path, form)
    }

    /// Sends a form, as a page of this origin would.
    pub fn post_from(&self, origin: &str, path: &str, form: &str) -> Answer {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nOrigin: {origin}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n{}\r\n{form}",
            self.address,
            form.len(),
            self.cookie
        ))
    }

    /// The word that this session's forms carry, off a page.
    ///
    /// # Panics
    /// Where the page has no form.
    pub fn word(&self, path: &str) -> String {
        let (_, page) = self.get(path);
        let rest = page.split("name=\"csrf\" value=\"").nth(1).unwrap_or_else(|| panic!("no form on {path}: {page}"));
        rest.split('"').next().unwrap_or_default().to_owned()
    }

    /// Sends bytes and reads until the other end closes.
    ///
    /// # Panics
    /// Where nobody answers.
    pub fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("a page");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, text)
    }
}
