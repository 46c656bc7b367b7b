//! Masks of a job's answers: each release is opened by itself, or leaves under the masks of a roster. A masked release is charged, hashed
//! and released by way of its message's masks only.
//!
//! Theorem, masks: the masked answers of the honest members reveal their sum and no more to the others, as long as each mask covers one
//! value at most. Proof: docs/explanation/proofs.md, section 5.

use std::collections::BTreeMap;
use std::ops::Range;

use conclave_common::query::{Query, message_digest};
use conclave_privacy::accounting::Honest;
use conclave_privacy::secagg::{AgreementError, CONFIRMATION_LANES, MaskSecret, PairKeys, Roster, confirmation_digest};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::echo::Echo;
use conclave_proto::v1;
use prost::Message as _;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::ledger::Masked;

/// The form in which a job's answers leave.
pub(super) enum Masking {
    /// Each release is opened by itself.
    Local,
    /// Masked, once the roster is entered; no query is answered before.
    Keyed(MaskSecret),
    /// Masked under an entered roster.
    Under(Box<RosterMasks>),
}

/// The keys that the party shares with each other member of a roster.
pub(super) struct RosterMasks {
    keys: PairKeys,
    roster: [u8; 32],
    honest: Honest,
    members: u64,
    /// SHA-256 of the entries that last proved to be the roster: the same entries are not checked again.
    seen: Option<[u8; 32]>,
}

/// The masks of one message, made before a record is read: they depend on its queries alone.
pub(super) struct RoundMasks {
    digest: [u8; 32],
    roster: [u8; 32],
    honest: Honest,
    /// Places of each chain's masks among all.
    chains: BTreeMap<u32, Range<usize>>,
    /// One mask for each integer of the answers, in the order asked, and one with no integer under it.
    masks: Zeroizing<Vec<u64>>,
}

impl Masking {
    /// Returns the masks of a message; `None` where releases are opened by themselves.
    ///
    /// # Errors
    /// [`AnswerStatus::Policy`] before the roster is entered; [`AnswerStatus::Invalid`] for another attempt than the first, which no masked
    /// message has.
    pub(super) fn of_round(&self, iteration: u64, attempt: u32, queries: &[Query]) -> Result<Option<RoundMasks>, AnswerStatus> {
        match self {
            Self::Local => Ok(None),
            Self::Keyed(_) => Err(AnswerStatus::Policy),
            Self::Under(_) if attempt != 0 => Err(AnswerStatus::Invalid),
            Self::Under(masks) => Ok(Some(masks.of_round(iteration, queries))),
        }
    }

    /// Returns true where answers leave masked, now or once there is a roster.
    pub(super) fn is_secure(&self) -> bool {
        !matches!(self, Self::Local)
    }

    /// Returns the number of parties in a sum that is opened.
    pub(super) fn members(&self) -> u64 {
        match self {
            Self::Under(masks) => masks.members,
            _ => 1,
        }
    }
}

impl RosterMasks {
    /// Agrees on a key with every other member.
    ///
    /// # Errors
    /// A secret that is not this member's, or a key that yields no agreement.
    pub(super) fn agree(roster: &Roster, party: &str, secret: &MaskSecret) -> Result<Self, AgreementError> {
        let place = roster.place(party).ok_or(AgreementError::NotOwn)?;
        Ok(Self {
            keys: PairKeys::agree(roster, place, secret)?,
            roster: roster.digest(),
            // A roster has at least two members and at most a thousand.
            honest: Honest::new(roster.honest()).unwrap_or_default(),
            members: roster.members().len() as u64,
            seen: None,
        })
    }

    /// Returns true for the entries that proved to be the roster before.
    pub(super) fn has_seen(&self, entries: &[v1::RosterEntry]) -> bool {
        self.seen == Some(hash(entries))
    }

    /// Notes that these entries proved to be the roster.
    pub(super) fn sees(&mut self, entries: &[v1::RosterEntry]) {
        self.seen = Some(hash(entries));
    }

    /// Returns the masks that confirm the roster, without an integer under them.
    pub(super) fn confirmation(&self) -> Vec<u64> {
        self.keys.masks(&confirmation_digest(&self.roster), CONFIRMATION_LANES)
    }

    /// Returns the digest of the roster.
    pub(super) fn roster(&self) -> [u8; 32] {
        self.roster
    }

    /// Returns the masks of a message's answers under the message's digest, without the check mask.
    pub(super) fn under(&self, digest: &[u8; 32], integers: usize) -> Vec<u64> {
        self.keys.masks(digest, integers)
    }

    fn of_round(&self, iteration: u64, queries: &[Query]) -> RoundMasks {
        let digest = message_digest(&self.roster, iteration, queries);
        let mut lanes = 0..0;
        let mut chains = BTreeMap::new();
        for query in queries {
            lanes = lanes.end..lanes.end + query.length();
            chains.insert(query.chain, lanes.clone());
        }
        let masks = Zeroizing::new(self.keys.masks(&digest, lanes.end + 1));
        RoundMasks { digest, roster: self.roster, honest: self.honest, chains, masks }
    }
}

/// Returns the SHA-256 of entries, each encoded after its length.
fn hash(entries: &[v1::RosterEntry]) -> [u8; 32] {
    let mut hash = Sha256::new();
    entries.iter().for_each(|entry| hash.update(entry.encode_length_delimited_to_vec()));
    hash.finalize().into()
}

impl RoundMasks {
    /// Returns the part of a query's digest that the masks determine.
    pub(super) fn masked(&self) -> Masked {
        Masked { roster: self.roster, round: self.digest, honest: self.honest }
    }

    /// Returns the masks of a chain's integers; `None` for a chain that the message does not ask.
    pub(super) fn of_chain(&self, chain: u32) -> Option<&[u64]> {
        self.masks.get(self.chains.get(&chain)?.clone())
    }

    /// Returns the echo that a reply carries beside the answers.
    pub(super) fn echo(&self) -> Echo {
        Echo { digest: self.digest, check: self.masks.last().copied().unwrap_or_default() }
    }
}
