//! Simulated linear regressions, released as moments and, if worthwhile, a score of residuals.
#![allow(clippy::unwrap_used)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StudentT};

use super::problem::{mu_of, normal, uniform, with_noise};
use super::simulations::rms;
use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::noisy_statistics::gaussian::{Fit, GaussianPrior};
use crate::sampler::noisy_statistics::linear::SecondStage;
use crate::sampler::noisy_statistics::linear_releases::{Linear, ResidualStage, Sigma};
use crate::sampler::noisy_statistics::moments::{Moments, Records};
use crate::sampler::noisy_statistics::moments_noise::{MomentsNoise, Tie};
use crate::sampler::noisy_statistics::residual_tails::ResidualSquares;
use crate::sampler::noisy_statistics::residual_tails::{FAR, NEAR, ResidualTails, TAIL_SHARE, Tail};
use crate::sampler::noisy_statistics::walk::{Walk, WalkSettings};

const PARTIES: f64 = 3.0;
const TRUTH: [f64; 4] = [0.1, -0.2, 0.3, 0.1];
const SIGMA: f64 = 0.12;
/// Bound on a predictor row's squared length.
const NORM_SQUARED: f64 = 4.0;
const FIRST: f64 = 0.25;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    MomentsOnly,
    SecondStage,
}

#[derive(Default)]
pub(super) struct LinearTally {
    pub(super) errors: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) z_sigma: Vec<f64>,
    pub(super) z_truth: Vec<f64>,
    pub(super) sigma_noise: Vec<f64>,
    pub(super) z_walk: Vec<f64>,
    pub(super) walk_errors: Vec<f64>,
    pub(super) second: usize,
    pub(super) runs: usize,
}

impl LinearTally {
    pub(super) fn line(&self) -> String {
        let cover = |z: &[f64]| z.iter().filter(|z| z.abs() < 1.645).count() as f64 / z.len().max(1) as f64;
        format!(
            "rms {:.2} z {:.2} c90 {:.2} sigma z {:.2} noise {:.2} | truth z {:.2} c90 {:.2} | walk rms {:.2} truth z {:.2} c90 {:.2} | second stage {:.2}",
            rms(&self.errors),
            rms(&self.z),
            cover(&self.z),
            rms(&self.z_sigma),
            rms(&self.sigma_noise),
            rms(&self.z_truth),
            cover(&self.z_truth),
            rms(&self.walk_errors),
            rms(&self.z_walk),
            cover(&self.z_walk),
            self.second as f64 / self.runs as f64
        )
    }
}

struct Sample {
    rows: Vec<[f64; 5]>,
    sums: Matrix,
}

fn records(count: usize, t: bool, rng: &mut ChaCha20Rng) -> Sample {
    let law = StudentT::new(3.0).ok();
    let mut sums = Matrix::zeros(5);
    let rows: Vec<[f64; 5]> = (0..count)
        .map(|_| {
            let x = [1.0, if rng.random::<bool>() { 1.0 } else { -1.0 }, uniform(rng), uniform(rng)];
            let error = if t { law.map_or(0.0, |law| law.sample(rng)) } else { normal(rng) };
            [x[0], x[1], x[2], x[3], (dot(&x, &TRUTH) + SIGMA * error).clamp(-1.0, 1.0)]
        })
        .collect();
    rows.iter().for_each(|row| {
        for i in 0..5 {
            (0..5).for_each(|j| sums[(i, j)] += row[i] * row[j]);
        }
    });
    Sample { rows, sums }
}

fn prior() -> GaussianPrior {
    GaussianPrior::independent(vec![0.0; 5], vec![0.16, 0.16, 0.16, 0.16, 0.0])
}

fn release(data: &Sample, mu: f64, rng: &mut ChaCha20Rng) -> Moments {
    let sd = (NORM_SQUARED + 1.0) / mu * PARTIES.sqrt();
    let mut matrix = with_noise(data.sums.clone(), sd, rng);
    matrix[(0, 0)] = data.sums[(0, 0)];
    let noise = MomentsNoise::new(5, sd, &[Tie::Known { at: (0, 0) }]);
    Moments { matrix, noise, records: Records::Exact(data.rows.len() as f64) }
}

/// Returns least squares with the prior, and sigma: values and sds.
fn without_privacy(data: &Sample) -> Fit {
    let noise = MomentsNoise::new(5, 1e-9, &[]);
    let moments = Moments { matrix: data.sums.clone(), noise, records: Records::Exact(data.rows.len() as f64) };
    Linear { moments: &moments, residual: None, squares: None, sigma: Sigma::Unknown }.fit(&prior())
}

/// Returns the mean of the squared residuals at a point, clipped, as it is released with this share of the budget.
fn tail(data: &Sample, at: &[f64], clip: f64, mu: f64, rng: &mut ChaCha20Rng) -> Tail {
    let count = data.rows.len() as f64;
    let square = |row: &[f64; 5]| {
        let residual = row[4] - dot(&row[..4], at);
        (residual * residual).min(clip * clip)
    };
    let sd = clip * clip / mu * PARTIES.sqrt() / count;
    Tail { clip, mean: data.rows.iter().map(square).sum::<f64>() / count + sd * normal(rng), sd }
}

