//! Fingerprints as text.

use sha2::{Digest, Sha256};

/// Returns a SHA-256 in lower-case hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Splits a fingerprint into groups of four digits, for reading aloud.
pub fn grouped(fingerprint: &str) -> String {
    let digits: Vec<char> = fingerprint.chars().collect();
    digits.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}
