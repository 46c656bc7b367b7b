//! The release: an un-noised sum and a paid draw go in, a number that the ledger will record comes out.
//!
//! This is the only way from a [`LatticeSum`] to something that can be recorded, and what is recorded is the only thing
//! that can be sent ([`crate::ledger::Recorded`]). A draw is had for the receipt of a durable charge, which it takes by
//! value, and so before there is a sum: what remains to be done once the records have been read is one addition.
//!
//! ```compile_fail
//! # use conclave_common::mechanism::LatticeSum;
//! // No receipt, no release.
//! fn uncharged(sum: LatticeSum, noise: &mut conclave_party::noise::Noise) -> conclave_party::release::Release {
//!     conclave_party::release::arm(noise).release(sum)
//! }
//! ```
//! ```compile_fail
//! # use conclave_common::mechanism::LatticeSum;
//! # use conclave_party::{ledger::ChargeReceipt, noise::Noise, release::{Release, arm}};
//! // One receipt, one draw, one release.
//! fn twice(receipt: ChargeReceipt, a: LatticeSum, b: LatticeSum, noise: &mut Noise) -> (Release, Release) {
//!     let armed = arm(receipt, noise);
//!     (armed.release(a), armed.release(b))
//! }
//! ```
//! ```
//! # use conclave_common::mechanism::LatticeSum;
//! # use conclave_party::{ledger::ChargeReceipt, noise::Noise, release::{Release, arm}};
//! fn once(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Release {
//!     arm(receipt, noise).release(sum)
//! }
//! ```

use conclave_common::mechanism::{LatticeSum, NoiseDraw, Sensitivity};

use crate::ledger::ChargeReceipt;
use crate::noise::Noise;

/// A receipt with the draw that it paid for.
#[must_use = "a charge that is never answered is spent for nothing"]
pub struct Armed {
    receipt: ChargeReceipt,
    draw: NoiseDraw,
}

/// Takes a draw of discrete Gaussian noise of the *charged* scale (Canonne, Kamath & Steinke 2020), before any record is
/// read.
pub fn arm(receipt: ChargeReceipt, noise: &mut Noise) -> Armed {
    let draw = noise.draw(receipt.noise_scale());
    Armed { receipt, draw }
}

impl Armed {
    /// Bound of one record's part in the sum, lattice units; half the charged sensitivity.
    pub fn sensitivity(&self) -> Sensitivity {
        self.receipt.sensitivity()
    }

    /// Adds the draw to a sum and uses the receipt up (Yıldırım, Algorithm 2, step of party i).
    pub fn release(self, sum: LatticeSum) -> Release {
        Release { receipt: self.receipt, released: sum.add_noise(self.draw) }
    }
}

/// A noised integer that has been paid for and is not yet recorded.
///
/// ```compile_fail
/// // A release can't be built without the noise.
/// fn raw(receipt: conclave_party::ledger::ChargeReceipt) -> conclave_party::release::Release {
///     conclave_party::release::Release { receipt, released: 0 }
/// }
/// ```
#[must_use = "a release that is not recorded is spent for nothing"]
pub struct Release {
    receipt: ChargeReceipt,
    released: i64,
}

impl Release {
    /// The charge's row and ledger opening, and the integer: for the ledger to record.
    pub(crate) fn into_parts(self) -> ((i64, u64), i64) {
        (self.receipt.row(), self.released)
    }
}

/// Arms and releases at once.
#[cfg(test)]
pub(crate) fn release(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Release {
    arm(receipt, noise).release(sum)
}