/// Returns the score that follows two numbers about the tails.
fn residual_stage(
    data: &Sample,
    (linear, fit): (Linear<'_>, &Fit),
    mu: f64,
    rng: &mut ChaCha20Rng,
) -> (ResidualStage, ResidualSquares) {
    let (at, near) = (&fit.mean[..4], NEAR * linear.upper_sigma(fit));
    let mut ask = |clip: f64| tail(data, at, clip, mu * TAIL_SHARE.sqrt(), rng);
    let tails = ResidualTails::new(ask(near), ask(FAR * near)).unwrap();
    let at_one = 2.0 * NORM_SQUARED.sqrt() / (mu * (1.0 - FIRST - 2.0 * TAIL_SHARE).sqrt()) * PARTIES.sqrt();
    let clip = linear.clip_by(&tails, at_one);
    let sd = clip * at_one;
    let mut score = vec![0.0; 4];
    for row in &data.rows {
        let residual = (row[4] - dot(&row[..4], at)).clamp(-clip, clip);
        (0..4).for_each(|j| score[j] += residual * row[j]);
    }
    score.iter_mut().for_each(|g| *g += sd * normal(rng));
    let score_noise = Matrix::identity(4).scaled(sd * sd);
    (ResidualStage { at: at.to_vec(), score, score_noise, excess: tails.excess(clip) }, tails.squares(at))
}

pub(super) fn simulate(count: usize, t: bool, epsilon: f64, runs: usize, rule: Rule, walk_draws: usize) -> LinearTally {
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let mut tally = LinearTally { runs, ..LinearTally::default() };
    let mu = mu_of(epsilon);
    for run in 0..runs {
        let data = records(count, t, &mut rng);
        let own = without_privacy(&data);
        let mut moments = release(&data, mu * if rule == Rule::MomentsOnly { 1.0 } else { FIRST.sqrt() }, &mut rng);
        let mut residual = None;
        if rule == Rule::SecondStage {
            let first = Linear { moments: &moments, residual: None, squares: None, sigma: Sigma::Unknown };
            let fit = first.fit(&prior());
            match first.second_stage(&fit, NORM_SQUARED, FIRST) {
                SecondStage::Score { .. } => residual = Some(residual_stage(&data, (first, &fit), mu, &mut rng)),
                SecondStage::Moments => {
                    let again = release(&data, mu * (1.0 - FIRST).sqrt(), &mut rng);
                    moments = Moments::pooled(&[moments.clone(), again]).unwrap_or(moments);
                }
            }
        }
        tally.second += usize::from(residual.is_some());
        let linear = Linear {
            moments: &moments,
            residual: residual.as_ref().map(|(stage, _)| stage),
            squares: residual.as_ref().map(|(_, squares)| squares),
            sigma: Sigma::Unknown,
        };
        let fit = linear.fit(&prior());
        let (sd, noise, own_sd) = (fit.sd(), fit.noise_sd(), own.sd());
        for j in 0..4 {
            tally.errors.push((fit.mean[j] - own.mean[j]) / own_sd[j]);
            tally.z.push((fit.mean[j] - own.mean[j]) / noise[j]);
            tally.z_truth.push((fit.mean[j] - TRUTH[j]) / sd[j]);
        }
        // On the scale of sigma, like the reference table.
        let (sigma, exact) = (libm::exp(fit.mean[4]), libm::exp(own.mean[4]));
        tally.sigma_noise.push(noise[4] / own_sd[4]);
        tally.z_sigma.push((sigma - exact) / (sigma * noise[4]));
        if walk_draws > 0 {
            walk(linear, &fit, run as u64, walk_draws, &own, &mut tally);
        }
    }
    tally
}

/// Draws with a half-normal prior of sigma.
fn walk(linear: Linear<'_>, fit: &Fit, seed: u64, draws: usize, own: &Fit, tally: &mut LinearTally) {
    let likelihood = linear.likelihood();
    let density = |u: &[f64]| {
        let squares: f64 = u[..4].iter().map(|x| x * x).sum();
        likelihood.log(u) - 0.08 * squares + u[4] - 0.5 * libm::exp(2.0 * u[4])
    };
    let settings = WalkSettings { chains: 2, seed, first_stream: 0, warmup: 300 };
    let Some(mut walk) = Walk::new(settings, &fit.mean, &fit.covariance, &fit.mean, &density) else { return };
    let seen: Vec<Vec<f64>> = (0..draws).flat_map(|_| walk.draw(&density)).collect();
    for j in 0..4 {
        let mean = seen.iter().map(|u| u[j]).sum::<f64>() / seen.len() as f64;
        let variance = seen.iter().map(|u| (u[j] - mean) * (u[j] - mean)).sum::<f64>() / seen.len() as f64;
        tally.z_walk.push((mean - TRUTH[j]) / variance.sqrt());
        tally.walk_errors.push((mean - own.mean[j]) / own.sd()[j]);
    }
}
