//! Noise of the other honest parties of a masked job, which an adversary can't subtract from the opened sum.

use conclave_privacy::mechanism::{DiscreteGaussian, NoiseScale};
use rand::SeedableRng;
use rand::rngs::SysRng;
use rand_chacha::ChaCha20Rng;

use conclave_vault::answer::sandbox::NoiseOfOthers;

/// Returns the noise of this number of parties at this scale, drawn afresh for every opened integer.
///
/// # Errors
/// Returns a sentence if the operating system provides no entropy.
pub(super) fn honest(parties: u32, scale: NoiseScale) -> Result<NoiseOfOthers, String> {
    let mut generator = ChaCha20Rng::try_from_rng(&mut SysRng).map_err(|e| e.to_string())?;
    let sampler = DiscreteGaussian::new(scale);
    let mut one = move || (0..parties).fold(0_i64, |sum, _| sum.wrapping_add(sampler.sample(&mut generator)));
    Ok(Box::new(move |integers| (0..integers).map(|_| one()).collect()))
}
