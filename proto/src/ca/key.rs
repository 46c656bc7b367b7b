//! Keys and their fingerprints.

use rcgen::{KeyPair, PublicKeyData};
use sha2::{Digest, Sha256};

use super::digest::sha256;
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

/// Returns the SHA-256 of a private key's public half (its SubjectPublicKeyInfo, as `openssl pkey -pubout -outform DER` writes
/// it), in lower-case hex.
///
/// # Errors
/// [`InvalidInput`](crate::error::ErrorCode::InvalidInput) if the PEM holds no usable key.
pub fn key_fingerprint(key_pem: &str) -> Result<String, Fault> {
    Ok(sha256(&key_pair(key_pem)?.subject_public_key_info()))
}

/// Returns [`key_fingerprint`] as bytes.
///
/// # Errors
/// As [`key_fingerprint`].
pub fn digest_of_key(key_pem: &str) -> Result<[u8; 32], Fault> {
    Ok(Sha256::digest(key_pair(key_pem)?.subject_public_key_info()).into())
}
