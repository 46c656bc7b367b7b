//! Holds the parts of a party, besides the ledger, that masked jobs need.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use conclave_proto::roster::Assembly;

use crate::ports::MaskKeySigner;
use crate::secure::{MaskKeys, SecureSettings};

/// The parts of a party, besides the ledger, that masked jobs need.
pub struct Secrecy {
    /// The owner's settings.
    pub settings: SecureSettings,
    /// The keys' files.
    pub keys: MaskKeys,
    /// Signs mask keys with the identity key.
    pub signer: Arc<dyn MaskKeySigner>,
    /// The certificates of the CAs that this party trusts, a PEM file.
    pub ca: PathBuf,
    /// Revoked certificates.
    pub revoked: Option<PathBuf>,
}

/// These parts with their working state.
pub(super) struct AtWork {
    pub(super) parts: Secrecy,
    /// Pieces of a roster that has not fully arrived.
    pub(super) assembly: Assembly,
    /// Time of the last search for unused keys.
    pub(super) looked: Option<Instant>,
    /// Time at which the list of revoked certificates was last read.
    pub(super) revoked: Option<Instant>,
}

/// Refusal of a masked job at a party that admits none.
pub(super) const NOT_ADMITTED: &str = "the owner admits no job whose answers leave masked: ask the owner for [secure] allow = true, or use mode = \
     \"local\" under [aggregation]";
