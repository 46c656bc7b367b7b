//! Mutual TLS for both ends of a connection. The provider is always *ring*, named explicitly; the process's default is ignored.
//!
//! The server requires a certificate of the consortium's CA from every client. The client checks the server's chain, the
//! host name, and that the certificate belongs to a coordinator, so that no member can pose as the server.

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
pub use expiry::{EXPIRY_WARNING, Expiry, days_until, is_expiring};
pub use explain::explain_in_chain;
pub use folder::IdentityDir;
pub use gate::Gate;
pub use probe::{PresentedCertificate, Probe, probe};
pub use proxy::{CA_BUNDLE_VARIABLE, Proxy, ProxyChoice, ProxySettings};
pub use tunnel::{Duplex, Wire};
