//! Digests of what is asked: masks belong to one question, and to no other.

use super::fields::Fields;
use crate::mechanism::STEP;

/// A query as all participants are asked it.
///
/// Here is everything that the ledger's digest of a query holds, but for what [`round_digest`] adds (job, job file and round) and for the
/// sensitivity, which differs between participants that protect different units: masks that depended on it would not cancel.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Chain within the round.
    pub chain: u32,
    /// theta, or the points of a vector.
    pub from: &'a [f64],
    /// theta', or what scales a vector.
    pub to: &'a [f64],
    /// What is asked, by [`crate::mechanism::QueryKind::code`].
    pub kind: u32,
    /// Noise scale, lattice units.
    pub noise: u64,
}

impl Question<'_> {
    /// SHA-256 of the question, floats by their exact bits.
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

/// SHA-256 of a message: of the roster's digest, the round, the attempt and all its questions in their order.
#[must_use]
pub fn round_digest(roster_digest: &[u8; 32], iteration: u64, attempt: u32, questions: &[[u8; 32]]) -> [u8; 32] {
    let header = Fields::of("conclave round 1")
        .field(roster_digest)
        .field(&iteration.to_le_bytes())
        .field(&attempt.to_le_bytes())
        .field(&(questions.len() as u64).to_le_bytes());
    questions.iter().fold(header, |fields, question| fields.field(question)).digest()
}

/// The digest under which participants confirm a roster before the first round: each sends its first [`CONFIRMATION_LANES`] masks as they
/// are, and all of them sum to zero exactly where every two members agree on their key.
#[must_use]
pub fn confirmation_digest(roster_digest: &[u8; 32]) -> [u8; 32] {
    Fields::of("conclave confirm 1").field(roster_digest).digest()
}

/// Masks in a confirmation.
pub const CONFIRMATION_LANES: usize = 4;
