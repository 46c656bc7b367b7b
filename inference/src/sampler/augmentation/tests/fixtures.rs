//! Jobs, made-up releases, and chains on them.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::sampler::augmentation::chain::Sweep;
use crate::sampler::augmentation::ensemble::chains;
use crate::sampler::augmentation::release::{PartyRelease, Release};
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_privacy::mechanism::{DiscreteGaussian, NoiseScale};

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

/// The noise of the job's one release.
pub(super) fn noise_of(spec: &JobSpec) -> NoiseScale {
    let (target, parties) = (Target::new(spec), PartyMetadata::of_rows(&vec![0; spec.parties.len()]));
    Release::new(&target, &parties).unwrap().noise(&target, &parties).unwrap()
}

/// The job's chains on releases of these numbers, lattice units, at parties of so many records, or of a number that is not
/// public.
pub(super) fn chains_on(spec: &JobSpec, noise: NoiseScale, releases: &[(Vec<i64>, Option<usize>)]) -> Vec<Box<dyn Sweep>> {
    let target = Arc::new(Target::new(spec));
    let counts: Vec<u64> = releases.iter().map(|(_, records)| records.unwrap_or(0) as u64).collect();
    let mut release = Release::new(&target, &PartyMetadata::of_rows(&counts)).unwrap();
    let total = |j: usize| releases.iter().map(|(answers, _)| i128::from(answers[j])).sum();
    release.learn(&(0..releases[0].0.len()).map(total).collect::<Vec<i128>>(), noise);
    let parties: Vec<PartyRelease> =
        releases.iter().map(|(answers, records)| PartyRelease { answers: answers.clone(), records: *records }).collect();
    chains(&target, &release, noise, &parties).unwrap()
}

/// These sums with noise on each.
pub(super) fn noised(sums: &[i64], noise: NoiseScale, rng: &mut ChaCha20Rng) -> Vec<i64> {
    let noise = DiscreteGaussian::new(noise);
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

/// Replicates of a table, where `CONCLAVE_JU_REPLICATES` does not say another number (`bench/ju_table.py`).
pub(super) fn replicates(usual: u64) -> u64 {
    std::env::var("CONCLAVE_JU_REPLICATES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
