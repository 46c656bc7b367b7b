//! Defines the bodies of the events that the ledger's state depends on, as stored in `events.body`.

use std::collections::BTreeMap;

use conclave_privacy::accounting::{Adjacency, Budget, PrivacyUnit, Spent};
use conclave_privacy::secagg::{MaskPublic, Member, Roster};
use serde::{Deserialize, Serialize};

use super::wrong::Wrong;

/// Formats a float as text that reads back as the same bits.
pub(super) fn exact(value: f64) -> String {
    format!("{value:?}")
}

/// Formats bytes as lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).map(char::from).collect()
}

/// Parses lower-case hexadecimal of exactly `2 N` digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

macro_rules! event {
    ($name:ident, $kind:literal) => {
        #[allow(unreachable_pub)]
        impl $name {
            /// The event's kind.
            pub const KIND: &'static str = $kind;

            /// Reads an event's body.
            pub fn parse(body: &str) -> Result<Self, Wrong> {
                serde_json::from_str(body).map_err(|e| Wrong::Body { kind: $kind, reason: e.to_string() })
            }

            /// The event's body.
            pub fn body(&self) -> String {
                // Strings and integers alone, under names: this cannot fail.
                serde_json::to_string(self).unwrap_or_default()
            }
        }
    };
}

pub(super) use event;

/// The first entry: the party, the budget, the unit of privacy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genesis {
    /// Format of the ledger.
    pub format: i32,
    /// The party.
    pub party: String,
    /// The budget's epsilon, as text that reads back to the same bits.
    pub epsilon: String,
    /// The delta of what is charged by mu², likewise.
    pub delta: String,
    /// Reserve of delta for blocks of subsampled releases, in addition to that, units of 2^-60: the guarantee holds at both together.
    /// Absent in a ledger that was made without.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reserve: u64,
    /// `replace` or `add-remove`.
    pub adjacency: String,
    /// The most records of one person; 0 where rows are protected.
    pub records_per_person: u32,
    /// MAC of a fixed text under the secret key: it reveals another key.
    pub key_check: String,
    /// 256 random bits, so that hashes of the chain cannot be guessed from small ledgers.
    pub nonce: String,
}
event!(Genesis, "init");

impl Genesis {
    /// Returns the unit of privacy that the ledger protects.
    pub fn unit(&self) -> Result<PrivacyUnit, Wrong> {
        let adjacency = [Adjacency::Replace, Adjacency::AddRemove].into_iter().find(|a| a.as_str() == self.adjacency);
        let unit = adjacency.and_then(|adjacency| match self.records_per_person {
            0 => Some(PrivacyUnit::row(adjacency)),
            k => PrivacyUnit::person(adjacency, k),
        });
        unit.ok_or(Wrong::Unit)
    }

    /// Returns the budget, with its unit.
    pub fn budget(&self) -> Result<Budget, Wrong> {
        let budget = Budget::new(number(&self.epsilon)?, number(&self.delta)?)?;
        Ok(budget.reserving(self.reserve).of(self.unit()?))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Event: the part of the reserve of delta that a job may take, right after the job's entry, for a job that subsamples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobReserve {
    /// Units of 2^-60.
    pub reserve: u64,
}
event!(JobReserve, "job-reserve");

/// Event: a block of charge is written ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// The first round that it may pay for.
    pub iteration: u64,
    /// Units of 2^-48 of mu².
    pub units: u64,
    /// Units of 2^-80 of the allowance for discrete noise.
    pub slack: u64,
    /// The most integers that it may pay for, each of them a separate query, and so the most rounds.
    pub draws: u64,
}
event!(Reserve, "reserve");

/// Event: a block is settled; its forfeits are lost for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// `seq` of the block.
    pub block: u64,
    /// Forfeited units of 2^-48 of mu².
    pub units: u64,
    /// Forfeited units of 2^-80 of slack.
    pub slack: u64,
    /// Forfeited integers.
    pub draws: u64,
    /// `crash` where all unrecorded charge is forfeited; else `full`, `closed` or `stopped`.
    pub why: String,
}
event!(Settle, "settle");

impl Settle {
    /// After a crash the whole remainder is forfeited.
    pub const CRASH: &'static str = "crash";
    /// Unused charge is returned, and another charge follows.
    pub(super) const FULL: &'static str = "full";

    pub(super) fn spent(&self) -> Spent {
        Spent { units: self.units, slack_units: self.slack, draws: self.draws, reserve_units: 0 }
    }
}

/// A place in a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainPosition {
    /// Sequence number.
    pub seq: u64,
    /// Hash of the entry there, in hexadecimal.
    pub hash: String,
}

