//! The consortium's small certificate authority, as pure functions from PEM to PEM.
//!
//! A member creates a key and a signing request ([`make_request`]); the key never leaves its machine. The operator of the CA
//! checks the name in the request ([`read_request`]) and signs it ([`sign`]). Role and name are the request's only
//! `conclave://` URI. Nothing else in a member's request is copied into its certificate; a coordinator's keeps its hosts.

mod authority;
mod fault;
mod key;
mod names;
mod request;
mod summary;

#[cfg(test)]
mod tests;

pub use authority::{CA_DAYS, MEMBER_DAYS, Validity, create_ca, issue, sign};
pub use key::{KeyedPem, grouped};
pub use request::{RequestedIdentity, make_request, read_request, request_with_key};
pub(crate) use summary::last_moment;
pub use summary::{
    CertificateSummary, digest_of_key, fingerprint, fingerprints, key_digest, key_fingerprint, not_after, summarise,
};
