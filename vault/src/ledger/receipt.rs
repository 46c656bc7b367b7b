//! Proves that a query has been charged, and that its answer is on disk.

use conclave_privacy::accounting::{Cover, Honest, PrivacyUnit};
use conclave_privacy::mechanism::Components;

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
    cover: Cover,
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
        Self { row, session, digest: key.digest, cover: Cover { priced: key.priced, sampled, unit } }
    }

    /// Returns the digest of the query that was charged.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the terms of the charge, without which no sum is released.
    pub fn cover(&self) -> &Cover {
        &self.cover
    }

    /// Returns true where the charge counts on the noise of others: then an answer may leave only under masks.
    pub fn is_masked(&self) -> bool {
        self.cover.priced.honest() != Honest::ALONE
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

    /// Creates an integer that no ledger holds: a planted fault.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn planted(integer: i64) -> Self {
        Self::new(Digest([0; 32]), Components::One(integer))
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