/// Event: the owner continues with a ledger that is behind a head it has acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unlock {
    /// Reason, in the owner's words.
    pub reason: String,
    /// The head that the ledger does not reach.
    pub lost: ChainPosition,
    /// Last entry before the continuation.
    pub from: ChainPosition,
}
event!(Unlock, "unlock");

/// Event: the owner limits the budget in case all other parties of masked jobs collude.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllCollude {
    /// Epsilon at `delta`, as text that reads back to the same bits.
    pub epsilon: String,
    /// The data's delta, likewise.
    pub delta: String,
}
event!(AllCollude, "all-collude");

impl AllCollude {
    /// Returns the limit as a budget.
    pub fn budget(&self, unit: PrivacyUnit) -> Result<Budget, Wrong> {
        Ok(Budget::new(number(&self.epsilon)?, number(&self.delta)?)?.of(unit))
    }
}

fn number(text: &str) -> Result<f64, Wrong> {
    text.parse().map_err(|_| Wrong::Number(text.to_owned()))
}

/// Event: the party has made the key with which a job's answers will be masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskKey {
    /// Its public half (X25519), in hexadecimal.
    pub public: String,
}
event!(MaskKey, "mask-key");

impl MaskKey {
    /// Returns the key's bytes.
    pub fn key(&self) -> Result<[u8; 32], Wrong> {
        unhex(&self.public).ok_or_else(|| Wrong::Roster("a key is 64 hexadecimal digits".to_owned()))
    }
}

/// One of the parties under whose masks a job's answers leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RosterMember {
    /// Name.
    pub name: String,
    /// SHA-256 of its identity key (DER SubjectPublicKeyInfo), in hexadecimal.
    pub identity: String,
    /// Its key for this job's masks (X25519), in hexadecimal.
    pub public: String,
    /// True where its identity key was the one that the owner had pinned, and for the party itself.
    pub pinned: bool,
    /// Serial number of its certificate, in hexadecimal, by which it may be revoked.
    pub serial: String,
}

/// Event: the parties under whose masks a job's answers leave, for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RosterEntered {
    /// Digest of the roster, in hexadecimal.
    pub digest: String,
    /// Number of other members that are assumed to collude.
    pub colluders: u32,
    /// Number of parties whose noise protects this one then.
    pub honest: u32,
    /// In the job's order.
    pub members: Vec<RosterMember>,
}
event!(RosterEntered, "roster");

impl RosterEntered {
    /// Makes the roster's entry, with each member's pin and serial number.
    pub fn of(roster: &Roster, known: &[(bool, String)]) -> Self {
        let member = |(member, (pinned, serial)): (&Member, &(bool, String))| RosterMember {
            pinned: *pinned,
            serial: serial.clone(),
            name: member.name.clone(),
            identity: hex(&member.identity),
            public: hex(member.public.bytes()),
        };
        Self {
            digest: hex(&roster.digest()),
            colluders: roster.colluders(),
            honest: roster.honest(),
            members: roster.members().iter().zip(known).map(member).collect(),
        }
    }

    /// Returns the roster of a job of this id and text.
    pub fn roster(&self, job: &str, spec_digest: &[u8; 32]) -> Result<Roster, Wrong> {
        let wrong = |why: &str| Wrong::Roster(why.to_owned());
        let member = |member: &RosterMember| {
            let public = unhex::<32>(&member.public).and_then(|bytes| MaskPublic::parse(&bytes).ok());
            Ok(Member {
                name: member.name.clone(),
                identity: unhex(&member.identity).ok_or_else(|| wrong("an identity is no digest"))?,
                public: public.ok_or_else(|| wrong("a key is none"))?,
            })
        };
        let members = self.members.iter().map(member).collect::<Result<Vec<_>, Wrong>>()?;
        let roster = Roster::new(job, *spec_digest, self.colluders, members).map_err(|e| Wrong::Roster(e.to_string()))?;
        if hex(&roster.digest()) != self.digest || roster.honest() != self.honest {
            return Err(wrong("its digest or its number of honest parties is not its members'"));
        }
        Ok(roster)
    }

    /// Returns true where a member has this key.
    pub fn has(&self, public: &MaskPublic) -> bool {
        let public = hex(public.bytes());
        self.members.iter().any(|member| member.public == public)
    }

    /// Checks that the roster is that of a job whose party has this key.
    pub(super) fn check(&self, job: &str, spec_digest: &[u8; 32], own: &[u8; 32]) -> Result<(), Wrong> {
        let roster = self.roster(job, spec_digest)?;
        if roster.members().iter().any(|member| member.public.bytes() == own) {
            return Ok(());
        }
        Err(Wrong::Roster("the party's own key is not in it".to_owned()))
    }
}

/// Event: columns whose data the ledger has not met since the last refresh, by keyed hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Keyed hash of each column's cleaned values, in hexadecimal.
    pub columns: BTreeMap<String, String>,
}
event!(Data, "data");
