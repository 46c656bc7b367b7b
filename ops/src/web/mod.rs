//! Web pages behind a token or a certificate, with the same access control for the coordinator's dashboard and the party's page.
//!
//! Several independent measures refuse requests that another site's page makes through a visitor's browser. The session's cookie
//! is `SameSite=Strict`. The `Host` must be one of our names, since foreign names may resolve to this address. A request that
//! changes anything needs our own `Origin` and the CSRF token of its session or certificate. No page can be framed. Without
//! token, session or certificate, every path except `/healthz` answers 401 with the login form. A link made from the token file opens
//! a session once.
//!
//! Over plain HTTP, pages are served only on the loopback interface. A daemon that accepts connections over TLS passes them to
//! [`PageConnections`], with the certificate from the handshake.

mod answer;
mod attempts;
mod connection;
pub mod events;
mod form;
mod guard;
mod login;
mod once;
mod secret;
mod sessions;
mod site;
mod token;
mod transport;
mod visitor;

#[cfg(test)]
mod tests;

pub use answer::{file, html, missing, picture, refused, see_other, style};
pub use connection::{HealthCheck, PageConnections, Slot};
pub use form::{CSRF_FIELD, Fields};
pub use once::link;
pub use site::Site;
pub use transport::{Transport, check_loopback, parse_address, parse_loopback_address};
pub use visitor::{Member, Peer, Principal, Visitor};
