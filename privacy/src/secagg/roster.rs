//! The roster: the participants whose masks cancel. It is fixed for the whole job.

use std::collections::HashSet;
use std::hash::Hash;

use super::fields::Fields;
use super::keys::MaskPublic;

/// A participant of a secure job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name in the consortium.
    pub name: String,
    /// SHA-256 of the DER SubjectPublicKeyInfo of the identity certificate.
    pub identity: [u8; 32],
    /// The mask key for this job.
    pub public: MaskPublic,
}

/// All participants of a secure job in the job's order, and the number of them that may collude against another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    job: String,
    spec_digest: [u8; 32],
    colluders: u32,
    members: Vec<Member>,
    digest: [u8; 32],
}

/// The reason why a list of members is not a valid roster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// There are fewer than 3 participants, which protects no single answer, or more than the sums have room for.
    #[error("a secure job needs {} to {} participants, but this one has {members}", Roster::MIN_MEMBERS, Roster::MAX_MEMBERS)]
    Members {
        /// The number of members.
        members: usize,
    },
    /// There is no colluder, or fewer than two honest participants remain.
    #[error("colluders = {colluders} is out of range: a secure job of {members} participants allows 1 to {}", members.saturating_sub(2))]
    Colluders {
        /// The number of permitted colluders.
        colluders: u32,
        /// The number of participants.
        members: usize,
    },
    /// Two members share a name or a key.
    #[error("two participants of the secure job have the same {what}")]
    Twice {
        /// The shared item: name, identity key or mask key.
        what: &'static str,
    },
}

impl Roster {
    /// The minimum number of members. With two, a participant that colludes with the coordinator learns the other's answer.
    pub const MIN_MEMBERS: usize = 3;
    /// The maximum number of members whose sums fit in 64 bits.
    pub const MAX_MEMBERS: usize = 1024;

    /// Creates the roster of a job whose text has the SHA-256 `spec_digest`. `members` are in the job's order, and at most
    /// `colluders` of them collude with the coordinator.
    ///
    /// # Errors
    /// [`RosterError`] for fewer than 3 or more than 1024 members, for no colluder, and for fewer than 2 members besides the
    /// colluders. [`RosterError::Twice`] for a name, identity or mask key that two members share. A member with another's mask
    /// key could cancel masks in the answers of that member's partners.
    pub fn new(job: &str, spec_digest: [u8; 32], colluders: u32, members: Vec<Member>) -> Result<Self, RosterError> {
        let count = members.len();
        if !(Self::MIN_MEMBERS..=Self::MAX_MEMBERS).contains(&count) {
            return Err(RosterError::Members { members: count });
        }
        if !(1..=count - 2).contains(&(colluders as usize)) {
            return Err(RosterError::Colluders { colluders, members: count });
        }
        for (what, twice) in [
            ("name", twice(members.iter().map(|m| &m.name))),
            ("identity key", twice(members.iter().map(|m| &m.identity))),
            ("mask key", twice(members.iter().map(|m| &m.public))),
        ] {
            if twice {
                return Err(RosterError::Twice { what });
            }
        }
        Ok(Self::unchecked(job, spec_digest, colluders, members))
    }

    /// Creates a roster without the checks. Tests use it to show why they are needed.
    pub(super) fn unchecked(job: &str, spec_digest: [u8; 32], colluders: u32, members: Vec<Member>) -> Self {
        let header = Fields::of("conclave roster 1")
            .field(job.as_bytes())
            .field(&spec_digest)
            .field(&u64::from(colluders).to_le_bytes())
            .field(&(members.len() as u64).to_le_bytes());
        let add = |fields: Fields, m: &Member| fields.field(m.name.as_bytes()).field(&m.identity).field(m.public.bytes());
        let digest = members.iter().fold(header, add).digest();
        Self { job: job.to_owned(), spec_digest, colluders, members, digest }
    }

    /// Returns the SHA-256 of the whole roster. All masks depend on it, so participants with different rosters have no mask in
    /// common.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Returns the minimum number of participants that keep their noise secret: all but the colluders.
    #[must_use]
    pub fn honest(&self) -> u32 {
        // Checked: at most 1024 members, and at least 2 besides the colluders.
        (self.members.len() as u32).saturating_sub(self.colluders)
    }

    /// Returns the place of a participant in the job's order, from 0.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|m| m.name == name)
    }

    /// Returns the job's identifier.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns the SHA-256 of the job's text.
    #[must_use]
    pub fn spec_digest(&self) -> &[u8; 32] {
        &self.spec_digest
    }

    /// Returns the number of participants that may collude with the coordinator.
    #[must_use]
    pub fn colluders(&self) -> u32 {
        self.colluders
    }

    /// Returns the participants, in the job's order.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }
}

/// Returns the message that a party's identity key signs: the job, the SHA-256 of the job's text, the party's name and its mask
/// key. The signature prevents others from naming a mask key for the party.
#[must_use]
pub fn mask_key_message(job: &str, spec_digest: &[u8; 32], name: &str, public: &MaskPublic) -> Vec<u8> {
    Fields::of("conclave mask key 1")
        .field(job.as_bytes())
        .field(spec_digest)
        .field(name.as_bytes())
        .field(public.bytes())
        .bytes()
}

fn twice<T: Eq + Hash>(values: impl Iterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    values.into_iter().any(|value| !seen.insert(value))
}
