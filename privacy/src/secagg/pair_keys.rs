//! The keys that a participant shares with each of the others, and the masks derived from them.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::fields::Fields;
use super::keys::{MaskPublic, MaskSecret};
use super::roster::{Member, Roster};

/// The number of masks in one HMAC output.
const LANES: usize = 4;
const DOMAIN: &[u8] = b"conclave mask 1";

/// The reason why a participant could not agree on keys with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AgreementError {
    /// The roster has another key at this participant's place, or no such place.
    #[error("the roster does not have this party's own mask key at its place")]
    NotOwn,
    /// A member's key is a point of small order: anyone could compute the masks of its pairs.
    #[error("the mask key of member {place} of the roster is of small order")]
    SmallOrder {
        /// The member's place, from 0.
        place: usize,
    },
}

/// A participant's keys with each of the others. Their memory is overwritten when they are dropped.
pub struct PairKeys(Vec<PairKey>);

struct PairKey {
    /// True if this participant adds the masks: it precedes the other in the roster. The other subtracts them.
    adds: bool,
    hmac: Hmac<Sha256>,
}

impl PairKeys {
    /// Agrees on a key with every other member, by X25519 and HKDF-SHA256 (RFC 5869) with the roster's digest as salt.
    ///
    /// # Errors
    /// [`AgreementError`] if the roster does not have the key of `secret` at `place`, or if a member's key is of small order.
    pub fn agree(roster: &Roster, place: usize, secret: &MaskSecret) -> Result<Self, AgreementError> {
        Self::bound(roster, place, secret, pair_binding)
    }

    /// Agrees on keys that depend on neither the pair's places nor its public keys. Tests use them to show the attack that this
    /// would allow.
    ///
    /// # Errors
    /// [`AgreementError`] if the roster does not have the key of `secret` at `place`, or if a member's key is of small order.
    #[cfg(any(test, feature = "test-util"))]
    pub fn agree_unbound(roster: &Roster, place: usize, secret: &MaskSecret) -> Result<Self, AgreementError> {
        Self::bound(roster, place, secret, |_, _| domain().bytes())
    }

    fn bound(roster: &Roster, place: usize, secret: &MaskSecret, binding: Binding) -> Result<Self, AgreementError> {
        let public = secret.public();
        if roster.members().get(place).is_none_or(|own| own.public != public) {
            return Err(AgreementError::NotOwn);
        }
        let others = roster.members().iter().enumerate().filter(|(other, _)| *other != place);
        let pair = |(other, member): (usize, &Member)| {
            let peer = End { place: other, public: member.public };
            let key = pair_key(&roster.digest(), secret, End { place, public }, peer, binding)?;
            Ok(PairKey { adds: place < other, hmac: hmac(&key) })
        };
        // Allocated once: a growing vector would leave copies of keys in memory.
        let mut keys = Vec::with_capacity(roster.members().len() - 1);
        for other in others {
            keys.push(pair(other)?);
        }
        Ok(Self(keys))
    }

    /// Returns the masks of `lanes` integers under a digest: the sum of the participant's masks over all its pairs. The masks of
    /// all participants sum to zero modulo 2^64.
    ///
    /// A lane is one released integer of the message, counted from 0 through all queries in order and all components of each. A
    /// reply has one more lane, the check, whose value is the mask alone. The checks of all replies therefore sum to zero if
    /// the masks cancel. Two values under one mask reveal their difference, so the caller must use a digest for one reply only.
    /// The running time depends only on the numbers of members and lanes.
    ///
    /// Theorem, masks: if each digest is used once, the masked values of the honest participants reveal their sum and nothing else.
    ///
    /// Proof: `docs/explanation/proofs.md`, section 5.
    #[must_use]
    pub fn masks(&self, digest: &[u8; 32], lanes: usize) -> Vec<u64> {
        let mut masks = vec![0_u64; lanes];
        for PairKey { adds, hmac } in &self.0 {
            for (block, masks) in (0_u32..).zip(masks.chunks_mut(LANES)) {
                let code = hmac.clone().chain_update(DOMAIN).chain_update(digest).chain_update(block.to_le_bytes()).finalize();
                let code = Zeroizing::new(<[u8; 32]>::from(code.into_bytes()));
                let (shares, _) = code.as_chunks();
                for (mask, share) in masks.iter_mut().zip(shares) {
                    let share = u64::from_le_bytes(*share);
                    *mask = if *adds { mask.wrapping_add(share) } else { mask.wrapping_sub(share) };
                }
            }
        }
        masks
    }
}

#[cfg(test)]
impl PairKeys {
    /// Returns the numbers of keys and of places for them.
    pub(super) fn room(&self) -> [usize; 2] {
        [self.0.len(), self.0.capacity()]
    }

    /// Keeps only the keys with some of the others.
    pub(super) fn only(mut self, own: usize, with: impl Fn(usize) -> bool) -> Self {
        let mut others = (0..).filter(|other| *other != own);
        self.0.retain(|_| others.next().is_some_and(&with));
        self
    }
}

/// Prints the number of keys, and no part of any.
impl std::fmt::Debug for PairKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PairKeys with {}", self.0.len())
    }
}

/// One end of a pair: its place in the roster and its public key.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) place: usize,
    pub(super) public: MaskPublic,
}

/// The data to which a pair's key is bound, from the pair's ends in the roster's order.
type Binding = fn(End, End) -> Vec<u8>;

fn domain() -> Fields {
    Fields::of("conclave pair 1")
}

/// Binds a key to the places and public keys of both ends.
///
/// Without them, a member that presents another member's key as its own would share that member's key with every third member.
/// The two masks would then cancel in the third member's answer.
pub(super) fn pair_binding(low: End, high: End) -> Vec<u8> {
    domain()
        .field(&(low.place as u64).to_le_bytes())
        .field(&(high.place as u64).to_le_bytes())
        .field(low.public.bytes())
        .field(high.public.bytes())
        .bytes()
}

/// Returns the key that `own`, whose secret this is, shares with `peer`.
pub(super) fn pair_key(
    roster: &[u8; 32],
    secret: &MaskSecret,
    own: End,
    peer: End,
    binding: Binding,
) -> Result<Zeroizing<[u8; 32]>, AgreementError> {
    let shared = secret.shared(&peer.public).ok_or(AgreementError::SmallOrder { place: peer.place })?;
    let (low, high) = if own.place < peer.place { (own, peer) } else { (peer, own) };
    let mut key = Zeroizing::new([0; 32]);
    match Hkdf::<Sha256>::new(Some(roster), shared.as_slice()).expand(&binding(low, high), key.as_mut_slice()) {
        Ok(()) => Ok(key),
        Err(_) => unreachable!("HKDF yields up to 255 blocks, and 32 bytes are one"),
    }
}

fn hmac(key: &[u8; 32]) -> Hmac<Sha256> {
    match Hmac::new_from_slice(key) {
        Ok(hmac) => hmac,
        Err(_) => unreachable!("HMAC accepts keys of any length"),
    }
}
