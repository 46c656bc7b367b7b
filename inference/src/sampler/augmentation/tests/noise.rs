#![allow(clippy::unwrap_used)]
use super::*;

/// Noise within this range has all of the mass, to all digits.
const WIDTH: i64 = 400;

/// Returns the normalised masses on -[`WIDTH`]..=[`WIDTH`] of the noise with this log mass.
fn masses(log: impl Fn(f64) -> f64) -> Vec<f64> {
    let raw: Vec<f64> = (-WIDTH..=WIDTH).map(|z| log(z as f64).exp()).collect();
    let total: f64 = raw.iter().sum();
    raw.iter().map(|p| p / total).collect()
}

fn gaussian(scale: u64) -> Vec<f64> {
    masses(|z| -z * z / (2.0 * (scale * scale) as f64))
}

fn laplace(scale: u64) -> Vec<f64> {
    masses(|z| -z.abs() / scale as f64)
}

fn step(delta: i64) -> [Move; 1] {
    [Move { component: 0, delta }]
}

fn check_ratios(noise: impl NoiseLaw, masses: &[f64]) {
    let of = |z: i64| masses[(WIDTH + z) as usize].ln();
    for gap in -9..=9_i64 {
        let residuals = Residuals::new(&[gap], &[noise]).unwrap();
        for delta in [-3, -1, 1, 2, 5] {
            let ratio = residuals.log_ratio(&step(delta));
            assert!((ratio - (of(gap - delta) - of(gap))).abs() < 1e-11, "{gap} {delta}");
            let mut moved = residuals.clone();
            moved.apply(&step(delta));
            assert_eq!(moved.log_ratio(&step(-delta)), -ratio, "odd, bit for bit except for the sign of 0");
        }
        assert_eq!(residuals.log_ratio(&[]), 0.0, "if no component changes, the ratio is 1");
    }
}

#[test]
fn log_ratios_are_those_of_the_masses() {
    for scale in [1, 2, 4] {
        check_ratios(GaussianNoise { scale, draws: 1 }, &gaussian(scale));
    }
    check_ratios(LaplaceNoise { scale: 3 }, &laplace(3));
}

#[test]
fn components_add_up_each_by_its_own_law() {
    let noise = [2, 3, 2].map(|scale| GaussianNoise { scale, draws: 1 });
    let residuals = Residuals::new(&[5, -7, 1], &noise).unwrap();
    let one = |component: u32, delta| residuals.log_ratio(&[Move { component, delta }]);
    let moves = [Move { component: 2, delta: -4 }, Move { component: 0, delta: 1 }, Move { component: 1, delta: 2 }];
    assert!((residuals.log_ratio(&moves) - (one(0, 1) + one(1, 2) + one(2, -4))).abs() < 1e-14);
    assert!(Residuals::new(&[1, 2], &noise).is_none() && Residuals::<GaussianNoise>::new(&[], &[]).is_none());
}

/// Returns the acceptance rate at stationarity of a change by `delta`, averaged over the release: `E min(1, P(z - d) / P(z))`. It
/// must equal 1 − TV between the noise and the noise shifted by d (a Metropolis step between two points of equal prior weight).
fn acceptance(noise: impl NoiseLaw, masses: &[f64], delta: i64) -> f64 {
    let inside = -WIDTH + delta..=WIDTH - delta;
    let of = |z: i64| masses[(WIDTH + z) as usize];
    let accepted = |gap| of(gap) * Residuals::new(&[gap], &[noise]).unwrap().log_ratio(&step(delta)).exp().min(1.0);
    let mean = inside.clone().map(accepted).sum::<f64>();
    let total_variation: f64 = 0.5 * inside.map(|z| (of(z) - of(z - delta)).abs()).sum::<f64>();
    assert!((mean - (1.0 - total_variation)).abs() < 1e-12, "{delta}: {mean} {total_variation}");
    mean
}

#[test]
fn mean_acceptance_is_one_less_the_total_variation() {
    for delta in [1, 2, 3] {
        for scale in [1, 2, 4] {
            acceptance(GaussianNoise { scale, draws: 1 }, &gaussian(scale), delta);
        }
        acceptance(LaplaceNoise { scale: 3 }, &laplace(3), delta);
    }
    // On such a coarse lattice the `2 Phi(-mu / 2)` of continuous noise is slightly too high.
    let continuous = |mu: f64| libm::erfc(mu / (2.0 * 2.0_f64.sqrt()));
    for (delta, on_lattice, bound) in [(1, 0.8005, 0.8026), (3, 0.4485, 0.4533)] {
        assert!((acceptance(GaussianNoise { scale: 2, draws: 1 }, &gaussian(2), delta) - on_lattice).abs() < 5e-5);
        assert!((continuous(delta as f64 / 2.0) - bound).abs() < 5e-5);
    }
}
