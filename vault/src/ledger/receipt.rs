//! The proof that a query has been charged, and the proof that its answer is on disk.

use conclave_privacy::accounting::{Honest, Priced};
use conclave_privacy::mechanism::{Components, NoiseScale, QueryKind, Sensitivity};

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
    pub(super) fn mint((row, session): (ChargeRow, u64), priced: Priced) -> Self {
        Self { row, session, priced }
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
/// let recorded = conclave_vault::ledger::Recorded { released: Components::One(7) };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    released: Components,
}

impl Recorded {
    pub(super) fn new(released: Components) -> Self {
        Self { released }
    }

    /// The released integers, lattice units, one per component.
    pub fn integers(&self) -> &[i64] {
        self.released.as_slice()
    }
}
