#![allow(clippy::unwrap_used)]
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::answers::{Answer, AnswerKind, QuadraticFit};
use super::chi_square::ChiSquare;
use super::mapping::mapped;
use super::prior::PriorTerms;
use super::solution::{Defect, Estimate, Solution, solve};
use super::terms::Terms;
use conclave_common::query::Phase;

/// A guided walk of radius 0.44 under noise of sd 1.75 per ratio, as in the penalty algorithm, on a log likelihood known without
/// noise; its fit receives every answer.
struct Walk<'a> {
    log_likelihood: &'a dyn Fn(&[f64]) -> f64,
    at: Vec<f64>,
    signs: Vec<f64>,
    rng: ChaCha20Rng,
    fit: QuadraticFit,
    /// Sums of the walk's places.
    sums: Vec<f64>,
}

const SIGMA: f64 = 1.75;
const RADIUS: f64 = 0.44;

impl<'a> Walk<'a> {
    fn new(log_likelihood: &'a dyn Fn(&[f64]) -> f64, at: Vec<f64>, seed: u64) -> Self {
        let d = at.len();
        let mut fit = QuadraticFit::new(d);
        fit.begin(vec![0.0; d], &vec![1.0; d]);
        Self { log_likelihood, at, signs: vec![1.0; d], rng: ChaCha20Rng::seed_from_u64(seed), fit, sums: vec![0.0; d] }
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.rng)
    }

    fn answer(&mut self, to: &[f64], sigma: f64) -> Answer {
        let ratio = (self.log_likelihood)(to) - (self.log_likelihood)(&self.at) + sigma * self.normal();
        Answer { from: self.at.clone(), to: to.to_vec(), ratio, variance: sigma * sigma }
    }

    /// Adds pairs of answers in both directions along each coordinate, as a search asks for them.
    fn search(&mut self, pairs: usize, delta: f64, sigma: f64) {
        for j in 0..self.at.len() {
            for side in [-delta, delta].repeat(pairs) {
                let mut to = self.at.clone();
                to[j] += side;
                let answer = self.answer(&to, sigma);
                self.fit.search_answered(answer);
            }
        }
    }

    fn walk(&mut self, phase: Phase, rounds: usize) {
        for round in 0..rounds {
            let j = round % self.at.len();
            let mut to = self.at.clone();
            to[j] += self.signs[j] * RADIUS * self.rng.random_range(0.9..1.1);
            let answer = self.answer(&to, SIGMA);
            self.fit.chain_answered(phase, &answer);
            if self.rng.random::<f64>().ln() < answer.ratio - SIGMA * SIGMA / 2.0 {
                self.at = to;
            } else {
                self.signs[j] = -self.signs[j];
            }
            self.sums.iter_mut().zip(&self.at).for_each(|(sum, x)| *sum += x);
        }
    }

    fn solution(&self) -> Solution {
        flat(&self.fit)
    }
}

