//! The transport of pages, and the addresses at which they may be served.

use std::net::SocketAddr;

/// The transport of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Plain HTTP on the loopback interface.
    Plain,
    /// TLS, terminated by the acceptor of the connections.
    Tls,
}

/// Parses the address under `key` in a configuration.
///
/// # Errors
/// A message that names the key and the remedy.
pub fn parse_address(key: &str, text: &str) -> Result<SocketAddr, String> {
    let address = text.parse();
    address.map_err(|_| format!("`{key}` = {text:?} is not an address with a port, such as \"127.0.0.1:8080\""))
}

/// Parses an address on the loopback interface.
///
/// # Errors
/// A message that names the key and the remedy.
pub fn parse_loopback_address(key: &str, text: &str) -> Result<SocketAddr, String> {
    let address = parse_address(key, text)?;
    check_loopback(key, address).map(|()| address)
}

/// Checks that pages may be served at an address over plain HTTP: no other machine may see them.
///
/// # Errors
/// A message with the remedy if other machines can reach the address.
pub fn check_loopback(key: &str, address: SocketAddr) -> Result<(), String> {
    match address.ip().is_loopback() {
        true => Ok(()),
        false => Err(format!(
            "`{key}` = \"{address}\": pages without TLS are served only on the loopback interface: use \
             \"127.0.0.1:{port}\", and reach it through `ssh -L {port}:127.0.0.1:{port} HOST`",
            port = address.port()
        )),
    }
}
