//! Defines the entries of a ledger and their hash chain: pure functions of their fields, shared by the ledger and by auditors of an export.
//!
//! Every entry has the next sequence number and `hash = SHA-256(DOMAIN ‖ hash of the entry before ‖ encoding)`. The encoding is the kind's
//! byte, then the fields in the order of the structs below: integers little endian at their width, byte strings and texts of varying length
//! preceded by their length in 64 bits.

use sha2::{Digest as _, Sha256};

/// First bytes under every entry's hash.
pub(super) const DOMAIN: &[u8; 17] = b"conclave ledger 3";
/// The hash "before" the first entry.
pub(super) const NO_HASH: [u8; 32] = [0; 32];

/// A hash of the chain.
pub type Hash = [u8; 32];

/// The charge of a query, which pays for all integers of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChargeEntry {
    /// Place in the ledger.
    pub seq: u64,
    /// Unix time in milliseconds; no decision depends on it.
    pub time_ms: i64,
    /// `seq` of the job's entry.
    pub job: u64,
    /// Round of the job.
    pub iteration: u64,
    /// Chain within the round.
    pub chain: u32,
    /// Number of earlier losses of the answer by a crash in reserve mode; 0 at first.
    pub attempt: u32,
    /// `seq` of the block that paid; 0 where the charge was written before the answer was computed.
    pub block: u64,
    /// SHA-256 of the query's content.
    pub digest: Hash,
    /// First half of theta's SHA-256.
    pub theta: [u8; 16],
    /// First half of the SHA-256 of theta'.
    pub theta_next: [u8; 16],
    /// Kind of the release, a [`QueryKind::code`].
    ///
    /// [`QueryKind::code`]: conclave_privacy::mechanism::QueryKind::code
    pub kind: u32,
    /// Charged sensitivity: bound of one unit's contribution to a ratio, or of the movement of the sum for other kinds; lattice units.
    pub k_t: u64,
    /// Noise scale, lattice units.
    pub s: u64,
    /// The cost, in units of 2^-48 of mu².
    pub charge: u64,
    /// Total of all charges up to and with this entry, forfeits included.
    pub running_total: u64,
    /// Part of the allowance for discrete noise, in units of 2^-80.
    pub slack: u64,
    /// Integers in the answer, each with noise of its own; 1 of most kinds.
    pub components: u32,
    /// Number of parties whose noise protects the opened answer: 1 where it is opened by itself.
    pub honest: u32,
    /// The cost under its own noise alone, in units of 2^-48 of mu²: the charge, where `honest` is 1.
    pub alone: u64,
}

/// The integers of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerEntry<'a> {
    /// Place in the ledger.
    pub seq: u64,
    /// `seq` of its charge.
    pub charge: u64,
    /// The noised integers, lattice units, in the charged number.
    pub released: &'a [i64],
}

/// A job is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobEntered<'a> {
    /// Place in the ledger.
    pub seq: u64,
    /// Unix time in milliseconds.
    pub time_ms: i64,
    /// The job's id.
    pub job: &'a str,
    /// The analyst.
    pub analyst: &'a str,
    /// SHA-256 of `spec_toml`.
    pub spec_digest: &'a Hash,
    /// The job's text.
    pub spec_toml: &'a str,
    /// The cap's epsilon, as text that reads back to the same bits.
    pub cap_epsilon: &'a str,
    /// The cap's delta, likewise.
    pub cap_delta: &'a str,
    /// Number of units of privacy that is public; 0 where none is.
    pub records: u64,
    /// Keyed hash of the data that it opened on; empty where the ledger was not shown any.
    pub fingerprint: &'a [u8],
}

