//! The proof that a query has been charged, and the proof that its answer is on disk.

use conclave_common::mechanism::{NoiseScale, Sensitivity};

/// One durable charge that has not been answered: the right to release one number, once.
///
/// It can be had from [`super::Ledger::charge`] alone and is used up by [`crate::release::release`]. It carries what was
/// paid for, so that a release can't use another noise than the charged one.
#[derive(Debug)]
#[must_use = "a charge that is never answered is spent for nothing"]
pub struct ChargeReceipt {
    seq: i64,
    session: u64,
    k_t: Sensitivity,
    s: NoiseScale,
}

impl ChargeReceipt {
    pub(super) fn mint(seq: i64, session: u64, k_t: Sensitivity, s: NoiseScale) -> Self {
        Self { seq, session, k_t, s }
    }

    /// Bound of one record's part in the sum, lattice units; half the charged sensitivity.
    pub fn sensitivity(&self) -> Sensitivity {
        self.k_t
    }

    /// The charged noise scale, lattice units.
    pub fn noise_scale(&self) -> NoiseScale {
        self.s
    }

    /// Row of the charge, and the opening of the ledger that it belongs to.
    pub(crate) fn row(&self) -> (i64, u64) {
        (self.seq, self.session)
    }
}

/// A released integer that the ledger holds durably: what a reply is made of.
///
/// ```compile_fail
/// // A number that is not in the ledger can't be put into a reply.
/// let recorded = conclave_party::ledger::Recorded { released: 7 };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    released: i64,
}

impl Recorded {
    pub(super) fn new(released: i64) -> Self {
        Self { released }
    }

    /// The released integer, lattice units.
    pub fn value(self) -> i64 {
        self.released
    }
}
