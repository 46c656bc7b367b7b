#![allow(clippy::unwrap_used)]
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Exp1};

use super::*;

/// Times with their events.
struct Records(Vec<(f64, f64)>);

impl Records {
    /// Draws times of a Weibull law with shape 1.4 and scale 1, censored at times uniform between 0 and `longest`.
    fn drawn(count: usize, longest: f64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let mut one = || {
            let exponential: f64 = Exp1.sample(&mut rng);
            let (event, last) = (libm::pow(exponential, 1.0 / 1.4), longest * rng.random::<f64>());
            (event.min(last), f64::from(u8::from(event <= last)))
        };
        Self((0..count).map(|_| one()).collect())
    }

    fn log_likelihood(&self, at: &[f64]) -> f64 {
        let kappa = libm::exp(at[0]);
        let of_one = |(time, event): &(f64, f64)| {
            let u = kappa * (libm::log(*time) - at[1]);
            event * (at[0] + u) - libm::exp(u)
        };
        self.0.iter().map(of_one).sum()
    }

    /// Returns the score and the observed information.
    fn slopes(&self, at: &[f64]) -> ([f64; 2], Matrix) {
        let kappa = libm::exp(at[0]);
        let (mut events, mut of_events, mut sums) = (0.0, 0.0, [0.0; 3]);
        for (time, event) in &self.0 {
            let u = kappa * (libm::log(*time) - at[1]);
            events += event;
            of_events += event * u;
            (0..3).for_each(|j| sums[j as usize] += u.powi(j) * libm::exp(u));
        }
        let score = [events + of_events - sums[1], kappa * (sums[0] - events)];
        let mixed = -kappa * (sums[1] + sums[0] - events);
        let entries = [sums[2] + sums[1] - of_events, mixed, kappa * kappa * sums[0]];
        (score, Matrix::from_fn(2, |i, j| entries[i + j]))
    }

    /// Returns the mode of the likelihood, by Newton's method.
    fn mode(&self) -> Vec<f64> {
        let mut at = vec![0.0, 0.0];
        for _ in 0..50 {
            let (score, information) = self.slopes(&at);
            let step = information.cholesky().unwrap().solve(&score);
            at.iter_mut().zip(step).for_each(|(x, s)| *x += s.clamp(-0.5, 0.5));
        }
        at
    }
}

/// Returns steps in 16 directions, each as many posterior sds long.
fn around(information: &Matrix, sds: f64) -> Vec<Vec<f64>> {
    let factor = information.cholesky().unwrap();
    let turn = |k: u32| std::f64::consts::PI * f64::from(k) / 8.0;
    (0..16).map(|k| factor.solve_transposed(&[sds * libm::cos(turn(k)), sds * libm::sin(turn(k))])).collect()
}

/// Returns the largest error of the log likelihood by its shape, and by a quadratic, up to three sds from the mode.
fn errors(records: &Records) -> (f64, f64) {
    let mode = records.mode();
    let (_, information) = records.slopes(&mode);
    let shape = TimesShape::of(&mode, &information).unwrap();
    let (mut of_shape, mut of_quadratic) = (0.0_f64, 0.0_f64);
    for (sds, step) in
        [0.5, 1.0, 2.0, 3.0].into_iter().flat_map(|sds| around(&information, sds).into_iter().map(move |s| (sds, s)))
    {
        let to: Vec<f64> = mode.iter().zip(&step).map(|(m, s)| m + s).collect();
        let (exact, quadratic) = (records.log_likelihood(&mode) - records.log_likelihood(&to), 0.5 * sds * sds);
        of_shape = of_shape.max((quadratic * shape.fall(&step) - exact).abs());
        of_quadratic = of_quadratic.max((quadratic - exact).abs());
    }
    (of_shape, of_quadratic)
}

/// A difference of 0.05 in the log likelihood changes a density by 5 %.
#[test]
fn the_shape_is_that_of_the_likelihood() {
    for (longest, most) in [(1e9, 0.05), (2.0, 0.05), (0.7, 0.1)] {
        let (of_shape, of_quadratic) = errors(&Records::drawn(600, longest));
        assert!(of_shape < most && of_quadratic > 0.3, "{longest}: {of_shape} {of_quadratic}");
    }
}

/// The second derivative at the mode is the information: for every short step, the fall is the quadratic's.
#[test]
fn short_steps_fall_as_the_information_says() {
    let information = Matrix::from_fn(2, |i, j| [900.0, 480.0, 605.0][i + j]);
    let mode = [0.3, -0.8];
    let shape = TimesShape::of(&mode, &information).unwrap();
    let events = information[(1, 1)] / libm::exp(0.6);
    for step in around(&information, 1e-3) {
        assert!((shape.fall(&step) - 1.0).abs() < 1e-3, "{step:?} {}", shape.fall(&step));
        assert!((events * shape.squared_length(step[0], step[1]) * 1e6 - 1.0).abs() < 1e-9);
    }
    assert_eq!(shape.fall(&[0.0, 0.0]), 1.0);
}

/// Noise may release any information, and a prior may reach any theta.
#[test]
fn every_fall_is_positive_and_finite() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let far = [-1e300, -700.0, -30.0, -1.0, -1e-9, 0.0, 1e-9, 1.0, 30.0, 700.0, 1e300];
    let mut found = 0;
    for _ in 0..400 {
        let mut noise = || 200.0 * (rng.random::<f64>() - 0.3);
        let entries = [noise(), noise(), noise()];
        let Some(shape) = TimesShape::of(&[rng.random_range(-3.0..3.0), 0.0], &Matrix::from_fn(2, |i, j| entries[i + j])) else {
            assert!(entries[2] <= 0.0, "{entries:?}");
            continue;
        };
        found += 1;
        for step in far.iter().flat_map(|a| far.iter().map(|b| [*a, *b])) {
            let fall = shape.fall(&step);
            assert!(fall > 0.0 && fall.is_finite(), "{shape:?} {step:?} {fall}");
        }
    }
    assert!(found > 200, "{found}");
    for bad in [f64::NAN, f64::INFINITY, -1e300] {
        assert_eq!(TimesShape::of(&[0.0, 0.0], &Matrix::from_fn(2, |_, _| bad)), None);
    }
    assert_eq!(TimesShape::of(&[800.0, 0.0], &Matrix::identity(2)), None);
}
