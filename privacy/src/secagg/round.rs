//! Digests of queries and rounds: each mask belongs to one query of one round.

use super::fields::Fields;
use crate::mechanism::STEP;

/// A query in the form that is identical for all participants.
///
/// It contains every field of the ledger's digest of a query, less the job, the job file and the round, which [`round_digest`]
/// adds. The sensitivity is left out because it differs between participants that protect different units, and masks that
/// depended on it would not cancel.
#[derive(Debug, Clone, Copy)]
pub struct SharedQuery<'a> {
    /// Chain within the round.
    pub chain: u32,
    /// theta, or the points of a vector query.
    pub from: &'a [f64],
    /// theta', or the scales of a vector query.
    pub to: &'a [f64],
    /// The kind, as [`crate::mechanism::QueryKind::code`].
    pub kind: u32,
    /// The noise scale in lattice units.
    pub noise: u64,
}

impl SharedQuery<'_> {
    /// Returns the SHA-256 of the query, with floats by their exact bits.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let Self { chain, from, to, kind, noise } = self;
        Fields::of("conclave question 1")
            .numbers(&[STEP])
            .field(&chain.to_le_bytes())
            .numbers(from)
            .numbers(to)
            .field(&kind.to_le_bytes())
            .field(&noise.to_le_bytes())
            .digest()
    }
}

/// Returns the SHA-256 of a message: of the roster's digest, the round, the attempt and the digests of all queries in order.
#[must_use]
pub fn round_digest(roster_digest: &[u8; 32], iteration: u64, attempt: u32, queries: &[[u8; 32]]) -> [u8; 32] {
    let header = Fields::of("conclave round 1")
        .field(roster_digest)
        .field(&iteration.to_le_bytes())
        .field(&attempt.to_le_bytes())
        .field(&(queries.len() as u64).to_le_bytes());
    queries.iter().fold(header, |fields, query| fields.field(query)).digest()
}

/// Returns the digest under which participants confirm a roster before the first round.
///
/// Each participant sends its first [`CONFIRMATION_LANES`] masks. They sum to zero exactly if every two members agree on their
/// key.
#[must_use]
pub fn confirmation_digest(roster_digest: &[u8; 32]) -> [u8; 32] {
    Fields::of("conclave confirm 1").field(roster_digest).digest()
}

/// The number of masks in a confirmation.
pub const CONFIRMATION_LANES: usize = 4;
