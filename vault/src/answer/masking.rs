//! How an open job's answers leave: each by itself, or under the masks of a roster. There is no third way: what leaves masked has its charge,
//! its digest and its release by way of the masks of its message.

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

/// How a job's answers leave.
pub(super) enum Masking {
    /// Each is opened by itself.
    Local,
    /// Masked, once the roster is entered; nothing is answered before.
    Keyed(MaskSecret),
    /// Masked.
    Under(Box<RosterMasks>),
}

/// The keys that the party shares with every other one of a roster.
pub(super) struct RosterMasks {
    keys: PairKeys,
    roster: [u8; 32],
    honest: Honest,
    members: u64,
    /// SHA-256 of the entries that the roster was last seen in: sent again as they were, they are not checked again.
    seen: Option<[u8; 32]>,
}

/// The masks of one message, made before a record is read: they depend on what was asked alone.
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
    /// The masks of a message; `None` where answers are opened by themselves.
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

    /// Whether answers leave masked, now or once there is a roster.
    pub(super) fn is_secure(&self) -> bool {
        !matches!(self, Self::Local)
    }

    /// Parties in a sum that is opened.
    pub(super) fn members(&self) -> u64 {
        match self {
            Self::Under(masks) => masks.members,
            _ => 1,
        }
    }
}

impl RosterMasks {
    /// Agrees with every other member on a key.
    ///
    /// # Errors
    /// A secret that is not this member's, or a key that agrees on nothing.
    pub(super) fn agree(roster: &Roster, party: &str, secret: &MaskSecret) -> Result<Self, AgreementError> {
        let place = roster.place(party).ok_or(AgreementError::NotOwn)?;
        Ok(Self {
            keys: PairKeys::agree(roster, place, secret)?,
            roster: roster.digest(),
            // A roster leaves two at least, and a thousand at most.
            honest: Honest::new(roster.honest()).unwrap_or_default(),
            members: roster.members().len() as u64,
            seen: None,
        })
    }

    /// Whether these are the entries that were found to be the roster before.
    pub(super) fn has_seen(&self, entries: &[v1::RosterEntry]) -> bool {
        self.seen == Some(hash(entries))
    }

    /// These entries have been found to be the roster.
    pub(super) fn sees(&mut self, entries: &[v1::RosterEntry]) {
        self.seen = Some(hash(entries));
    }

    /// The masks that confirm the roster: with nothing under them.
    pub(super) fn confirmation(&self) -> Vec<u64> {
        self.keys.masks(&confirmation_digest(&self.roster), CONFIRMATION_LANES)
    }

    /// Digest of the roster.
    pub(super) fn roster(&self) -> [u8; 32] {
        self.roster
    }

    /// The masks of a message's answers by the message's digest, without that of nothing.
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

/// Of entries, each as it is encoded, after its length.
fn hash(entries: &[v1::RosterEntry]) -> [u8; 32] {
    let mut hash = Sha256::new();
    entries.iter().for_each(|entry| hash.update(entry.encode_length_delimited_to_vec()));
    hash.finalize().into()
}

impl RoundMasks {
    /// What the ledger knows the message's queries by.
    pub(super) fn masked(&self) -> Masked {
        Masked { roster: self.roster, round: self.digest, honest: self.honest }
    }

    /// The masks of a chain's integers; `None` for a chain that the message does not ask.
    pub(super) fn of_chain(&self, chain: u32) -> Option<&[u64]> {
        self.masks.get(self.chains.get(&chain)?.clone())
    }

    /// What the reply says beside the answers.
    pub(super) fn echo(&self) -> Echo {
        Echo { digest: self.digest, check: self.masks.last().copied().unwrap_or_default() }
    }
}
