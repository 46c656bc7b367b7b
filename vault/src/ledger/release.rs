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
//! fn uncharged(sum: LatticeSum, noise: &mut Noise) -> Release {
//!     sample_noise(noise).release(sum)
//! }
//! ```
//! ```compile_fail
//! # use conclave_privacy::pass::LatticeSum;
//! # use conclave_vault::{ledger::{ChargeReceipt, Release, sample_noise}, noise::Noise};
//! // One receipt, one sample of noise, one release.
//! fn twice(receipt: ChargeReceipt, a: LatticeSum, b: LatticeSum, noise: &mut Noise) -> (Release, Release) {
//!     let charged = sample_noise(receipt, noise);
//!     (charged.release(a), charged.release(b))
//! }
//! ```
//! ```
//! # use conclave_privacy::pass::LatticeSum;
//! # use conclave_vault::{ledger::{ChargeReceipt, Release, sample_noise}, noise::Noise};
//! fn once(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Release {
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

/// Why nothing is released of a sum that its charge does not cover.
const UNCOVERED: &str = "one unit of privacy can move this sum further than was charged";

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
    let sample = noise.sample(receipt.noise_scale(), receipt.components());
    ChargedNoise { receipt, sample }
}

impl ChargedNoise {
    /// Returns true if the charge pays for this sum; see [`ChargeReceipt::covers`].
    pub fn covers(&self, sum: &LatticeSum) -> bool {
        self.receipt.covers(sum)
    }

    /// Adds the noise to a sum and consumes the receipt (Yıldırım, Algorithm 2, step of party i).
    ///
    /// # Panics
    /// When one unit can move the sum further than was charged, the sum has another number of components than were charged, the charge is for a choice, or it counts on the noise of others, so
    /// that only a masked release may leave: nothing is released then.
    pub fn release(self, sum: LatticeSum) -> Release {
        assert!(self.receipt.candidates().is_none(), "what was charged for a choice is no sum's");
        assert!(!self.receipt.is_masked(), "what was charged for a sum of several parties leaves under a mask alone");
        assert!(self.receipt.covers(&sum), "{UNCOVERED}");
        Release { receipt: self.receipt, released: sum.add_noise(self.sample) }
    }

    /// Adds the noise and then the masks, for a charge that counts on the noise of others. The noised sum itself is not kept.
    ///
    /// # Panics
    /// As [`ChargedNoise::release`]; where the charge does not count on the noise of others, or there is not one mask for each integer.
    pub fn release_masked(self, sum: LatticeSum, masks: &[u64]) -> Release {
        assert!(self.receipt.is_masked(), "what is opened by itself has no mask");
        assert!(self.receipt.covers(&sum), "{UNCOVERED}");
        let noised = Zeroizing::new(sum.add_noise(self.sample));
        assert_eq!(noised.as_slice().len(), masks.len(), "every integer has a mask of its own");
        let masked: Vec<i64> = noised.as_slice().iter().zip(masks).map(|(x, mask)| cover(*x, *mask)).collect();
        // The same number, at least one.
        Release { receipt: self.receipt, released: Components::new(&masked).unwrap_or(Components::One(0)) }
    }
}

/// A receipt for a choice with the generator for it.
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::LogWeights;
/// # use conclave_vault::{ledger::{Release, prepare_choice}, noise::Noise};
/// // No receipt, no choice.
/// fn uncharged(weights: LogWeights, noise: &mut Noise) -> Release {
///     prepare_choice(noise).unwrap().release(weights)
/// }
/// ```
/// ```compile_fail
/// # use conclave_privacy::mechanism::LogWeights;
/// # use conclave_vault::{ledger::{ChargeReceipt, Release, prepare_choice}, noise::Noise};
/// // One receipt, one choice.
/// fn twice(receipt: ChargeReceipt, a: LogWeights, b: LogWeights, noise: &mut Noise) -> (Release, Release) {
///     let charged = prepare_choice(receipt, noise).unwrap();
///     (charged.release(a), charged.release(b))
/// }
/// ```
/// ```
/// # use conclave_privacy::mechanism::LogWeights;
/// # use conclave_vault::{ledger::{ChargeReceipt, Release, prepare_choice}, noise::Noise};
/// fn once(receipt: ChargeReceipt, weights: LogWeights, noise: &mut Noise) -> Option<Release> {
///     Some(prepare_choice(receipt, noise)?.release(weights))
/// }
/// ```
#[must_use = "a charge that is never answered is spent for nothing"]
pub struct ChargedChoice {
    receipt: ChargeReceipt,
    generator: KeyedGenerator,
}

/// Keys the generator of a choice, before any record is read; `None` where the receipt is not for one.
pub fn prepare_choice(receipt: ChargeReceipt, noise: &mut Noise) -> Option<ChargedChoice> {
    receipt.candidates().is_some().then(|| ChargedChoice { generator: noise.generator(), receipt })
}

impl ChargedChoice {
    /// Returns true if the charge pays for these weights; see [`ChargeReceipt::covers_choice`].
    pub fn covers(&self, weights: &LogWeights) -> bool {
        self.receipt.covers_choice(weights)
    }

    /// Chooses, and consumes the receipt.
    ///
    /// # Panics
    /// When the number of weights is not that of the charged candidates, the charge does not cover them
    /// ([`ChargeReceipt::covers_choice`]) or counts on the noise of others: nothing is released then.
    pub fn release(mut self, weights: LogWeights) -> Release {
        assert!(!self.receipt.is_masked(), "a choice is opened by itself");
        let candidates = u32::try_from(weights.candidates()).ok();
        assert_eq!(candidates, self.receipt.candidates(), "as many weights as candidates that were charged");
        assert!(self.receipt.covers_choice(&weights), "{UNCOVERED}");
        let number = self.generator.draw(|generator| weights.choose(generator));
        Release { receipt: self.receipt, released: Components::One(i64::from(number)) }
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
    let sampled = receipt.sampled();
    sample_noise(receipt, noise).release(sum.sampled_for_test(sampled))
}
