//! The wire between analysts, the coordinator and the parties.
//!
//! - [`v1`]: the messages and services, generated from `proto/conclave/v1/conclave.proto`
//!   (by `tests/generated.rs`, which also checks that they still are).
//! - [`codec`]: how the messages of a stream are encoded.
//! - [`convert`]: wire messages to domain types and back. Nothing else looks inside a wire message's numbers.
//! - [`delay`]: when answers leave, as both ends reckon it.
//! - [`echo`]: what an answer of a secure job holds besides.
//! - [`error`]: the one table between our error codes, gRPC status codes and exit codes.
//! - [`identity`]: who a peer is, read from its certificate and from nothing else.
//! - [`log`]: a job's log as whoever reads it takes it in.
//! - [`mask_key`]: a party's key for the masks of a secure job as its identity key signed it.
//! - [`roster`]: the keys of all parties of a secure job, in pieces that fit a frame.
//! - [`submission`]: a job as its analyst signed it.
//! - [`revoked`]: certificates that a member takes for none.
//! - [`array_name`]: a parameter's folder in a store of draws.
//! - [`version`]: which protocol two ends speak with each other.
//! - [`tls`]: mutual TLS for both ends of a connection.
//! - [`ca`]: the consortium's small certificate authority, as pure functions from PEM to PEM.
#![forbid(unsafe_code)]

pub mod array_name;
pub mod ca;
pub mod codec;
pub mod convert;
pub mod delay;
pub mod echo;
pub mod error;
pub mod identity;
pub mod log;
pub mod mask_key;
pub mod revoked;
pub mod roster;
pub mod submission;
pub mod tls;
pub mod version;

/// Generated messages, clients and servers of the package `conclave.v1`.
pub mod v1 {
    #![allow(missing_docs, unreachable_pub, clippy::all)]
    include!("generated/conclave.v1.rs");
}

/// The encoded file descriptor set of [`v1`], for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/conclave_descriptor.bin");

/// The newest protocol that this software speaks. It is raised by a frame or field that the other end has to understand, and
/// by a public constant that both ends must reckon alike; see [`version::least_protocol`].
pub const PROTOCOL: u32 = 5;
/// The oldest protocol that it still speaks.
pub const OLDEST_PROTOCOL: u32 = 1;

/// Name under which a coordinator's gRPC health service says that it speaks a version of the protocol, so that a member can ask before it
/// attaches.
pub fn protocol_service(version: u32) -> String {
    format!("conclave.protocol.{version}")
}
