#![allow(clippy::unwrap_used)]
use super::*;

/// Masses of the noise on -width..=width, normalised.
fn masses(noise: Noise, width: i64) -> Vec<f64> {
    let log = |z: f64| match noise {
        Noise::DiscreteGaussian { scale } => -z * z / (2.0 * (scale * scale) as f64),
        Noise::DiscreteLaplace { scale } => -z.abs() / scale as f64,
    };
    let raw: Vec<f64> = (-width..=width).map(|z| log(z as f64).exp()).collect();
    let total: f64 = raw.iter().sum();
    raw.iter().map(|p| p / total).collect()
}

/// The masses of noises up to this far out sum to 1 to all digits.
const WIDTH: i64 = 400;

fn laws() -> Vec<Noise> {
    let gaussian = [1, 2, 4].map(|scale| Noise::DiscreteGaussian { scale });
    gaussian.into_iter().chain([Noise::DiscreteLaplace { scale: 3 }]).collect()
}

#[test]
fn log_ratios_are_those_of_the_masses() {
    for noise in laws() {
        for gap in -9..=9_i64 {
            let residuals = Residuals::new(&[gap], &[noise]).unwrap();
            let masses = masses(noise, WIDTH);
            let of = |z: i64| masses[(WIDTH + z) as usize].ln();
            for delta in [-3, -1, 1, 2, 5] {
                let ratio = residuals.log_ratio(&[Move { component: 0, delta }]);
                assert!((ratio - (of(gap - delta) - of(gap))).abs() < 1e-11, "{noise:?} {gap} {delta}");
                let mut moved = residuals.clone();
                moved.apply(&[Move { component: 0, delta }]);
                assert_eq!(
                    moved.log_ratio(&[Move { component: 0, delta: -delta }]),
                    -ratio,
                    "odd, bit for bit but for the sign of 0"
                );
            }
            // Where no component changes the ratio is 1.
            assert_eq!(residuals.log_ratio(&[]), 0.0);
        }
    }
}

#[test]
fn components_add_up_each_by_its_own_law() {
    let noise = [2, 3, 2].map(|scale| Noise::DiscreteGaussian { scale });
    let residuals = Residuals::new(&[5, -7, 1], &noise).unwrap();
    let one = |component: u32, delta| residuals.log_ratio(&[Move { component, delta }]);
    let moves = [Move { component: 2, delta: -4 }, Move { component: 0, delta: 1 }, Move { component: 1, delta: 2 }];
    assert!((residuals.log_ratio(&moves) - (one(0, 1) + one(1, 2) + one(2, -4))).abs() < 1e-14);
    assert!(Residuals::new(&[1, 2], &noise).is_none() && Residuals::new(&[], &[]).is_none());
}

/// Acceptance at stationarity, averaged over the release: `E min(1, P(z - d) / P(z))` is 1 − TV of the noise and of the noise moved by d
/// (a Metropolis step between two points of equal prior weight), whatever the noise.
#[test]
fn mean_acceptance_is_one_less_the_total_variation() {
    for noise in laws() {
        let masses = masses(noise, WIDTH);
        for delta in [1, 2, 3] {
            let margin = delta;
            let inside = -WIDTH + margin..=WIDTH - margin;
            let of = |z: i64| masses[(WIDTH + z) as usize];
            let total_variation: f64 = 0.5 * inside.clone().map(|z| (of(z) - of(z - delta)).abs()).sum::<f64>();
            let accepted: f64 = inside
                .map(|gap| {
                    let residuals = Residuals::new(&[gap], &[noise]).unwrap();
                    of(gap) * residuals.log_ratio(&[Move { component: 0, delta }]).exp().min(1.0)
                })
                .sum();
            assert!((accepted - (1.0 - total_variation)).abs() < 1e-12, "{noise:?} {delta}: {accepted} {total_variation}");
            // On so coarse a lattice the figure for continuous noise is a little too high for an odd change.
            let continuous = |mu: f64| libm::erfc(mu / (2.0 * 2.0_f64.sqrt()));
            if noise == (Noise::DiscreteGaussian { scale: 2 }) && delta % 2 == 1 {
                let (on_lattice, bound) = if delta == 1 { (0.8005, 0.8026) } else { (0.4485, 0.4533) };
                assert!((accepted - on_lattice).abs() < 5e-5, "{delta}: {accepted}");
                assert!((continuous(delta as f64 / 2.0) - bound).abs() < 5e-5);
            }
        }
    }
}
