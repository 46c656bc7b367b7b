//! A logistic regression after the linear experiment of Ju et al. (2022), section 5: 100 records, 2 covariates of known law, clamped
//! at ± 1, Laplace noise on each of 8 products, with proposals from the model alone (Algorithm 1) or local ones beside them
//! (Algorithm 2).

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::fixtures::seeded;
use crate::sampler::augmentation::chain::{Chain, Start, Sweep};
use crate::sampler::augmentation::law::RecordLaw;
use crate::sampler::augmentation::logistic_law::LogisticLaw;
use crate::sampler::augmentation::noise::{LaplaceNoise, Residuals};
use crate::sampler::augmentation::records::Count;
use crate::sampler::augmentation::variates::{normal, uniform};
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_privacy::pass::StatisticGrid;

const RECORDS: usize = 100;
/// L1 sensitivity of the eight products, at most: the greatest distance, 7.0834, is between (1/6, 1/6, 1) and (-1, 1, 0).
const SENSITIVITY: f64 = 7.1;
/// Intercept and slopes, per unit of the scaled covariates.
const TRUTH: [f64; 3] = [0.5, 2.0, -1.0];

pub(super) fn target() -> Target {
    let text = "name = \"ju\"\nalgorithm = \"augmentation\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
                predictors = [\"u\", \"v\"]\n[columns]\ny = { binary = true }\nu = { min = -1, max = 1 }\nv = { min = -1, max = 1 }\n\
                [prior]\ndefault = \"normal(0, 2)\"\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
    Target::new(&JobSpec::parse(text).unwrap())
}

fn grids(target: &Target) -> Vec<StatisticGrid> {
    StatisticGrid::of_ranges(target.model.statistic().unwrap().ranges()).unwrap()
}

fn law(target: &Target, local: bool) -> LogisticLaw {
    let law = LogisticLaw::new(3, true, &grids(target)).unwrap();
    let law = law.with_covariates(vec![0.1, -0.1], Matrix::identity(2).scaled(0.16));
    if local { law } else { law.without_local_proposals() }
}

/// Draws the records of one data set: two covariates, and the outcome less 1/2.
pub(super) fn records(target: &Target, rng: &mut ChaCha20Rng) -> Vec<[f64; 3]> {
    let law = law(target, true);
    let (prepared, mut record) = (law.prepare(&TRUTH, &law.nuisance()), [0.0; 3]);
    let draw = |_| {
        law.draw(&prepared, rng, &mut record);
        record
    };
    (0..RECORDS).map(draw).collect()
}

/// Returns a chain on a fresh Laplace release of these records, which starts at a draw of the prior.
pub(super) fn laplace_chain(target: &Arc<Target>, epsilon: f64, records: &[[f64; 3]], seed: u64, local: bool) -> impl Sweep {
    let (law, grids, mut rng) = (law(target, local), grids(target), seeded(seed));
    let scale = |grid: &StatisticGrid| SENSITIVITY / epsilon / grid.step;
    let mut laplace = |grid: &StatisticGrid| {
        let magnitude = -libm::log(uniform(&mut rng)) * scale(grid);
        if rng.random::<bool>() { magnitude as i64 } else { -magnitude as i64 }
    };
    let mut released: Vec<i64> = grids.iter().map(&mut laplace).collect();
    let mut moves = Vec::new();
    records.iter().for_each(|record| law.statistic(record, &mut moves));
    moves.iter().for_each(|step| released[step.component as usize] += step.delta);
    let noise: Vec<LaplaceNoise> = grids.iter().map(|grid| LaplaceNoise { scale: scale(grid) as u64 }).collect();
    let theta = (0..3).map(|_| 2.0 * normal(&mut rng)).collect();
    let start = Start { id: seed as u32, theta, steps: Arc::from([1.0; 3]) };
    let residuals = Residuals::new(&released, &noise).unwrap();
    Chain::new(Arc::new(law), Arc::clone(target), start, vec![(residuals, Count::Known(RECORDS))])
}
