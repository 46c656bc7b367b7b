//! Proves that a query has been charged, and that its answer is on disk.

use conclave_privacy::accounting::{Adjacency, Honest, Priced, PrivacyUnit, SamplingProbability};
use conclave_privacy::mechanism::{Components, LogWeights, NoiseScale, Sensitivity};
use conclave_privacy::pass::LatticeSum;

use super::query::{Digest, QueryKey};

/// One durable charge that has not been answered: the right to release one vector of integers, once.
///
/// Only [`super::Ledger::charge`] makes one; [`super::sample_noise`] or [`super::prepare_choice`] consumes it. It carries the charged
/// price, so that a release cannot use another noise than the charged one.
#[derive(Debug)]
#[must_use = "a charge that is never answered is spent for nothing"]
pub struct ChargeReceipt {
    row: ChargeRow,
    session: u64,
    digest: Digest,
    priced: Priced,
    sampled: Option<SamplingProbability>,
    /// The ledger's unit of privacy.
    unit: PrivacyUnit,
}

/// The place of a charge until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChargeRow {
    /// In the ledger, under this number.
    Written(u64),
    /// Paid from a block and still to be written, under this number among the pending.
    Pending(u64),
}

impl ChargeReceipt {
    /// Creates the receipt of the query whose charge is `row`. `session` numbers the opening of the ledger, and `unit` is what it protects.
    pub(super) fn mint(row: ChargeRow, session: u64, key: &QueryKey, unit: PrivacyUnit) -> Self {
        let sampled = key.block.map(|block| block.release.probability);
        Self { row, session, digest: key.digest, priced: key.priced, sampled, unit }
    }

    /// Returns the digest of the query that was charged.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the charged sensitivity, lattice units: for a ratio, the bound of one unit's contribution.
    pub fn sensitivity(&self) -> Sensitivity {
        self.priced.sensitivity()
    }

    /// Returns true if the charge covers this sum: one unit of privacy, with all its records, moves it by at most the distance that was priced.
    ///
    /// The distance is [`QueryKind::moves`](conclave_privacy::mechanism::QueryKind::moves) times the charged sensitivity. For a ratio under
    /// replacement it is twice the bound of one unit's contribution. A subsampled price covers only the sum over a hidden sample of the
    /// charged probability.
    pub fn covers(&self, sum: &LatticeSum) -> bool {
        let (adjacency, records) = (self.unit.adjacency, self.unit.records_per_person().unwrap_or(1));
        // A subsampled release is priced for a unit's own contribution, not for the distance of two.
        let norm = if self.priced.kind().is_sampled() { sum.between(Adjacency::AddRemove) } else { 0 };
        self.sampled == sum.sampled()
            && norm <= self.sensitivity().units()
            && sum.records_per_unit() >= records
            && sum.between(adjacency) <= self.priced.kind().moves(adjacency.factor()).saturating_mul(self.sensitivity().units())
    }

    /// Returns true if the charge covers these log weights: one unit of privacy, with all its records, contributes at most the
    /// charged sensitivity to each.
    pub fn covers_choice(&self, weights: &LogWeights) -> bool {
        weights.max_per_unit() <= self.sensitivity().units()
            && weights.records_per_unit() >= self.unit.records_per_person().unwrap_or(1)
    }

    /// Returns the charged noise scale, lattice units.
    pub fn noise_scale(&self) -> NoiseScale {
        self.priced.noise()
    }

    /// Returns the number of charged integers, each with noise of its own.
    pub fn components(&self) -> usize {
        self.priced.components() as usize
    }

    /// Returns true where the charge counts on the noise of others: then an answer may leave only under masks.
    pub fn is_masked(&self) -> bool {
        self.priced.honest() != Honest::ALONE
    }

    /// Returns the charged probability of a unit to be in the sample of a subsampled release; `None` for a release over all units.
    pub fn sampled(&self) -> Option<SamplingProbability> {
        self.sampled
    }

    /// Returns the number of charged candidates of a choice; `None` for a noised sum.
    pub fn candidates(&self) -> Option<u32> {
        self.priced.kind().candidates()
    }

    /// Returns the row of the charge, and the opening of the ledger that it belongs to.
    pub(super) fn row(&self) -> (ChargeRow, u64) {
        (self.row, self.session)
    }
}

/// Released integers that the ledger holds durably: the content of a reply.
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::Components;
/// // A number that is not in the ledger can't be put into a reply.
/// let recorded = conclave_vault::ledger::Recorded { digest: conclave_vault::ledger::Digest([0; 32]), released: Components::One(7) };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    digest: Digest,
    released: Components,
}

impl Recorded {
    pub(super) fn new(digest: Digest, released: Components) -> Self {
        Self { digest, released }
    }

    /// Returns the digest of the query that these integers answer.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the released integers, lattice units, one per component.
    pub fn integers(&self) -> &[i64] {
        self.released.as_slice()
    }
}
