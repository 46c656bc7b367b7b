//! A party's key pair for the masks of one job.

use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// The public half: an X25519 public key (RFC 7748) in its one canonical form.
///
/// X25519 takes several strings of bytes for one point, and whoever sends another of them would have the same secrets under what looks
/// like another key. So there is no other form here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MaskPublic([u8; 32]);

/// What is no public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a mask key is 32 bytes, the canonical form of an X25519 public key")]
pub struct NotCanonical;

impl MaskPublic {
    /// Reads 32 bytes, little endian, of a number below 2^255 - 19.
    ///
    /// # Errors
    /// [`NotCanonical`] for another length, the top bit set, or a number from 2^255 - 19 on.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotCanonical> {
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| NotCanonical)?;
        let [lowest, middle @ .., highest] = &bytes;
        // 2^255 - 19 is ed ff ... ff 7f.
        let beyond = *highest > 0x7f || (*highest == 0x7f && middle.iter().all(|b| *b == 0xff) && *lowest >= 0xed);
        if beyond { Err(NotCanonical) } else { Ok(Self(bytes)) }
    }

    /// The 32 bytes, as they go over the wire and under every digest.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The secret half. It shows itself to nobody, and its memory is overwritten when it goes.
pub struct MaskSecret(Zeroizing<[u8; 32]>);

impl MaskSecret {
    /// The key of 32 bytes that nobody can predict; any will do, X25519 clamps them.
    #[must_use]
    pub fn from_bytes(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> MaskPublic {
        // Multiplication gives the canonical form.
        MaskPublic(PublicKey::from(&self.point()).to_bytes())
    }

    /// The bytes, for the file that keeps them and for nothing else.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// What both ends of a pair, and nobody else, can compute; `None` where the other's key is of small order and the secret therefore no
    /// secret.
    pub(super) fn shared(&self, peer: &MaskPublic) -> Option<Zeroizing<[u8; 32]>> {
        let shared = self.point().diffie_hellman(&PublicKey::from(peer.0));
        shared.was_contributory().then(|| Zeroizing::new(*shared.as_bytes()))
    }

    fn point(&self) -> StaticSecret {
        StaticSecret::from(*self.0)
    }
}

/// Shows nothing of the key.
impl std::fmt::Debug for MaskSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MaskSecret")
    }
}
