//! Identifies a query by the SHA-256 over everything that determines the distribution of its answer.

use conclave_privacy::accounting::{BlockTerms, Honest, Priced};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP, Sensitivity};
use sha2::{Digest as _, Sha256};

const DOMAIN: &[u8] = b"conclave query 2";
/// Domain of a query whose answer leaves masked.
const MASKED_DOMAIN: &[u8] = b"conclave query 3";

/// SHA-256 of a query's content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// The binding of an answer to its masks, and the honest parties that its charge counts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    /// Digest of the job's roster.
    pub roster: [u8; 32],
    /// Digest of the whole message of the query.
    pub round: [u8; 32],
    /// Number of parties whose noise protects the opened sum.
    pub honest: Honest,
}

/// Everything that determines a release's distribution and place.
///
/// The job's digest stands for model, bounds, algorithm, clip and parameter box: they are all derived from the bytes it
/// covers.
#[derive(Debug, Clone, Copy)]
pub struct QueryContent<'a> {
    /// Job id.
    pub job: &'a str,
    /// SHA-256 of the job's text.
    pub spec_digest: &'a [u8; 32],
    /// Round of the job.
    pub iteration: u64,
    /// Chain within the round.
    pub chain: u32,
    /// theta.
    pub from: &'a [f64],
    /// theta'.
    pub to: &'a [f64],
    /// Kind of the query.
    pub kind: QueryKind,
    /// Charged sensitivity, see [`QueryKey::priced`].
    pub k_t: Sensitivity,
    /// Noise scale, lattice units.
    pub s: NoiseScale,
    /// Masks of a masked job; `None` where each release is opened by itself.
    pub masked: Option<Masked>,
}

impl QueryContent<'_> {
    /// Returns the digest: each field with its length before it, floats by their exact bits, all numbers little endian.
    pub fn digest(&self) -> Digest {
        // A new field fails to compile here. Add it to the digest of masks as well: `secagg::SharedQuery` has all of these but the
        // sensitivity, and but for the roster's and the message's parts of job and round.
        let Self { job, spec_digest, iteration, chain, from, to, kind, k_t, s, masked } = self;
        let mut hash = Sha256::new();
        let mut field = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        field(if masked.is_some() { MASKED_DOMAIN } else { DOMAIN });
        field(job.as_bytes());
        field(*spec_digest);
        field(&STEP.to_bits().to_le_bytes());
        field(&iteration.to_le_bytes());
        field(&chain.to_le_bytes());
        field(&bits(from));
        field(&bits(to));
        field(&kind.code().to_le_bytes());
        field(&k_t.units().to_le_bytes());
        field(&s.units().to_le_bytes());
        if let Some(Masked { roster, round, honest: _ }) = masked {
            field(roster);
            field(round);
        }
        Digest(hash.finalize().into())
    }

    /// Returns the key under which the ledger charges the query's `attempt`-th repetition. The block of a subsampled query is added by the
    /// caller.
    pub fn key(&self, attempt: u32) -> QueryKey {
        QueryKey {
            chain: self.chain,
            attempt,
            digest: self.digest(),
            theta: point_digest(self.from),
            theta_next: point_digest(self.to),
            priced: Priced::new(self.kind, self.k_t, self.s, self.masked.map(|masked| masked.honest).unwrap_or_default()),
            block: None,
        }
    }
}

/// One chain's query of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryKey {
    /// Chain within the round.
    pub chain: u32,
    /// Number of possible losses of the answer that the coordinator was notified of; 0 the first time.
    pub attempt: u32,
    /// Digest of the query's content.
    pub digest: Digest,
    /// Digest of theta, see [`point_digest`].
    pub theta: [u8; 16],
    /// Digest of theta'.
    pub theta_next: [u8; 16],
    /// Price. Public: its sensitivity bounds one unit's contribution to a ratio, and the movement of the sum for other kinds.
    pub priced: Priced,
    /// Block of a subsampled query ([`QueryKind::is_sampled`]); `None` for other kinds.
    pub block: Option<BlockTerms>,
}

/// Returns the first half of the SHA-256 of a point's exact bits, little endian: enough to distinguish points in a table.
pub(super) fn point_digest(point: &[f64]) -> [u8; 16] {
    let hash: [u8; 32] = Sha256::digest(bits(point)).into();
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    half
}

