//! Keys and their fingerprints.

use rcgen::KeyPair;
use sha2::{Digest, Sha256};

use super::fault::input;
use crate::error::Fault;

/// A certificate or signing request with its private key, both PEM.
#[derive(Clone)]
pub struct KeyedPem {
    /// The certificate or the signing request.
    pub pem: String,
    /// The private key (PKCS #8). Write it with mode 0600.
    pub key_pem: String,
}

/// Reads a private key.
pub(super) fn key_pair(key_pem: &str) -> Result<KeyPair, Fault> {
    KeyPair::from_pem(key_pem).map_err(|e| input("the key is not a supported PKCS #8 key (P-256, P-384 or Ed25519)", &e))
}

/// Returns a SHA-256 in lower-case hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Splits a fingerprint into groups of four digits, for reading aloud.
pub fn grouped(fingerprint: &str) -> String {
    let digits: Vec<char> = fingerprint.chars().collect();
    digits.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}
