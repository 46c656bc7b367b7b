//! Turns an un-noised sum and charged noise into integers that the ledger will record.
//!
//! This is the only path from a [`LatticeSum`] to a recordable value, and only a recorded value can be sent ([`super::Recorded`]). Noise
//! requires the receipt of a durable charge, which it takes by value, and so precedes the sum: after the records have been read, only an
//! addition remains.
//!
//! ```compile_fail
//! # use conclave_privacy::pass::LatticeSum;
//! # use conclave_vault::{ledger::{Release, sample_noise}, noise::Noise};
//! // No receipt, no release.
//! fn uncharged(sum: LatticeSum, noise: &mut Noise) -> Option<Release> {
//!     sample_noise(noise).release(sum)
//! }
//! ```
//! ```compile_fail
//! # use conclave_privacy::pass::LatticeSum;
//! # use conclave_vault::{ledger::{ChargeReceipt, Release, sample_noise}, noise::Noise};
//! // One receipt, one sample of noise, one release.
//! fn twice(receipt: ChargeReceipt, a: LatticeSum, b: LatticeSum, noise: &mut Noise) -> (Option<Release>, Option<Release>) {
//!     let charged = sample_noise(receipt, noise);
//!     (charged.release(a), charged.release(b))
//! }
//! ```
//! ```
//! # use conclave_privacy::pass::LatticeSum;
//! # use conclave_vault::{ledger::{ChargeReceipt, Release, sample_noise}, noise::Noise};
//! fn once(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Option<Release> {
//!     sample_noise(receipt, noise).release(sum)
//! }
//! ```

use conclave_privacy::mechanism::{Components, LogWeights, NoiseSample};
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::secagg::cover;
use zeroize::Zeroizing;

use super::query::Digest;
use super::receipt::{ChargeReceipt, ChargeRow};
use crate::noise::{KeyedGenerator, Noise};

/// A receipt and the noise that it paid for.
#[must_use = "a charge that is never answered is spent for nothing"]
pub struct ChargedNoise {
    receipt: ChargeReceipt,
    sample: NoiseSample,
}

/// Samples discrete Gaussian noise of the *charged* scale (Canonne, Kamath & Steinke 2020), one integer per charged component, before any
/// record is read.
///
/// Theorem, noise scale: the noise of a release has exactly the scale that its charge was priced at, since both come from the same receipt.
/// Proof: docs/explanation/proofs.md, sections 2 and 3.
pub fn sample_noise(receipt: ChargeReceipt, noise: &mut Noise) -> ChargedNoise {
    let priced = &receipt.cover().priced;
    let sample = noise.sample(priced.noise(), priced.components() as usize);
    ChargedNoise { receipt, sample }
}

impl ChargedNoise {
    /// Adds the noise to a sum and consumes the receipt (Yıldırım, Algorithm 2, step of party i). Returns `None`, and nothing is released,
    /// unless the charge covers the sum ([`LatticeSum::is_covered`](conclave_privacy::pass::LatticeSum::is_covered)), or if it counts on the noise of others,
    /// so that only a masked release may leave.
    pub fn release(self, sum: LatticeSum) -> Option<Release> {
        let Self { receipt, sample } = self;
        let released = (!receipt.is_masked()).then(|| sum.release(receipt.cover(), sample)).flatten()?;
        Some(Release { receipt, released })
    }

    /// Adds the noise and then the masks, for a charge that counts on the noise of others. The noised sum itself is not kept. Returns `None`,
    /// and nothing is released, unless the charge covers the sum and counts on the noise of others, and there is one mask for each integer.
    pub fn release_masked(self, sum: LatticeSum, masks: &[u64]) -> Option<Release> {
        let Self { receipt, sample } = self;
        let noised = Zeroizing::new(receipt.is_masked().then(|| sum.release(receipt.cover(), sample)).flatten()?);
        let masked: Vec<i64> = noised.as_slice().iter().zip(masks).map(|(x, mask)| cover(*x, *mask)).collect();
        let released = Components::new(&masked).filter(|_| noised.as_slice().len() == masks.len())?;
        Some(Release { receipt, released })
    }
}

/// A receipt for a choice with the generator for it.
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::LogWeights;
/// # use conclave_vault::{ledger::{Release, prepare_choice}, noise::Noise};
/// // No receipt, no choice.
/// fn uncharged(weights: LogWeights, noise: &mut Noise) -> Option<Release> {
///     prepare_choice(noise).unwrap().release(weights)
/// }
/// ```
/// ```compile_fail
/// # use conclave_privacy::mechanism::LogWeights;
/// # use conclave_vault::{ledger::{ChargeReceipt, Release, prepare_choice}, noise::Noise};
/// // One receipt, one choice.
/// fn twice(receipt: ChargeReceipt, a: LogWeights, b: LogWeights, noise: &mut Noise) -> (Option<Release>, Option<Release>) {
///     let charged = prepare_choice(receipt, noise).unwrap();
///     (charged.release(a), charged.release(b))
/// }
/// ```
/// ```
/// # use conclave_privacy::mechanism::LogWeights;
/// # use conclave_vault::{ledger::{ChargeReceipt, Release, prepare_choice}, noise::Noise};
/// fn once(receipt: ChargeReceipt, weights: LogWeights, noise: &mut Noise) -> Option<Release> {
///     prepare_choice(receipt, noise)?.release(weights)
/// }
/// ```
#[must_use = "a charge that is never answered is spent for nothing"]
pub struct ChargedChoice {
    receipt: ChargeReceipt,
    generator: KeyedGenerator,
}

/// Keys the generator of a choice, before any record is read; `None` where the receipt is not for one.
pub fn prepare_choice(receipt: ChargeReceipt, noise: &mut Noise) -> Option<ChargedChoice> {
    receipt.cover().priced.kind().candidates().is_some().then(|| ChargedChoice { generator: noise.generator(), receipt })
}

impl ChargedChoice {
    /// Chooses, and consumes the receipt. Returns `None`, and nothing is released, unless the charge covers the weights
    /// ([`LogWeights::release`]), or if it counts on the noise of others: a choice is opened by itself.
    pub fn release(mut self, weights: LogWeights) -> Option<Release> {
        if self.receipt.is_masked() {
            return None;
        }
        let number = self.generator.draw(|generator| weights.release(self.receipt.cover(), generator))?;
        Some(Release { receipt: self.receipt, released: Components::One(i64::from(number)) })
    }
}

/// Noised integers, or a choice, that are charged and not yet recorded.
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::Components;
/// # use conclave_vault::ledger::{ChargeReceipt, Release};
/// // A release can't be built without the noise.
/// fn raw(receipt: ChargeReceipt) -> Release {
///     Release { receipt, released: Components::One(0) }
/// }
/// ```
#[must_use = "a release that is not recorded is spent for nothing"]
pub struct Release {
    receipt: ChargeReceipt,
    released: Components,
}

impl Release {
    /// Returns the query's digest, the charge's row and ledger opening, and the integers, for the ledger to record.
    pub(super) fn into_parts(self) -> (Digest, (ChargeRow, u64), Components) {
        (self.receipt.digest(), self.receipt.row(), self.released)
    }
}

/// Samples the noise and releases at once, as if the sum were over a sample where the charge is for one.
#[cfg(any(test, feature = "test-util"))]
pub fn release(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Release {
    let sampled = receipt.cover().sampled;
    sample_noise(receipt, noise).release(sum.sampled_for_test(sampled)).expect("a sum that was charged")
}