fn bits(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashSet;

    use conclave_common::query::{Query, message_digest};

    use super::*;

    fn base() -> QueryContent<'static> {
        QueryContent {
            job: "j",
            spec_digest: &[7; 32],
            iteration: 1,
            chain: 2,
            from: &[0.0, 1.0],
            to: &[1.0],
            kind: QueryKind::Ratio,
            k_t: Sensitivity::from_units(5).unwrap(),
            s: NoiseScale::from_units(1 << 20).unwrap(),
            masked: None,
        }
    }

    #[test]
    fn every_field_and_every_bit_counts() {
        let base = base();
        let masked = Masked { roster: [1; 32], round: [2; 32], honest: Honest::new(2).unwrap() };
        let ulp = f64::from_bits(1f64.to_bits() + 1);
        let all = [
            base,
            QueryContent { job: "k", ..base },
            QueryContent { spec_digest: &[8; 32], ..base },
            QueryContent { iteration: 2, ..base },
            QueryContent { chain: 1, ..base },
            QueryContent { from: &[-0.0, 1.0], ..base },
            QueryContent { from: &[0.0], to: &[1.0, 1.0], ..base },
            QueryContent { to: &[ulp], ..base },
            QueryContent { kind: QueryKind::ClipCount, ..base },
            QueryContent { kind: QueryKind::Statistic { component: 0 }, ..base },
            QueryContent { kind: QueryKind::Statistic { component: 1 }, ..base },
            QueryContent { k_t: Sensitivity::from_units(6).unwrap(), ..base },
            QueryContent { s: NoiseScale::from_units(1 << 21).unwrap(), ..base },
            QueryContent { masked: Some(masked), ..base },
            QueryContent { masked: Some(Masked { roster: [3; 32], ..masked }), ..base },
            QueryContent { masked: Some(Masked { round: [3; 32], ..masked }), ..base },
        ];
        let digests: HashSet<_> = all.iter().map(QueryContent::digest).collect();
        assert_eq!(digests.len(), all.len());
        assert_eq!(base.digest(), base.digest());
    }
    /// By Python's hashlib over the fields as SECURE-AGGREGATION section 4 orders them, each after its length; and, unmasked, as since format 4.
    #[test]
    fn digests_are_these_bytes() {
        let (spec_digest, roster, round) = (from_fn(0), from_fn(32), from_fn(64));
        let content = QueryContent {
            job: "22222222-2222-4222-8222-222222222222",
            spec_digest: &spec_digest,
            iteration: 7,
            from: &[0.5, -1.25],
            to: &[0.75, -0.0],
            k_t: Sensitivity::from_units(5 << 20).unwrap(),
            s: NoiseScale::from_units(3 << 20).unwrap(),
            masked: Some(Masked { roster, round, honest: Honest::new(2).unwrap() }),
            ..base()
        };
        let shown = |content: QueryContent<'_>| format!("{:?}", content.digest());
        assert_eq!(shown(content), "e5b7ada24638ca7cd6644d25c40f4c35a6340935e0639155740cbb2154604c96");
        assert_eq!(
            shown(QueryContent { masked: None, ..content }),
            "dabe64c206940e2831387895762ef72250aee24580355f162194a8f222ab32c2"
        );
    }

    fn from_fn(first: u8) -> [u8; 32] {
        std::array::from_fn(|i| first + i as u8)
    }

    /// Returns the digest that masks of a message of this one query belong to. A new field has to be placed here.
    fn message(content: &QueryContent<'_>) -> [u8; 32] {
        // The roster has the job and its text; another unit of privacy makes no other query.
        let QueryContent { job: _, spec_digest: _, iteration, chain, from, to, kind, k_t: _, s, masked } = *content;
        let query = Query { chain, from: from.to_vec(), to: to.to_vec(), noise: s, kind };
        message_digest(&masked.unwrap().roster, iteration, &[query])
    }

    /// Queries that differ have different masks: an answer under a new charge never leaves under masks that were used.
    #[test]
    fn masks_belong_to_everything_that_the_ledger_tells_apart() {
        let masked = Masked { roster: [1; 32], round: [2; 32], honest: Honest::new(2).unwrap() };
        let base = QueryContent { masked: Some(masked), ..base() };
        let all = [
            QueryContent { iteration: 2, ..base },
            QueryContent { chain: 1, ..base },
            QueryContent { from: &[-0.0, 1.0], ..base },
            QueryContent { from: &[0.0], to: &[1.0, 1.0], ..base },
            QueryContent { to: &[f64::from_bits(1f64.to_bits() + 1)], ..base },
            QueryContent { kind: QueryKind::ClipCount, ..base },
            QueryContent { kind: QueryKind::Statistic { component: 1 }, ..base },
            QueryContent { s: NoiseScale::from_units(1 << 21).unwrap(), ..base },
            QueryContent { masked: Some(Masked { roster: [3; 32], ..masked }), ..base },
            base,
        ];
        let digests: HashSet<_> = all.iter().map(message).collect();
        assert_eq!(digests.len(), all.len());
        let other_unit = QueryContent { k_t: Sensitivity::from_units(6).unwrap(), ..base };
        assert_eq!(message(&other_unit), message(&base), "what its parties are asked alike");
    }
}