/// Returns the fit with a flat prior, in the walk's coordinates.
fn flat(fit: &QuadraticFit) -> Solution {
    let d = fit.terms().dimension;
    let prior = PriorTerms { log_density: &|_| 0.0, location: vec![0.0; d], precision: vec![0.0; d] };
    let chosen = fit.chosen().unwrap();
    solve(fit.terms(), &chosen.sums, &prior, AnswerKind::Ratio)
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

/// Returns the error of each coordinate's mean, and the same in the noise's sds.
fn errors(estimate: &Estimate) -> Vec<(f64, f64)> {
    let d = estimate.normal.mean.len();
    let one = |j: usize| {
        let axis: Vec<f64> = (0..d).map(|i| f64::from(u8::from(i == j))).collect();
        let noise = (estimate.noise[(j, j)] + estimate.widening(&axis)).sqrt();
        (estimate.normal.mean[j], estimate.normal.mean[j] / noise)
    };
    (0..d).map(one).collect()
}

#[test]
fn tails_of_chi_square() {
    // Quantiles of Abramowitz & Stegun, table 26.8, and the exact law on both sides of the sum's limit.
    for (value, degrees_of_freedom, tail) in [
        (3.841_459, 1, 0.05),
        (5.991_465, 2, 0.05),
        (16.266_24, 3, 0.001),
        (18.307_04, 10, 0.05),
        (233.994_3, 200, 0.05),
        (1_074.679, 1000, 0.05),
    ] {
        let p = ChiSquare { value, degrees_of_freedom }.p_value();
        assert!((p / tail - 1.0).abs() < 2e-3, "{value} on {degrees_of_freedom}: {p}");
    }
    assert_eq!(ChiSquare { value: 0.0, degrees_of_freedom: 3 }.p_value(), 1.0);
    assert!(ChiSquare { value: 1e6, degrees_of_freedom: 4 }.p_value() < 1e-300);
}

/// Answers without noise recover the quadratic for any choice of places: joint moves, far from the middle.
#[test]
fn a_quadratic_without_noise_is_recovered() {
    let (h, mode) = ([[2.0, 0.6, -0.3], [0.6, 1.5, 0.2], [-0.3, 0.2, 0.8]], [0.7, -1.2, 2.0]);
    let log = |u: &[f64]| {
        let x: Vec<f64> = u.iter().zip(mode).map(|(u, m)| u - m).collect();
        -0.5 * (0..3).map(|i| (0..3).map(|j| x[i] * h[i][j] * x[j]).sum::<f64>()).sum::<f64>()
    };
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut fit = QuadraticFit::new(3);
    fit.begin(vec![0.3, -0.5, 1.0], &[0.5, 2.0, 1.0]);
    for _ in 0..400 {
        let from: Vec<f64> = mode.iter().map(|m| m + rng.random_range(-2.0..2.0)).collect();
        let to: Vec<f64> = from.iter().map(|x| x + rng.random_range(-0.5..0.5)).collect();
        let ratio = log(&to) - log(&from);
        fit.chain_answered(Phase::Sampling, &Answer { from, to, ratio, variance: 1e-12 });
    }
    let chosen = fit.chosen().unwrap();
    let estimate = flat(&fit).estimate.unwrap();
    let mean = chosen.frame.coordinates(&estimate.normal.mean);
    assert!(mean.iter().zip(mode).all(|(a, b)| (a - b).abs() < 1e-6), "{mean:?}");
    for (i, row) in h.iter().enumerate() {
        for (j, expected) in row.iter().enumerate() {
            let unit = chosen.frame.scale[i] * chosen.frame.scale[j];
            assert!((estimate.normal.precision[(i, j)] / unit - expected).abs() < 1e-6);
        }
    }
    assert!(estimate.noise.diagonal_entries().iter().all(|v| *v < 1e-11));
}

/// z for d = 2, correlation -1/2, over fresh walks: 300 walks of 2 coordinates determine the root mean square within 0.03 (1 sd).
/// Fewer rounds do not determine the curvature, and the fit is withheld.
#[test]
fn the_noise_that_is_claimed_is_the_noise_there_is() {
    let log = |u: &[f64]| -(u[0] * u[0] + u[0] * u[1] + u[1] * u[1]) * 2.0 / 3.0;
    for (rounds, least, most) in [(100, 0.0, 0.0), (400, 0.6, 1.0), (2000, 0.98, 1.0)] {
        let (mut z, mut shown) = (Vec::new(), 0.0);
        for seed in 0..300 {
            let mut walk = Walk::new(&log, vec![0.0; 2], 1_000 + seed);
            let (first, second) = (walk.normal(), walk.normal());
            walk.at = vec![first, 0.75_f64.sqrt() * second - 0.5 * first];
            walk.search(6, 2.0, 1.0);
            walk.walk(Phase::Sampling, rounds);
            if let Ok(estimate) = walk.solution().estimate {
                shown += 1.0 / 300.0;
                z.extend(errors(&estimate).into_iter().map(|(_, z)| z));
            }
        }
        println!("T {rounds}: shown {shown:.3}, z {:.3}", rms(&z));
        assert!((least..=most).contains(&shown), "T {rounds}: shown {shown}");
        assert!(rounds < 400 || (0.9..=1.1).contains(&rms(&z)), "T {rounds}: z {}", rms(&z));
    }
}

/// d = 4, 4,000 rounds: the fit's mean is more accurate than the walk's own by the root of two; 60 walks of 4 coordinates
/// determine each root mean square to 5%.
#[test]
fn the_fit_is_sharper_than_the_walk() {
    let log = |u: &[f64]| -0.5 * u.iter().map(|x| x * x).sum::<f64>();
    let (mut fitted, mut walked, mut z) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..60 {
        let mut walk = Walk::new(&log, vec![0.0; 4], 2_000 + seed);
        walk.at = (0..4).map(|_| walk.normal()).collect();
        walk.walk(Phase::Sampling, 4_000);
        walked.extend(walk.sums.iter().map(|sum| sum / 4_000.0));
        if let Ok(estimate) = walk.solution().estimate {
            let errors = errors(&estimate);
            fitted.extend(errors.iter().map(|e| e.0));
            z.extend(errors.iter().map(|e| e.1));
        }
    }
    println!("fit {:.3} (of {}), walk {:.3}, z {:.3}", rms(&fitted), fitted.len() / 4, rms(&walked), rms(&z));
    assert!(fitted.len() >= 4 * 57);
    assert!((0.11..=0.15).contains(&rms(&fitted)) && (0.16..=0.22).contains(&rms(&walked)), "{} {}", rms(&fitted), rms(&walked));
    assert!((0.9..=1.1).contains(&rms(&z)), "{}", rms(&z));
}

/// Log likelihoods that are not quadratic: skewed like e^x, and two hills that mirror each other.
#[test]
fn what_is_no_quadratic_is_withheld() {
    let skewed = |u: &[f64]| -(u[0].clamp(-9.0, 9.0).exp() - u[0] - 1.0) - 0.5 * u[1] * u[1];
    let hills = |u: &[f64]| {
        let hill = |at: f64| (-0.5 * (u[0] - at) * (u[0] - at)).exp();
        (hill(-2.0) + hill(2.0)).ln() - 0.5 * u[1] * u[1]
    };
    let withheld = |log: &dyn Fn(&[f64]) -> f64, rounds: usize| {
        let one = |seed: &u64| {
            let mut walk = Walk::new(log, vec![0.5, 0.0], 3_000 + seed);
            walk.search(6, 2.0, 1.0);
            walk.walk(Phase::Sampling, rounds);
            matches!(walk.solution().estimate, Err(Defect::Skewed | Defect::Bent(_) | Defect::Scattered(_)))
        };
        (0..40).filter(one).count()
    };
    let counts = (withheld(&skewed, 2_000), withheld(&hills, 4_000));
    println!("withheld of 40: skewed {}, two hills {}", counts.0, counts.1);
    assert!(counts.0 >= 36 && counts.1 >= 36, "{counts:?}");
}

/// A search and a warm-up far from the chains' end are left out; answers near it count exactly once.
#[test]
fn only_answers_near_the_posterior_count() {
    let log = |u: &[f64]| -0.5 * u.iter().map(|x| (x - 30.0) * (x - 30.0)).sum::<f64>();
    let mut walk = Walk::new(&log, vec![0.0; 2], 7);
    walk.search(3, 2.0, 1.0);
    walk.walk(Phase::Warmup, 400);
    walk.at = vec![30.0; 2];
    walk.walk(Phase::Warmup, 400);
    walk.walk(Phase::Sampling, 1_000);
    walk.search(3, 2.0, 1.0);
    walk.search(1, 40.0, 1.0);
    let chosen = walk.fit.chosen().unwrap();
    assert_eq!(walk.fit.answers(), 12 + 400 + 400 + 1_000 + 12 + 4);
    assert_eq!(chosen.sums.answers, 1_000 + 12);
    let mean = chosen.frame.coordinates(&walk.solution().estimate.unwrap().normal.mean);
    assert!(mean.iter().all(|x| (x - 30.0).abs() < 1.0), "{mean:?}");

    let mut near = Walk::new(&log, vec![30.0; 2], 8);
    near.fit.begin(vec![29.0; 2], &[1.0, 1.0]);
    near.search(3, 2.0, 1.0);
    near.walk(Phase::Warmup, 500);
    near.walk(Phase::Sampling, 500);
    assert_eq!(near.fit.chosen().unwrap().sums.answers, 12 + 500 + 500);
}

/// Returns a fit of one coordinate, known to `sd`, around `mode`.
fn known(mode: f64, sd: f64, prior: &PriorTerms<'_>) -> Estimate {
    let mut fit = QuadraticFit::new(1);
    fit.begin(vec![0.0], &[1.0]);
    for step in 0..200 {
        let (from, to) = (mode + 0.02 * f64::from(step) - 2.0, mode - 0.013 * f64::from(step) + 1.5);
        let log = |x: f64| -0.5 * (x - mode) * (x - mode) / (sd * sd);
        let answer = Answer { from: vec![from], to: vec![to], ratio: log(to) - log(from), variance: 1e-9 };
        fit.chain_answered(Phase::Sampling, &answer);
    }
    solve(fit.terms(), &fit.chosen().unwrap().sums, prior, AnswerKind::Ratio).estimate.unwrap()
}

/// Multiplies a normal prior in exactly; compares a gamma prior of a parameter walked in its logarithm with the posterior summed
/// on a grid.
#[test]
fn the_prior_is_multiplied_in() {
    let normal = |x: &[f64]| -0.5 * (x[0] - 2.0) * (x[0] - 2.0) / 0.09;
    let estimate = known(1.0, 0.4, &PriorTerms { log_density: &normal, location: vec![2.0], precision: vec![1.0 / 0.09] });
    let precision = 1.0 / 0.16 + 1.0 / 0.09;
    let mean = (1.0 / 0.16 + 2.0 / 0.09) / precision;
    assert!((estimate.normal.mean[0] - mean).abs() < 1e-6 && (estimate.normal.precision[(0, 0)] - precision).abs() < 1e-5);

    // gamma(3, 2) of e^u, with the Jacobian.
    let gamma = |x: &[f64]| 3.0 * x[0] - 2.0 * x[0].exp();
    let estimate = known(-0.5, 0.4, &PriorTerms { log_density: &gamma, location: vec![0.4], precision: vec![3.0] });
    let grid: Vec<(f64, f64)> = (-4_000..4_000)
        .map(|i| {
            let u = f64::from(i) / 1_000.0;
            (u, (-0.5 * (u + 0.5) * (u + 0.5) / 0.16 + gamma(&[u])).exp())
        })
        .collect();
    let total: f64 = grid.iter().map(|(_, w)| w).sum();
    let mean: f64 = grid.iter().map(|(u, w)| u * w).sum::<f64>() / total;
    let sd = (grid.iter().map(|(u, w)| (u - mean) * (u - mean) * w).sum::<f64>() / total).sqrt();
    let (fitted, spread) = (estimate.normal.mean[0], estimate.normal.covariance[(0, 0)].sqrt());
    assert!((fitted - mean).abs() < 0.02 * sd && (spread / sd - 1.0).abs() < 0.02, "{fitted} {mean}, {spread} {sd}");

    // On the parameter's own scale: the lognormal's moments.
    let [figures] = mapped(&estimate, &|x| vec![x[0].exp()])[..] else { panic!("one") };
    let (m, v) = (fitted, spread * spread);
    let (expected, variance) = ((m + v / 2.0).exp(), (v.exp() - 1.0) * (2.0 * m + v).exp());
    assert!((figures.mean / expected - 1.0).abs() < 1e-3 && (figures.sd / variance.sqrt() - 1.0).abs() < 1e-3, "{figures:?}");
    // A linear map is exact, and its noise's share is the coordinate's.
    let [linear] = mapped(&estimate, &|x| vec![3.0 - 2.0 * x[0]])[..] else { panic!("one") };
    assert!((linear.mean - (3.0 - 2.0 * m)).abs() < 1e-9 && (linear.sd - 2.0 * spread).abs() < 1e-6);
}

#[test]
fn few_answers_and_unmoved_coordinates_are_named() {
    let log = |u: &[f64]| -0.5 * u.iter().map(|x| x * x).sum::<f64>();
    let mut walk = Walk::new(&log, vec![0.0; 2], 9);
    assert!(walk.fit.chosen().is_none());
    walk.walk(Phase::Sampling, 10);
    let needed = 20 * Terms { dimension: 2 }.count() as u64;
    assert_eq!(walk.solution().estimate.err(), Some(Defect::TooFewAnswers { needed }));
    let mut fit = QuadraticFit::new(2);
    fit.begin(vec![0.0; 2], &[1.0, 1.0]);
    for step in 0..300 {
        let from = vec![0.01 * f64::from(step), 0.0];
        let answer = Answer { to: vec![from[0] + 0.4, 0.0], from, ratio: 0.1, variance: 1.0 };
        fit.chain_answered(Phase::Sampling, &answer);
    }
    assert_eq!(flat(&fit).estimate.err(), Some(Defect::Undetermined));
}
