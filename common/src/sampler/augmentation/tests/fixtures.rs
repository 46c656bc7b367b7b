//! Jobs, made-up releases, and chains on them.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::job::JobSpec;
use crate::mechanism::{DiscreteGaussian, NoiseScale};
use crate::sampler::PartyMetadata;
use crate::sampler::augmentation::chain::Sweep;
use crate::sampler::augmentation::ensemble::{PartyRelease, chains};
use crate::sampler::statistic::ReleasedStatistic;
use crate::sampler::target::Target;

/// A job of this algorithm on `parties` parties; the other texts are lines of their tables.
pub(super) fn job(parties: usize, model: &str, columns: &str, prior: &str, sampler: &str, epsilon: f64) -> JobSpec {
    let parties: Vec<String> = (0..parties).map(|i| format!("\"p{i}\"")).collect();
    let text = format!(
        "name = \"j\"\nalgorithm = \"augmentation\"\nparties = [{}]\n[model]\n{model}\n[columns]\n{columns}\n[prior]\n{prior}\n\
         [sampler]\n{sampler}\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n",
        parties.join(", ")
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// The job with noise of this many lattice units instead of its own.
pub(super) fn with_noise(spec: JobSpec, units: u64) -> JobSpec {
    let mut spec = spec;
    spec.privacy.noise = NoiseScale::from_units(units).unwrap();
    spec
}

/// The job's chains on releases of these numbers, lattice units, at parties of so many records.
pub(super) fn chains_on(spec: &JobSpec, releases: &[(Vec<i64>, usize)]) -> Vec<Box<dyn Sweep>> {
    let target = Arc::new(Target::new(spec));
    let counts: Vec<u64> = releases.iter().map(|(_, records)| *records as u64).collect();
    let mut statistic = ReleasedStatistic::new(&target, &PartyMetadata::of_rows(&counts)).unwrap();
    let components = statistic.components();
    let total = |j: usize| releases.iter().map(|(answers, _)| i128::from(answers[j])).sum();
    statistic.learn(&(0..components).map(total).collect::<Vec<i128>>(), spec.privacy.noise);
    let releases: Vec<PartyRelease> =
        releases.iter().map(|(answers, records)| PartyRelease { answers: answers.clone(), records: *records }).collect();
    chains(&target, &statistic, &releases).unwrap()
}

/// These sums with the job's noise on each.
pub(super) fn noised(sums: &[i64], spec: &JobSpec, rng: &mut ChaCha20Rng) -> Vec<i64> {
    let noise = DiscreteGaussian::new(spec.privacy.noise);
    sums.iter().map(|sum| sum + noise.sample(rng)).collect()
}

pub(super) fn seeded(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// The value below which this share of the sorted values lies.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (at - at.floor()) * (sorted[high] - sorted[low])
}
