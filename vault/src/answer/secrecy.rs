//! What a party has for jobs whose answers leave masked, besides the ledger.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use conclave_proto::roster::Assembly;

use crate::ports::MaskKeySigner;
use crate::secure::{MaskKeys, SecureSettings};

/// What a party has for jobs whose answers leave masked.
pub struct Secrecy {
    /// The owner's settings.
    pub settings: SecureSettings,
    /// The keys' files.
    pub keys: MaskKeys,
    /// Signs mask keys with the identity key.
    pub signer: Arc<dyn MaskKeySigner>,
    /// The certificates of the CAs that this party trusts, a PEM file.
    pub ca: PathBuf,
    /// Certificates that count for nothing here.
    pub revoked: Option<PathBuf>,
}

/// The same, at work.
pub(super) struct AtWork {
    pub(super) parts: Secrecy,
    /// A roster on its way.
    pub(super) assembly: Assembly,
    /// When keys were last looked at that nobody uses.
    pub(super) looked: Option<Instant>,
    /// When the list of revoked certificates was last read.
    pub(super) revoked: Option<Instant>,
}

/// What a party says that admits no masked jobs.
pub(super) const NOT_ADMITTED: &str = "the owner admits no job whose answers leave masked: ask the owner for [secure] allow = true, or use mode = \
     \"local\" under [aggregation]";
