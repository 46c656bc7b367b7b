//! The owner's exact sum of a query, as it entered its own release before the noise.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::error::OwnAnswerError;
use crate::sampler::target::Target;
use conclave_common::query::{Query, QueryTerms};
use conclave_privacy::accounting::{Cover, Honest, Priced, PrivacyUnit};
use conclave_privacy::mechanism::{DiscreteGaussian, NoiseSample, NoiseScale};
use conclave_privacy::pass::{Blocks, Threads};

/// Computes the sum of a query of a round over the owner's records. Its own noise and mask are not needed.
///
/// Nothing leaves the privacy crate without noise, so the sum is released with a known sample, which is then subtracted. The caller
/// holds the records.
///
/// # Errors
/// A query that is not the job's; records that yield no sum.
pub(super) fn exact_sum(
    target: &Target,
    unit: PrivacyUnit,
    records: &dyn Blocks,
    (round, query): (u64, &Query),
) -> Result<Vec<i64>, OwnAnswerError> {
    let model = target.model.as_ref();
    let beyond = || OwnAnswerError::Beyond { round };
    let terms = QueryTerms::new(model, &target.spec, unit, query.kind, (&query.from, &query.to))?;
    if !terms.sum_fits(records.units()) {
        return Err(beyond());
    }
    let summand = terms.summand(&query.from, &query.to, terms.sensitivity())?;
    let sums = Threads::one().sums(records, &[summand.hold()], &|_, pass| summand.give(model, pass))?;
    let least = NoiseScale::from_units(NoiseScale::MIN_UNITS).map_err(|_| beyond())?;
    let known = || ChaCha20Rng::seed_from_u64(round);
    let mut rng = known();
    let sample = NoiseSample::gathered(query.length(), || NoiseSample::of_scale(least, &mut rng));
    let priced = Priced::new(query.kind, terms.sensitivity(), query.noise, Honest::ALONE);
    let cover = Cover { priced, sampled: None, unit };
    let released = sums.into_iter().next().and_then(|sum| sum.release(&cover, sample)).ok_or_else(beyond)?;
    let (law, mut rng) = (DiscreteGaussian::new(least), known());
    Ok(released.as_slice().iter().map(|noised| noised - law.sample(&mut rng)).collect())
}
