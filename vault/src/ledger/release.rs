//! The release: an un-noised sum and paid noise go in, integers that the ledger will record come out.
//!
//! This is the only way from a [`LatticeSum`] to something that can be recorded, and what is recorded is the only thing
//! that can be sent ([`super::Recorded`]). Noise is had for the receipt of a durable charge, which it takes by value, and so
//! before there is a sum: what remains to be done once the records have been read is one addition.
//!
//! ```compile_fail
//! # use conclave_privacy::mechanism::LatticeSum;
//! # use conclave_vault::{ledger::{Release, sample_noise}, noise::Noise};
//! // No receipt, no release.
//! fn uncharged(sum: LatticeSum, noise: &mut Noise) -> Release {
//!     sample_noise(noise).release(sum)
//! }
//! ```
//! ```compile_fail
//! # use conclave_privacy::mechanism::LatticeSum;
//! # use conclave_vault::{ledger::{ChargeReceipt, Release, sample_noise}, noise::Noise};
//! // One receipt, one sample of noise, one release.
//! fn twice(receipt: ChargeReceipt, a: LatticeSum, b: LatticeSum, noise: &mut Noise) -> (Release, Release) {
//!     let charged = sample_noise(receipt, noise);
//!     (charged.release(a), charged.release(b))
//! }
//! ```
//! ```
//! # use conclave_privacy::mechanism::LatticeSum;
//! # use conclave_vault::{ledger::{ChargeReceipt, Release, sample_noise}, noise::Noise};
//! fn once(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Release {
//!     sample_noise(receipt, noise).release(sum)
//! }
//! ```

use conclave_privacy::mechanism::{Components, LatticeSum, LogWeights, NoiseSample};
use conclave_privacy::secagg::cover;
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

use super::receipt::{ChargeReceipt, ChargeRow};
use crate::noise::Noise;

/// A receipt with the noise that it paid for.
#[must_use = "a charge that is never answered is spent for nothing"]
pub struct ChargedNoise {
    receipt: ChargeReceipt,
    sample: NoiseSample,
}

/// Samples discrete Gaussian noise of the *charged* scale (Canonne, Kamath & Steinke 2020), as many integers as were
/// charged, before any record is read.
pub fn sample_noise(receipt: ChargeReceipt, noise: &mut Noise) -> ChargedNoise {
    let sample = noise.sample(receipt.noise_scale(), receipt.components());
    ChargedNoise { receipt, sample }
}

impl ChargedNoise {
    /// Adds the noise to a sum and uses the receipt up (Yıldırım, Algorithm 2, step of party i).
    ///
    /// # Panics
    /// When the sum has another number of components than were charged, the charge is for a choice, or it counts on the noise of others, so that nothing may leave
    /// but under a mask: nothing is released then.
    pub fn release(self, sum: LatticeSum) -> Release {
        assert!(self.receipt.candidates().is_none(), "what was charged for a choice is no sum's");
        assert!(!self.receipt.is_masked(), "what was charged for a sum of several parties leaves under a mask alone");
        Release { receipt: self.receipt, released: sum.add_noise(self.sample) }
    }

    /// The same under a mask: what others' noise protects. The noised sum itself is kept nowhere.
    ///
    /// # Panics
    /// As [`ChargedNoise::release`]; where the charge does not count on the noise of others, or there is not one mask for each integer.
    pub fn release_masked(self, sum: LatticeSum, masks: &[u64]) -> Release {
        assert!(self.receipt.is_masked(), "what is opened by itself has no mask");
        let noised = Zeroizing::new(sum.add_noise(self.sample));
        assert_eq!(noised.as_slice().len(), masks.len(), "every integer has a mask of its own");
        let masked: Vec<i64> = noised.as_slice().iter().zip(masks).map(|(x, mask)| cover(*x, *mask)).collect();
        // As many as there were, one at least.
        Release { receipt: self.receipt, released: Components::new(&masked).unwrap_or(Components::One(0)) }
    }
}

/// A receipt for a choice with the generator that it is made with.
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
    generator: ChaCha20Rng,
}

/// Keys the generator of a choice, before any record is read; `None` where the receipt is not for one.
pub fn prepare_choice(receipt: ChargeReceipt, noise: &mut Noise) -> Option<ChargedChoice> {
    receipt.candidates().is_some().then(|| ChargedChoice { generator: noise.generator(), receipt })
}

impl ChargedChoice {
    /// Chooses, and uses the receipt up.
    ///
    /// # Panics
    /// When there are not as many weights as candidates were charged, or the charge counts on the noise of others: nothing is released then.
    pub fn release(mut self, weights: LogWeights) -> Release {
        assert!(!self.receipt.is_masked(), "a choice is opened by itself");
        let candidates = u32::try_from(weights.candidates()).ok();
        assert_eq!(candidates, self.receipt.candidates(), "as many weights as candidates that were charged");
        let number = weights.choose(&mut self.generator);
        Release { receipt: self.receipt, released: Components::One(i64::from(number)) }
    }
}

/// Noised integers, or a choice, that have been paid for and are not yet recorded.
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
    /// The charge's row and ledger opening, and the integers: for the ledger to record.
    pub(super) fn into_parts(self) -> ((ChargeRow, u64), Components) {
        (self.receipt.row(), self.released)
    }
}

/// Samples the noise and releases at once.
#[cfg(any(test, feature = "test-util"))]
pub fn release(receipt: ChargeReceipt, sum: LatticeSum, noise: &mut Noise) -> Release {
    sample_noise(receipt, noise).release(sum)
}
