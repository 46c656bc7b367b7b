//! The release: an un-noised sum and a receipt go in, a number that the ledger will record comes out.
//!
//! This is the only way from a [`LatticeSum`] to something that can be recorded, and what is recorded is the only thing
//! that can be sent ([`crate::ledger::Recorded`]). It takes the receipt of a durable charge by value:
//!
//! ```compile_fail
//! # use conclave_common::mechanism::LatticeSum;
//! // No receipt, no release.
//! fn uncharged(sum: LatticeSum, noise: &mut conclave_party::noise::Noise) -> conclave_party::release::Release {
//!     conclave_party::release::release(sum, noise)
//! }
//! ```
//! ```compile_fail
//! # use conclave_common::mechanism::LatticeSum;
//! # use conclave_party::{ledger::ChargeReceipt, noise::Noise, release::{Release, release}};
//! // One receipt, one release.
//! fn twice(receipt: ChargeReceipt, a: LatticeSum, b: LatticeSum, noise: &mut Noise) -> (Release, Release) {
//!     (release(receipt, a, noise), release(receipt, b, noise))
//! }
//! ```
//! ```
//! # use conclave_common::mechanism::LatticeSum;
//! # use conclave_party::{ledger::ChargeReceipt, noise::Noise, release::{Release, release}};
//! fn once(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Release {
//!     release(receipt, sum, noise)
//! }
//! ```

use conclave_common::mechanism::LatticeSum;

use crate::ledger::ChargeReceipt;
use crate::noise::Noise;

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

/// Adds discrete Gaussian noise of the *charged* scale to a sum and uses the receipt up
/// (Canonne, Kamath & Steinke 2020; Yıldırım, Algorithm 2, step of party i).
pub fn release(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Release {
    let released = sum.add_noise(noise.draw(receipt.noise_scale()));
    Release { receipt, released }
}
