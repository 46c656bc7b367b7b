//! The roster fixes who masks with whom: one for a job, for ever.

use std::collections::HashSet;
use std::hash::Hash;

use super::fields::Fields;
use super::keys::MaskPublic;

/// A participant of a secure job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name in the consortium.
    pub name: String,
    /// SHA-256 of the DER SubjectPublicKeyInfo of its identity certificate.
    pub identity: [u8; 32],
    /// Its mask key for this job.
    pub public: MaskPublic,
}

/// All participants of a secure job in the job's order, and how many of them may work together against another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    job: String,
    spec_digest: [u8; 32],
    colluders: u32,
    members: Vec<Member>,
    digest: [u8; 32],
}

/// Why a list of members is no roster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// Too few to hide among, or more than sums have room for.
    #[error("a secure job has {} to {} participants, and this one has {members}", Roster::MIN_MEMBERS, Roster::MAX_MEMBERS)]
    Members {
        /// How many there are.
        members: usize,
    },
    /// No colluder, or so many that fewer than two honest participants are left.
    #[error("a secure job of {members} participants allows for 1 to {} colluders, not {colluders}", members.saturating_sub(2))]
    Colluders {
        /// How many there may be.
        colluders: u32,
        /// Of how many participants.
        members: usize,
    },
    /// Two members are one in this respect.
    #[error("two participants of the secure job have the same {what}")]
    Twice {
        /// Name, identity key or mask key.
        what: &'static str,
    },
}

impl Roster {
    /// With fewer, a fellow participant that works with the coordinator leaves nobody to hide among.
    pub const MIN_MEMBERS: usize = 3;
    /// Sums of so many have room in 64 bits.
    pub const MAX_MEMBERS: usize = 1024;

    /// The roster of a job whose text has the SHA-256 `spec_digest`: `members` in the job's order, of whom at most `colluders` work with
    /// the coordinator.
    ///
    /// # Errors
    /// [`RosterError`] for fewer than 3 or more than 1024 members, for no colluder or fewer than 2 members besides them, and for a name,
    /// identity or mask key that two members have. Whoever has another's mask key has masks that cancel in that other's partners' answers.
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

    /// A roster without its checks, whose worth tests show.
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

    /// SHA-256 over everything in it. All masks depend on it, so participants that were told different rosters have no mask in common.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// How many participants at least keep their noise to themselves: all but the colluders.
    #[must_use]
    pub fn honest(&self) -> u32 {
        // Checked: no more than 1024 members, and at least 2 besides the colluders.
        (self.members.len() as u32).saturating_sub(self.colluders)
    }

    /// The place of a participant in the job's order, from 0.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|m| m.name == name)
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }

    /// SHA-256 of the job's text.
    #[must_use]
    pub fn spec_digest(&self) -> &[u8; 32] {
        &self.spec_digest
    }

    /// How many participants may work with the coordinator.
    #[must_use]
    pub fn colluders(&self) -> u32 {
        self.colluders
    }

    /// The participants, in the job's order.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }
}

/// What a party's identity key signs, so that nobody else can name a mask key for it: the job, SHA-256 of the job's text, the party's name
/// and the key.
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