/// Any other event: openings and closings of jobs, blocks, starts, and the owner's acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventEntry<'a> {
    /// Place in the ledger.
    pub seq: u64,
    /// Unix time in milliseconds.
    pub time_ms: i64,
    /// The event, one word; see `ledger-schema.md`.
    pub kind: &'a str,
    /// `seq` of the job's entry, or 0.
    pub job: u64,
    /// The particulars, a JSON object.
    pub body: &'a str,
}

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry<'a> {
    /// See [`ChargeEntry`].
    Charge(ChargeEntry),
    /// See [`AnswerEntry`].
    Answer(AnswerEntry<'a>),
    /// See [`JobEntered`].
    Job(JobEntered<'a>),
    /// See [`EventEntry`].
    Event(EventEntry<'a>),
}

impl Entry<'_> {
    /// Place in the ledger.
    pub fn seq(&self) -> u64 {
        match self {
            Entry::Charge(e) => e.seq,
            Entry::Answer(e) => e.seq,
            Entry::Job(e) => e.seq,
            Entry::Event(e) => e.seq,
        }
    }

    /// Returns the entry's hash, after the one before it.
    pub fn hash(&self, before: &Hash) -> Hash {
        match self {
            Entry::Charge(e) => e.hash(before),
            Entry::Answer(e) => e.hash(before),
            Entry::Job(e) => e.hash(before),
            Entry::Event(e) => e.hash(before),
        }
    }
}

/// Room for the fixed-length kinds: one call of the hash function on the stack, since a start hashes millions of them.
struct Fixed<const N: usize> {
    bytes: [u8; N],
    filled: usize,
}

impl<const N: usize> Fixed<N> {
    fn new(before: &Hash, kind: u8) -> Self {
        let mut fixed = Self { bytes: [0; N], filled: 0 };
        fixed.put(DOMAIN);
        fixed.put(before);
        fixed.put(&[kind]);
        fixed
    }

    /// `N` below is the sum of all fields, which a debug assertion checks.
    fn put(&mut self, field: &[u8]) {
        let end = self.filled + field.len();
        if let Some(room) = self.bytes.get_mut(self.filled..end) {
            room.copy_from_slice(field);
        }
        self.filled = end;
    }

    fn hash(self) -> Hash {
        debug_assert_eq!(self.filled, N);
        Sha256::digest(self.bytes).into()
    }
}

const START: usize = DOMAIN.len() + 32 + 1;

/// Bytes of a charge's fields.
const CHARGE: usize = 4 * 8 + 2 * 4 + 8 + 32 + 2 * 16 + 4 + 5 * 8;

impl ChargeEntry {
    /// A single integer has the original kind; several have a second kind with their number as the last field. A masked release has a
    /// third, with its numbers of integers and of honest parties, its cost alone, and room for its part of delta alone, which is 0 so far.
    fn hash(&self, before: &Hash) -> Hash {
        if self.honest != 1 {
            let mut fixed = self.filled(Fixed::<{ START + CHARGE + 4 + 4 + 8 + 8 }>::new(before, 7));
            fixed.put(&self.components.to_le_bytes());
            fixed.put(&self.honest.to_le_bytes());
            fixed.put(&self.alone.to_le_bytes());
            fixed.put(&0_u64.to_le_bytes());
            return fixed.hash();
        }
        if self.components == 1 {
            return self.filled(Fixed::<{ START + CHARGE }>::new(before, 1)).hash();
        }
        let mut fixed = self.filled(Fixed::<{ START + CHARGE + 4 }>::new(before, 5));
        fixed.put(&self.components.to_le_bytes());
        fixed.hash()
    }

    fn filled<const N: usize>(&self, mut fixed: Fixed<N>) -> Fixed<N> {
        fixed.put(&self.seq.to_le_bytes());
        fixed.put(&self.time_ms.to_le_bytes());
        fixed.put(&self.job.to_le_bytes());
        fixed.put(&self.iteration.to_le_bytes());
        fixed.put(&self.chain.to_le_bytes());
        fixed.put(&self.attempt.to_le_bytes());
        fixed.put(&self.block.to_le_bytes());
        fixed.put(&self.digest);
        fixed.put(&self.theta);
        fixed.put(&self.theta_next);
        fixed.put(&self.kind.to_le_bytes());
        for number in [self.k_t, self.s, self.charge, self.running_total, self.slack] {
            fixed.put(&number.to_le_bytes());
        }
        fixed
    }
}

impl AnswerEntry<'_> {
    /// A single integer has the original kind; several have a second kind, with their number before them.
    fn hash(&self, before: &Hash) -> Hash {
        if let [released] = self.released {
            let mut fixed = Fixed::<{ START + 3 * 8 }>::new(before, 2);
            fixed.put(&self.seq.to_le_bytes());
            fixed.put(&self.charge.to_le_bytes());
            fixed.put(&released.to_le_bytes());
            return fixed.hash();
        }
        let start = Sha256::new().chain_update(DOMAIN).chain_update(before).chain_update([6]);
        let open = Open(start).number(self.seq).number(self.charge).number(self.released.len() as u64);
        self.released.iter().fold(open, |open, released| open.number(released.cast_unsigned())).hash()
    }
}

/// The kinds of varying length.
struct Open(Sha256);

impl Open {
    fn new(before: &Hash, kind: u8, seq: u64, time_ms: i64) -> Self {
        let start = Sha256::new().chain_update(DOMAIN).chain_update(before).chain_update([kind]);
        Self(start.chain_update(seq.to_le_bytes()).chain_update(time_ms.to_le_bytes()))
    }

    fn number(self, number: u64) -> Self {
        Self(self.0.chain_update(number.to_le_bytes()))
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        Self(self.number(bytes.len() as u64).0.chain_update(bytes))
    }

    fn hash(self) -> Hash {
        self.0.finalize().into()
    }
}

impl JobEntered<'_> {
    fn hash(&self, before: &Hash) -> Hash {
        let open = Open::new(before, 3, self.seq, self.time_ms)
            .bytes(self.job.as_bytes())
            .bytes(self.analyst.as_bytes())
            .bytes(self.spec_digest)
            .bytes(self.spec_toml.as_bytes());
        let open = open.bytes(self.cap_epsilon.as_bytes()).bytes(self.cap_delta.as_bytes());
        open.number(self.records).bytes(self.fingerprint).hash()
    }
}

impl EventEntry<'_> {
    fn hash(&self, before: &Hash) -> Hash {
        let open = Open::new(before, 4, self.seq, self.time_ms).bytes(self.kind.as_bytes());
        open.number(self.job).bytes(self.body.as_bytes()).hash()
    }
}
