//! Simulated regressions and their parties' releases, with continuous noise in place of the lattice's.

#![allow(clippy::unwrap_used)]

use std::f64::consts::FRAC_1_SQRT_2;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Poisson, StandardNormal};

use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::noisy_statistics::adequacy::ScoreChecks;
use crate::sampler::noisy_statistics::frame::Frame;
use crate::sampler::noisy_statistics::gaussian::{Fit, GaussianPrior};
use crate::sampler::noisy_statistics::information::{Information, Reach};
use crate::sampler::noisy_statistics::intercept::{Intercept, InterceptLink};
use crate::sampler::noisy_statistics::landscape::Landscape;
use crate::sampler::noisy_statistics::schedule::{Request, Shares};
use crate::sampler::noisy_statistics::search::Search;
use crate::sampler::noisy_statistics::stage::ScoreStage;
use conclave_common::model::ObservedForm;

/// Number of parties, each with its own noise.
const PARTIES: f64 = 3.0;
/// Greatest count of the Poisson problem, and the range of its exposures.
const MOST: f64 = 8.0;
const EXPOSURE: (f64, f64) = (0.5, 2.0);

pub(super) fn normal(rng: &mut ChaCha20Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Returns the mu of a budget (epsilon, 1e-6), by bisection of the Gaussian mechanism's delta.
pub(super) fn mu_of(epsilon: f64) -> f64 {
    let below = |x: f64| 0.5 * libm::erfc(-x * FRAC_1_SQRT_2);
    let delta = |mu: f64| below(-epsilon / mu + 0.5 * mu) - libm::exp(epsilon) * below(-epsilon / mu - 0.5 * mu);
    let (mut low, mut high) = (1e-3, 20.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if delta(middle) < 1e-6 { low = middle } else { high = middle }
    }
    low
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Law {
    Logistic,
    Poisson,
}

/// Records with an intercept and predictors in [-1, 1], and their true coefficients.
pub(super) struct Problem {
    pub(super) law: Law,
    pub(super) x: Vec<Vec<f64>>,
    pub(super) y: Vec<f64>,
    /// Logarithms of the exposures.
    offset: Vec<f64>,
    pub(super) truth: Vec<f64>,
}

/// The result of a search.
pub(super) struct Found {
    pub(super) stage: ScoreStage,
    pub(super) fit: Fit,
    pub(super) adequacy: ScoreChecks,
    pub(super) rounds: usize,
}

/// The reach of a row in a box of ±1.
pub(super) const REACH: Reach<'static> = &|d| d.iter().map(|x| x.abs()).sum();

fn sign(rng: &mut ChaCha20Rng) -> f64 {
    if rng.random::<bool>() { 1.0 } else { -1.0 }
}

pub(super) fn uniform(rng: &mut ChaCha20Rng) -> f64 {
    rng.random_range(-1.0..1.0)
}

/// Returns the simulated setting of this name.
pub(super) fn problem(name: &str, rng: &mut ChaCha20Rng) -> Problem {
    let four = |records: usize, rng: &mut ChaCha20Rng| -> (Vec<Vec<f64>>, Vec<f64>) {
        let row = |rng: &mut ChaCha20Rng| vec![1.0, sign(rng), uniform(rng), (0.5 * normal(rng)).clamp(-1.0, 1.0)];
        ((0..records).map(|_| row(rng)).collect(), vec![-0.3, -0.5, 0.4, 0.6])
    };
    let (x, truth) = match name {
        "3 x 300" => four(900, rng),
        "3 x 1,000" => four(3000, rng),
        "3 x 10,000" => four(30_000, rng),
        "rare 3 %" => {
            let row = |_| vec![1.0, sign(rng), uniform(rng), uniform(rng)];
            ((0..9000).map(row).collect(), vec![-3.8, 0.3, 0.8, -0.5])
        }
        "near-separated" => ((0..9000).map(|_| vec![1.0, uniform(rng), uniform(rng)]).collect(), vec![1.0, 6.0, 0.5]),
        "poisson" => ((0..9000).map(|_| vec![1.0, sign(rng), uniform(rng)]).collect(), vec![-0.2, 0.3, 0.5]),
        _ => {
            let row = |_| {
                let common = normal(rng);
                let one = |rng: &mut ChaCha20Rng| 0.4 * (0.9_f64.sqrt() * common + 0.1_f64.sqrt() * normal(rng));
                std::iter::once(1.0).chain((0..9).map(|_| one(rng).clamp(-1.0, 1.0)).collect::<Vec<_>>()).collect()
            };
            let signs = [1.0, -1.0, 1.0, -1.0, 2.0, -2.0, 1.0, 1.0, -1.0];
            ((0..30_000).map(row).collect(), std::iter::once(-0.3).chain(signs.map(|s| 0.5 * s)).collect::<Vec<f64>>())
        }
    };
    let law = if name == "poisson" { Law::Poisson } else { Law::Logistic };
    let mut problem = Problem { law, offset: vec![0.0; x.len()], y: Vec::new(), truth, x };
    for (row, offset) in problem.x.iter().zip(&mut problem.offset) {
        let eta = dot(row, &problem.truth);
        problem.y.push(match law {
            Law::Logistic => f64::from(u8::from(rng.random::<f64>() < 1.0 / (1.0 + libm::exp(-eta)))),
            Law::Poisson => {
                *offset = rng.random_range(libm::log(EXPOSURE.0)..libm::log(EXPOSURE.1));
                Poisson::new(libm::exp(eta + *offset)).map_or(0.0, |law| law.sample(rng)).min(MOST)
            }
        });
    }
    problem
}

impl Problem {
    pub(super) fn prior(&self) -> GaussianPrior {
        GaussianPrior::independent(vec![0.0; self.truth.len()], vec![0.16; self.truth.len()])
    }

    /// Returns score and expected information at a point.
    fn score(&self, at: &[f64]) -> (Vec<f64>, Matrix) {
        let d = at.len();
        let (mut score, mut information) = (vec![0.0; d], Matrix::zeros(d));
        for ((row, y), offset) in self.x.iter().zip(&self.y).zip(&self.offset) {
            let (mean, weight) = self.mean(dot(row, at) + offset);
            for i in 0..d {
                score[i] += (y - mean) * row[i];
                (0..=i).for_each(|j| information[(i, j)] += weight * row[i] * row[j]);
            }
        }
        let symmetric = Matrix::from_fn(d, |i, j| information[(i.max(j), i.min(j))]);
        (score, symmetric)
    }

    fn mean(&self, eta: f64) -> (f64, f64) {
        match self.law {
            Law::Logistic => {
                let p = 1.0 / (1.0 + libm::exp(-eta));
                (p, p * (1.0 - p))
            }
            Law::Poisson => (libm::exp(eta.min(30.0)), libm::exp(eta.min(30.0))),
        }
    }

    /// Returns mode and covariance without privacy.
    pub(super) fn without_privacy(&self) -> (Vec<f64>, Matrix) {
        let mut at = vec![0.0; self.truth.len()];
        let prior = self.prior();
        loop {
            let (score, information) = self.score(&at);
            let covariance =
                crate::sampler::noisy_statistics::gaussian::factor(&information.plus(&prior.matrix(), 1.0)).inverse();
            let slope: Vec<f64> = score.iter().zip(prior.slope(&at)).map(|(g, p)| g + p).collect();
            let step = covariance.apply(&slope);
            let most = step.iter().fold(0.0, |most: f64, s| most.max(s.abs()));
            at.iter_mut().zip(&step).for_each(|(x, s)| *x += s * (1.0 / most).min(1.0));
            if most < 1e-8 {
                return (at, covariance);
            }
        }
    }

    /// Returns corners of the predictors' box and points on its edges, with the intercept.
    fn corners(&self) -> Vec<Vec<f64>> {
        let p = self.truth.len() - 1;
        let on_edges: &[f64] = if p <= 6 { &[-0.5, 0.0, 0.5] } else { &[0.0] };
        let mut rows = Vec::new();
        for corner in 0..1_usize << p {
            let row: Vec<f64> =
                std::iter::once(1.0).chain((0..p).map(|j| if corner >> j & 1 == 1 { 1.0 } else { -1.0 })).collect();
            for j in (1..=p).filter(|j| row[*j] > 0.0) {
                rows.extend(on_edges.iter().map(|x| {
                    let mut edge = row.clone();
                    edge[j] = *x;
                    edge
                }));
            }
            rows.push(row);
        }
        rows
    }

    /// Returns the public extremes of a record's contribution to the score, and the greatest weight.
    fn extremes(&self, at: &[f64]) -> (Vec<Vec<f64>>, f64) {
        let (mut points, mut most) = (Vec::new(), 0.0_f64);
        for row in self.corners() {
            let eta = dot(&row, at);
            let mut add = |u: f64| points.push(row.iter().map(|x| u * x).collect());
            match self.law {
                Law::Logistic => {
                    let (p, _) = self.mean(eta);
                    add(1.0 - p);
                    add(-p);
                    most = 0.25;
                }
                Law::Poisson => {
                    for exposure in [EXPOSURE.0, EXPOSURE.1] {
                        let rate = exposure * libm::exp(eta);
                        add(MOST - rate);
                        add(-rate);
                        most = most.max(rate);
                    }
                }
            }
        }
        (points, most)
    }

    /// Returns the score with the noise that a share of mu² buys, and that noise's covariance.
    fn release_score(&self, at: &[f64], mu: f64, weight: &Matrix, rng: &mut ChaCha20Rng) -> (Vec<f64>, Matrix) {
        let frame = Frame::shaped(&self.extremes(at).0, weight, true);
        let t = 2.0 * PARTIES.sqrt() / mu;
        let error = frame.inverse.apply(&at.iter().map(|_| t * normal(rng)).collect::<Vec<_>>());
        let score = self.score(at).0.iter().zip(&error).map(|(g, e)| g + e).collect();
        (score, frame.noise(t))
    }

    fn release_information(&self, at: &[f64], mu: f64, rng: &mut ChaCha20Rng) -> Information {
        let sd = self.information_sd(at) / mu;
        Information {
            at: at.to_vec(),
            matrix: with_noise(self.score(at).1, sd, rng),
            sd,
            own_sd: None,
            form: ObservedForm::Canonical,
        }
    }

    /// Runs the whole search under a budget.
    pub(super) fn search(&self, mu: f64, shares: Shares, rng: &mut ChaCha20Rng) -> Found {
        let (d, records, prior) = (self.truth.len(), self.x.len() as f64, self.prior());
        // The start of a job: for counts at most the middle of the declared range.
        let (start, link, weight) = match self.law {
            Law::Logistic => (0.0, InterceptLink::Logit, 0.25),
            Law::Poisson => {
                let middle = libm::log(0.5 * MOST) - 0.5 * libm::log(EXPOSURE.0 * EXPOSURE.1);
                let start = middle.min(0.0);
                (start, InterceptLink::Log { mean: libm::exp(start) }, 1.0)
            }
        };
        let public: Vec<f64> =
            (0..d).map(|j| records * weight * if j == 0 { 1.0 } else { 1.0 / 3.0 } + 0.16).map(|h| 1.0 / h).collect();
        let landscape = Public { problem: self, mu };
        let intercept = Intercept { coordinate: 0, records, link };
        let at: Vec<f64> = (0..d).map(|j| if j == 0 { start } else { 0.0 }).collect();
        let mut search =
            Search::new((shares, 1.0), prior.clone(), at, Some(intercept), records, Matrix::diagonal(&public), &landscape);
        let mut rounds = 0;
        while !search.is_done() {
            rounds += 1;
            match search.request().clone() {
                Request::Stage { at, share, curvature } => {
                    let weight = search.weight().clone();
                    let information = self.release_information(&at, mu * (share * curvature).sqrt(), rng);
                    let (score, score_noise) = self.release_score(&at, mu * (share * (1.0 - curvature)).sqrt(), &weight, rng);
                    search.take_stage(ScoreStage { at, score, score_noise, information }, &landscape);
                }
                Request::Score { at, share } => {
                    let weight = search.weight().clone();
                    let (score, noise) = self.release_score(&at, mu * share.sqrt(), &weight, rng);
                    search.take_score(at, score, noise, &landscape);
                }
                Request::Information { at, share, .. } => {
                    let information = self.release_information(&at, mu * share.sqrt(), rng);
                    search.take_information(information, &landscape);
                }
            }
        }
        let (stage, fit) = search.answer().cloned().unwrap();
        let adequacy = ScoreChecks::of(&stage, &fit, &prior, REACH);
        Found { stage, fit, adequacy, rounds }
    }

    /// Returns the noise sd of an off-diagonal entry of the information, summed over the parties, at a mu of 1.
    fn information_sd(&self, at: &[f64]) -> f64 {
        self.extremes(at).1 * self.truth.len() as f64 * PARTIES.sqrt()
    }
}

/// The public facts of a problem.
struct Public<'a> {
    problem: &'a Problem,
    mu: f64,
}

impl Landscape for Public<'_> {
    fn reach(&self, _at: &[f64], direction: &[f64]) -> f64 {
        REACH(direction)
    }

    fn score_noise(&self, at: &[f64], weight: &Matrix) -> Matrix {
        Frame::shaped(&self.problem.extremes(at).0, weight, true).noise(2.0 * PARTIES.sqrt() / self.mu)
    }

    fn information_sd(&self, at: &[f64]) -> f64 {
        self.problem.information_sd(at) / self.mu
    }
}

/// Adds noise of this sd to the off-diagonal entries and of √2 times that to the diagonal ones.
pub(super) fn with_noise(mut matrix: Matrix, sd: f64, rng: &mut ChaCha20Rng) -> Matrix {
    for i in 0..matrix.order() {
        for j in 0..=i {
            matrix[(i, j)] += sd * normal(rng) * if i == j { std::f64::consts::SQRT_2 } else { 1.0 };
            matrix[(j, i)] = matrix[(i, j)];
        }
    }
    matrix
}
