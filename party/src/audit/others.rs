//! The other honest parties of a masked job, as far as an adversary can't take them off what is opened: the noise that they add.

use conclave_privacy::mechanism::{DiscreteGaussian, NoiseScale};
use rand::SeedableRng;
use rand::rngs::SysRng;
use rand_chacha::ChaCha20Rng;

use conclave_vault::answer::sandbox::NoiseOfOthers;

/// Of so many parties, each with noise of this scale, made afresh for every integer that is opened.
///
/// # Errors
/// A sentence: the operating system gives no entropy.
pub(super) fn honest(parties: u32, scale: NoiseScale) -> Result<NoiseOfOthers, String> {
    let mut generator = ChaCha20Rng::try_from_rng(&mut SysRng).map_err(|e| e.to_string())?;
    let sampler = DiscreteGaussian::new(scale);
    let mut one = move || (0..parties).fold(0_i64, |sum, _| sum.wrapping_add(sampler.sample(&mut generator)));
    Ok(Box::new(move |integers| (0..integers).map(|_| one()).collect()))
}
