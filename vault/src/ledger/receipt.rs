//! The proof that a query has been charged, and the proof that its answer is on disk.

use conclave_privacy::accounting::{Honest, Priced};
use conclave_privacy::mechanism::{Components, NoiseScale, QueryKind, Sensitivity};

use super::query::{Digest, QueryKey};

/// One durable charge that has not been answered: the right to release one vector of integers, once.
///
/// It can be had from [`super::Ledger::charge`] alone and is used up by [`super::sample_noise`] or
/// [`super::prepare_choice`]. It carries what was
/// paid for, so that a release can't use another noise than the charged one.
#[derive(Debug)]
#[must_use = "a charge that is never answered is spent for nothing"]
pub struct ChargeReceipt {
    row: ChargeRow,
    session: u64,
    digest: Digest,
    priced: Priced,
}

/// Where a charge stands until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChargeRow {
    /// In the ledger, under this number.
    Written(u64),
    /// Paid from a block and still to be written, under this number among those that are.
    Pending(u64),
}

impl ChargeReceipt {
    /// Makes the receipt of a query that `row` has charged in the ledger opening `session`.
    pub(super) fn mint(row: ChargeRow, session: u64, key: &QueryKey) -> Self {
        Self { row, session, digest: key.digest, priced: key.priced }
    }

    /// Digest of the query that was charged.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The charged sensitivity, lattice units: of a ratio the bound of one unit's part in the sum.
    pub fn sensitivity(&self) -> Sensitivity {
        self.priced.sensitivity()
    }

    /// The charged noise scale, lattice units.
    pub fn noise_scale(&self) -> NoiseScale {
        self.priced.noise()
    }

    /// Integers that were paid for, each with noise of its own.
    pub fn components(&self) -> usize {
        self.priced.components() as usize
    }

    /// Whether the noise of others protects what is opened: then no answer may leave but masked.
    pub fn is_masked(&self) -> bool {
        self.priced.honest() != Honest::ALONE
    }

    /// How many candidates were paid for to choose among; `None` of a charge for a noised sum.
    pub fn candidates(&self) -> Option<u32> {
        match self.priced.kind() {
            QueryKind::Choice { candidates } => Some(candidates),
            _ => None,
        }
    }

    /// Row of the charge, and the opening of the ledger that it belongs to.
    pub(super) fn row(&self) -> (ChargeRow, u64) {
        (self.row, self.session)
    }
}

/// Released integers that the ledger holds durably: what a reply is made of.
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::Components;
/// // A number that is not in the ledger can't be put into a reply.
/// let recorded = crate::ledger::Recorded { digest: crate::ledger::Digest([0; 32]), released: Components::One(7) };
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

    /// Digest of the query that these integers answer.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The released integers, lattice units, one per component.
    pub fn integers(&self) -> &[i64] {
        self.released.as_slice()
    }
}
