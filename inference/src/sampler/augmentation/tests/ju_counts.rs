//! The model, records and noisy counts of the log-linear experiment of Ju et al. (2022), section 4.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use serde_json::Value;

use super::fixtures::seeded;
use crate::sampler::augmentation::chain::{Chain, Start, Sweep};
use crate::sampler::augmentation::law::RecordLaw;
use crate::sampler::augmentation::noise::{LaplaceNoise, NoiseLaw, Residuals};
use crate::sampler::augmentation::records::Count;
use crate::sampler::augmentation::table_law::TableLaw;
use crate::sampler::augmentation::variates::{dirichlet, normal, uniform};
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;

const RECORDS: usize = 100;
pub(super) const CLASSES: usize = 5;
const LEVELS: [usize; 5] = [3; 5];
/// Lattice units of a count.
pub(super) const UNIT: i64 = 1 << 20;

/// Returns the classes' probabilities, then those of each feature's levels given each class.
pub(super) fn truth() -> Vec<f64> {
    let vectors: Value = serde_json::from_str(include_str!("../../../../../tests/vectors/ju_log_linear.json")).unwrap();
    let numbers = |value: &Value| value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<f64>>();
    let tables = vectors["conditionals"].as_array().unwrap().iter().flat_map(|table| table.as_array().unwrap());
    let truth: Vec<f64> = numbers(&vectors["class_probabilities"]).into_iter().chain(tables.flat_map(numbers)).collect();
    assert_eq!(truth.len(), CLASSES + CLASSES * 15);
    truth
}

pub(super) fn target() -> Target {
    let levels = |n: usize| (0..n).map(|i| format!("\"{i}\"")).collect::<Vec<_>>().join(", ");
    let features: String = (1..=5).map(|k| format!("x{k} = {{ levels = [{}] }}\n", levels(3))).collect();
    let text = format!(
        "name = \"ju\"\nalgorithm = \"augmentation\"\nparties = [\"a\"]\n[model]\nkind = \"naive_bayes\"\noutcome = \"class\"\n\
         predictors = [\"x1\", \"x2\", \"x3\", \"x4\", \"x5\"]\n[columns]\nclass = {{ levels = [{}] }}\n{features}[privacy]\n\
         epsilon = 1.0\ndelta = 1e-6\n",
        levels(5)
    );
    Target::new(&JobSpec::parse(&text).unwrap())
}

/// The noise on each count.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mechanism {
    /// Laplace of scale 10 / epsilon, as in the paper.
    Laplace { epsilon: f64 },
    /// Normal noise of this sd in counts; the counts have sensitivity √10 to the replacement of a record.
    Gaussian { sd: f64 },
}

impl Mechanism {
    /// Draws noise in lattice units: continuous, and rounded to a lattice that is a million times as fine.
    fn draw(self, rng: &mut ChaCha20Rng) -> i64 {
        let counts = match self {
            Self::Laplace { epsilon } => {
                let magnitude = -libm::log(uniform(rng)) * 10.0 / epsilon;
                if rng.random::<bool>() { magnitude } else { -magnitude }
            }
            Self::Gaussian { sd } => sd * normal(rng),
        };
        (counts * UNIT as f64).round() as i64
    }
}

fn law() -> TableLaw {
    TableLaw::new(CLASSES, &LEVELS, vec![2.0; truth().len()], UNIT, false)
}

/// Draws the noise on each count, in lattice units.
pub(super) fn noise_on_counts(mechanism: Mechanism, rng: &mut ChaCha20Rng) -> Vec<i64> {
    (0..CLASSES * 15).map(|_| mechanism.draw(rng)).collect()
}

/// Draws the records of one data set.
pub(super) fn records(rng: &mut ChaCha20Rng) -> Vec<[u32; 5]> {
    let law = law();
    let mut record = [0; 5];
    let prepared = law.prepare(&truth(), &0.0);
    let draw = |_| {
        law.draw(&prepared, rng, &mut record);
        record
    };
    (0..RECORDS).map(draw).collect()
}

/// Builds a chain on the counts of these records with this noise, which starts at a draw of the prior.
pub(super) fn chain_on<N: NoiseLaw>(
    target: &Arc<Target>,
    noise: N,
    mut released: Vec<i64>,
    records: &[[u32; 5]],
    (seed, rng): (u64, &mut ChaCha20Rng),
) -> Chain<TableLaw, N> {
    let (law, mut moves) = (law(), Vec::new());
    records.iter().for_each(|record| law.statistic(record, &mut moves));
    moves.iter().for_each(|step| released[step.component as usize] += step.delta);
    let mut theta = vec![2.0; truth().len()];
    dirichlet(&mut theta[..CLASSES], rng);
    theta[CLASSES..].chunks_mut(3).for_each(|given| dirichlet(given, rng));
    let residuals = Residuals::new(&released, &vec![noise; released.len()]).unwrap();
    let start = Start { id: seed as u32, theta, steps: Arc::from([]) };
    Chain::new(Arc::new(law), Arc::clone(target), start, vec![(residuals, Count::Known(RECORDS))])
}

/// Returns a chain on a fresh Laplace release of these records.
pub(super) fn laplace_chain(target: &Arc<Target>, epsilon: f64, records: &[[u32; 5]], seed: u64) -> impl Sweep {
    let (mechanism, mut rng) = (Mechanism::Laplace { epsilon }, seeded(seed));
    let noise = LaplaceNoise { scale: (10.0 / epsilon * UNIT as f64).round() as u64 };
    let released = noise_on_counts(mechanism, &mut rng);
    chain_on(target, noise, released, records, (seed, &mut rng))
}
