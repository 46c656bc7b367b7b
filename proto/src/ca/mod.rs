//! The consortium's small certificate authority, as pure functions from PEM to PEM.
//!
//! A member creates a key and a signing request ([`make_request`]); the key never leaves its machine. The operator of the CA
//! checks the name in the request ([`read_request`]) and signs it ([`sign`]). Role and name are the request's only
//! `conclave://` URI. Nothing else in a member's request is copied into its certificate; a coordinator's keeps its hosts.
//!
//! Without the feature `transport` only the summaries and fingerprints of certificates compile.

#[cfg(feature = "transport")]
mod authority;
mod digest;
mod fault;
#[cfg(feature = "transport")]
mod key;
#[cfg(feature = "transport")]
mod names;
#[cfg(feature = "transport")]
mod request;
mod summary;

#[cfg(test)]
mod tests;

#[cfg(feature = "transport")]
pub use authority::{CA_DAYS, MEMBER_DAYS, Validity, create_ca, issue, sign};
pub use digest::grouped;
#[cfg(feature = "transport")]
pub use key::{KeyedPem, digest_of_key, key_fingerprint};
#[cfg(feature = "transport")]
pub use request::{RequestedIdentity, make_request, read_request, request_with_key};
#[cfg(feature = "transport")]
pub(crate) use summary::last_moment;
pub use summary::{CertificateSummary, fingerprint, fingerprints, key_digest, not_after, summarise};
