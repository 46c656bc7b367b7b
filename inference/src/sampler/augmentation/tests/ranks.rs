//! Simulation-based calibration of a regression on one covariate, whose mean and variance are drawn from their prior: chi² of the
//! ranks as in [`super::calibration`].

#![allow(clippy::unwrap_used)]

use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::fixtures::{chains_on, noise_of, noised, seeded};
use crate::sampler::augmentation::covariate_law::inverse_wishart;
use crate::sampler::augmentation::noise::Move;
use crate::sampler::augmentation::variates::normal;
use crate::sampler::matrix::Matrix;
use conclave_common::job::JobSpec;

/// Number of sweeps before the first draw, and between draws.
const WARMUP: usize = 600;
const THIN: usize = 20;
/// The .999 quantile of chi² with 19 degrees of freedom.
const MOST: f64 = 43.8;

pub(super) struct Ranks {
    pub(super) records: usize,
    pub(super) seed: u64,
    /// Components of the release.
    pub(super) components: usize,
}

impl Ranks {
    /// Asserts that the rank of every parameter is uniform among draws. `prior` draws the parameters, `outcome` an outcome given them
    /// and the covariate, and `statistic` pushes the components of a record.
    pub(super) fn check(
        &self,
        spec: &JobSpec,
        prior: impl Fn(&mut ChaCha20Rng) -> Vec<f64> + Sync,
        outcome: impl Fn(&[f64], f64, &mut ChaCha20Rng) -> f64 + Sync,
        statistic: impl Fn(&[f64], &mut Vec<Move>) + Sync,
    ) {
        let noise = noise_of(spec);
        let rank = |replicate: u64| -> Vec<usize> {
            let mut rng = seeded(self.seed * 1_000 + replicate);
            let variance = inverse_wishart(&Matrix::from_fn(1, |_, _| 1.0 / 3.0), 3.0, &mut rng).unwrap()[(0, 0)];
            let mean = (variance / 0.1).sqrt() * normal(&mut rng);
            let theta = prior(&mut rng);
            let (mut sums, mut moves) = (vec![0; self.components], Vec::new());
            for _ in 0..self.records {
                let x = mean + variance.sqrt() * normal(&mut rng);
                statistic(&[x, outcome(&theta, x, &mut rng)], &mut moves);
            }
            moves.iter().for_each(|step| sums[step.component as usize] += step.delta);
            let mut spec = spec.clone();
            spec.sampler.seed = replicate;
            let mut chain = chains_on(&spec, noise, &[(noised(&sums, noise, &mut rng), Some(self.records))]).remove(0);
            (0..WARMUP).for_each(|_| drop(chain.sweep()));
            let mut ranks = vec![0; theta.len()];
            for _ in 0..99 {
                (1..THIN).for_each(|_| drop(chain.sweep()));
                let drawn = chain.sweep().theta;
                ranks.iter_mut().zip(drawn.iter().zip(&theta)).for_each(|(rank, (x, truth))| *rank += usize::from(x < truth));
            }
            ranks
        };
        let ranks: Vec<Vec<usize>> = (0..200_u64).into_par_iter().map(rank).collect();
        for (parameter, name) in spec.model.parameter_names().iter().enumerate() {
            let mut cells = [0.0; 20];
            ranks.iter().for_each(|rank| cells[rank[parameter] / 5] += 1.0);
            let chi: f64 = cells.iter().map(|seen: &f64| (seen - 10.0) * (seen - 10.0) / 10.0).sum();
            println!("{name}: chi² {chi:.1}, {cells:?}");
            assert!(chi < MOST, "{name}: {chi}");
        }
    }
}
