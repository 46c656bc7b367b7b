//! Jobs, simulated releases, and chains on them.

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

/// Returns a job of this algorithm on `parties` parties; the other texts are lines of their tables.
pub(super) fn job(parties: usize, model: &str, columns: &str, prior: &str, sampler: &str, epsilon: f64) -> JobSpec {
    let parties: Vec<String> = (0..parties).map(|i| format!("\"p{i}\"")).collect();
    let text = format!(
        "name = \"j\"\nalgorithm = \"augmentation\"\nparties = [{}]\n[model]\n{model}\n[columns]\n{columns}\n[prior]\n{prior}\n\
         [sampler]\n{sampler}\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n",
        parties.join(", ")
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// Returns the noise of the job's one release.
pub(super) fn noise_of(spec: &JobSpec) -> NoiseScale {
    let (target, parties) = (Target::new(spec), PartyMetadata::of_rows(&vec![0; spec.parties.len()]));
    Release::new(&target, &parties).unwrap().noise(&target, &parties).unwrap()
}

/// Returns the job's chains on releases of these numbers, in lattice units, at parties with these numbers of records; `None` if
/// the number is not public.
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

/// Adds noise to each of these sums.
pub(super) fn noised(sums: &[i64], noise: NoiseScale, rng: &mut ChaCha20Rng) -> Vec<i64> {
    let noise = DiscreteGaussian::new(noise);
    sums.iter().map(|sum| sum + noise.sample(rng)).collect()
}

pub(super) fn seeded(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Returns the quantile of the sorted values at this share.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (at - at.floor()) * (sorted[high] - sorted[low])
}

/// Returns the number of replicates of a table: `CONCLAVE_JU_REPLICATES` if set (`bench/ju_table.py`), else `usual`.
pub(super) fn replicates(usual: u64) -> u64 {
    std::env::var("CONCLAVE_JU_REPLICATES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
