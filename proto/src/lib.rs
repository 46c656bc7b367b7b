//! The wire protocol between analysts, the coordinator and the parties.
//!
//! - [`v1`]: messages and services, generated from `proto/conclave/v1/conclave.proto`
//!   by `tests/generated.rs`, which also checks that they are current.
//! - `codec`: the encoding of the messages of a stream.
//! - [`convert`]: conversion between wire messages and domain types. No other module reads the numbers in a wire message.
//! - [`delay`]: the public delay of answers, computed identically at both ends.
//! - [`echo`]: the message digest and the check mask in an answer of a secure job.
//! - [`error`]: the table of error codes, gRPC status codes and exit codes.
//! - [`identity`]: the identity of a peer, read only from its certificate.
//! - [`log`]: reading of a job's log.
//! - [`log_digest`]: the digest of a job's whole log.
//! - [`mask_key`]: a party's masking key for a secure job, signed by its identity key.
//! - [`roster`]: the masking keys of all parties of a secure job, in pieces that fit a frame.
//! - [`signature`]: verification of signatures and of certificate chains.
//! - [`submission`]: a job signed by its analyst.
//! - [`revoked`]: a member's list of revoked certificates.
//! - [`array_name`]: a parameter's folder in a store of draws.
//! - [`version`]: negotiation of the protocol version.
//! - `tls`: mutual TLS for both ends of a connection.
//! - [`ca`]: the consortium's small certificate authority, as pure functions from PEM to PEM.
//!
//! The feature `transport` adds clients, servers, `codec`, `tls`, the certificate authority, signing and the conversion between
//! faults and gRPC statuses. A crate without it compiles no network code.
#![forbid(unsafe_code)]

pub mod array_name;
pub mod ca;
mod chain;
#[cfg(feature = "transport")]
pub mod codec;
pub mod convert;
pub mod delay;
pub mod echo;
pub mod error;
pub mod identity;
pub mod log;
pub mod log_digest;
pub mod mask_key;
pub mod revoked;
pub mod roster;
pub mod signature;
pub mod submission;
#[cfg(feature = "transport")]
pub mod tls;
pub mod version;

/// Generated messages of the package `conclave.v1`, and its clients and servers with the feature `transport`.
pub mod v1 {
    #![allow(missing_docs, unreachable_pub, clippy::all)]
    include!("generated/conclave.v1.rs");
}

/// The encoded file descriptor set of [`v1`], for gRPC reflection.
#[cfg(feature = "transport")]
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/conclave_descriptor.bin");

/// The newest protocol that this software speaks. A new number is needed for a frame or field that the other end has to
/// understand, and for a public constant that both ends must compute identically; see [`version::least_protocol`].
pub const PROTOCOL: u32 = 11;
/// The oldest protocol that this software still speaks.
pub const OLDEST_PROTOCOL: u32 = 1;

/// Returns the name under which a coordinator's gRPC health service reports a protocol version. A member can check it before
/// it attaches.
pub fn protocol_service(version: u32) -> String {
    format!("conclave.protocol.{version}")
}
