//! A party's key pair for the masks of one job.

use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// The public key: an X25519 public key (RFC 7748) in canonical form.
///
/// X25519 accepts several byte strings for one point. A member that sent another of them would have the same shared secrets under
/// a key that looks different. So only the canonical form is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MaskPublic([u8; 32]);

/// The error for bytes that are not a canonical public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a mask key is 32 bytes, the canonical form of an X25519 public key")]
pub struct NotCanonical;

impl MaskPublic {
    /// Reads 32 bytes as a little-endian number below 2^255 - 19.
    ///
    /// # Errors
    /// [`NotCanonical`] for another length, for a set top bit, or for a number of at least 2^255 - 19.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotCanonical> {
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| NotCanonical)?;
        let [lowest, middle @ .., highest] = &bytes;
        // 2^255 - 19 is ed ff ... ff 7f.
        let beyond = *highest > 0x7f || (*highest == 0x7f && middle.iter().all(|b| *b == 0xff) && *lowest >= 0xed);
        if beyond { Err(NotCanonical) } else { Ok(Self(bytes)) }
    }

    /// Returns the 32 bytes, as they are sent and hashed.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The secret key. It cannot be printed, and its memory is overwritten when it is dropped.
pub struct MaskSecret(Zeroizing<[u8; 32]>);

impl MaskSecret {
    /// Creates the key from 32 unpredictable bytes. Any bytes will do, since X25519 clamps them.
    #[must_use]
    pub fn from_bytes(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> MaskPublic {
        // Scalar multiplication returns the canonical form.
        MaskPublic(PublicKey::from(&self.point()).to_bytes())
    }

    /// Returns the bytes, only for the file that stores them.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the Diffie-Hellman secret that only the two ends of a pair can compute; `None` if the peer's key is of small
    /// order, so that the result would not be secret.
    pub(super) fn shared(&self, peer: &MaskPublic) -> Option<Zeroizing<[u8; 32]>> {
        let shared = self.point().diffie_hellman(&PublicKey::from(peer.0));
        shared.was_contributory().then(|| Zeroizing::new(*shared.as_bytes()))
    }

    fn point(&self) -> StaticSecret {
        StaticSecret::from(*self.0)
    }
}

/// Prints no part of the key.
impl std::fmt::Debug for MaskSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MaskSecret")
    }
}
