//! Mutual TLS for both ends of a connection, with *ring* as the provider, named explicitly and never the process's
//! default.
//!
//! The server asks every client for a certificate of the consortium's CA. The client checks the server's chain, the
//! host name, and that the certificate belongs to a coordinator: a member's certificate must not be able to pose as
//! the server.

mod connect;
mod expiry;
mod explain;
mod folder;
mod gate;
mod probe;
mod provider;
mod proxy;
mod reach;
pub mod renew;
mod sign;
mod tunnel;
mod verifier;

pub use connect::{connect, connect_through, host_and_port, tunnel_to};
pub use expiry::{EXPIRY_WARNING, Expires, days_until, ends_soon};
pub use explain::explain_in_chain;
pub use folder::IdentityDir;
pub use gate::Gate;
pub use probe::{Presented, Probe, probe};
pub use proxy::{CA_BUNDLE_VARIABLE, Proxy, ProxyChoice, ProxySettings};
pub use sign::{Signature, check_certificate, verify};
pub use tunnel::{Duplex, Wire};
