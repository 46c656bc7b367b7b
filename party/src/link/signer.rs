//! Signs mask keys with the party's current identity key.

use std::path::PathBuf;

use conclave_privacy::secagg::MaskPublic;
use conclave_proto::error::Fault;
use conclave_proto::{mask_key, v1};
use conclave_vault::ports::MaskKeySigner;

use super::load_identity;

/// A party's identity, read from its files for each signature: a renewed certificate takes effect immediately.
#[derive(Debug, Clone)]
pub struct IdentitySigner {
    /// The party that the certificate must name.
    pub party: String,
    /// The folder with the certificate.
    pub folder: PathBuf,
    /// The private key's file.
    pub key: PathBuf,
}

impl MaskKeySigner for IdentitySigner {
    fn sign(&self, job: &str, spec_digest: &[u8; 32], public: &MaskPublic) -> Result<v1::MaskKey, Fault> {
        let identity = load_identity(&self.folder, &self.key, &self.party)?;
        mask_key::sign(&identity, job, spec_digest, public)
    }
}
