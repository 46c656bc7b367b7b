//! An injective encoding of fields for hashes, keys and signatures: each field is preceded by its length.

use sha2::{Digest as _, Sha256};

/// Concatenated fields, each preceded by its length as 64 bits, little endian.
pub(super) struct Fields(Vec<u8>);

impl Fields {
    /// Starts an encoding with its domain separator.
    pub(super) fn of(domain: &str) -> Self {
        Self(Vec::new()).field(domain.as_bytes())
    }

    pub(super) fn field(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends a list of numbers by their exact bits, as one field.
    pub(super) fn numbers(self, values: &[f64]) -> Self {
        let bits: Vec<u8> = values.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect();
        self.field(&bits)
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns the SHA-256 of the fields.
    pub(super) fn digest(self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}
