//! Over what pages are served, and at which addresses they may be.

use std::net::SocketAddr;

/// What pages are served over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// HTTP as it is, on the loopback interface.
    Plain,
    /// TLS, ended by whoever takes the connections in.
    Tls,
}

/// The address that a configuration names under `key`.
///
/// # Errors
/// A sentence that names the key, with the remedy.
pub fn address(key: &str, text: &str) -> Result<SocketAddr, String> {
    let address = text.parse();
    address.map_err(|_| format!("`{key}` = {text:?} is not an address with a port, such as \"127.0.0.1:8080\""))
}

/// The same, on the loopback interface.
///
/// # Errors
/// A sentence that names the key, with the remedy.
pub fn loopback_address(key: &str, text: &str) -> Result<SocketAddr, String> {
    let address = address(key, text)?;
    loopback_only(key, address).map(|()| address)
}

/// Whether pages may be served at an address over plain HTTP: nobody on the way may see them.
///
/// # Errors
/// A sentence with the remedy, where others can reach the address.
pub fn loopback_only(key: &str, address: SocketAddr) -> Result<(), String> {
    match address.ip().is_loopback() {
        true => Ok(()),
        false => Err(format!(
            "`{key}` = \"{address}\": pages are served without TLS, and so on the loopback interface alone: use \
             \"127.0.0.1:{port}\", and reach it through `ssh -L {port}:127.0.0.1:{port} HOST`",
            port = address.port()
        )),
    }
}
