//! Directions depend on the draws' correlations only.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;

/// Two coordinates of correlation −0.9 and sds 1 and 10: the directions are conjugate and as long as the posterior along them.
#[test]
fn the_scale_is_the_draws_own() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let mut rotation = Rotation::new(ProposalKind::Guided, Warmup::Sweeps(400), 2, 4);
    let mut scale = None;
    for sweep in 1..=400 {
        let draws: Vec<Vec<f64>> = (0..4)
            .map(|_| {
                let (a, b): (f64, f64) = (StandardNormal.sample(&mut rng), StandardNormal.sample(&mut rng));
                vec![a, 10.0 * (-0.9 * a + (1.0f64 - 0.81).sqrt() * b)]
            })
            .collect();
        let new = rotation.sweep(draws.iter().map(Vec::as_slice), sweep, &[0.19f64.sqrt(), 10.0 * 0.19f64.sqrt()]);
        assert_eq!(new.is_some(), [100, 200, 300, 400].contains(&sweep), "{sweep}");
        scale = new.or(scale);
    }
    let scale = scale.expect("four of them");
    let steps: Vec<Vec<f64>> = scale
        .directions
        .expect("turned")
        .iter()
        .zip(&scale.radii)
        .map(|(v, r)| v.iter().map(|x| x * r / 0.44).collect())
        .collect();
    // Step' Σ⁻¹ step is 1 for each and 0 between them; 800 draws determine it to a few percent.
    let (aa, ab, bb) = (1.0 / 0.19, 0.09 / 0.19, 0.01 / 0.19);
    let form = |x: &[f64], y: &[f64]| aa * x[0] * y[0] + ab * (x[0] * y[1] + x[1] * y[0]) + bb * x[1] * y[1];
    for i in 0..2 {
        for j in 0..2 {
            let exact = f64::from(u8::from(i == j));
            assert!((form(&steps[i], &steps[j]) - exact).abs() < 0.2, "{i} {j}: {}", form(&steps[i], &steps[j]));
        }
    }
}

/// Moving chains with too few draws for their effective number, or that of one coordinate, to be defined.
#[test]
fn too_few_moving_draws_turn_nothing() {
    let mut rng = ChaCha20Rng::seed_from_u64(10);
    for sweeps in 1..=6 {
        let mut rotation = Rotation::new(ProposalKind::Guided, Warmup::Sweeps(sweeps), 2, 2);
        for sweep in 1..=sweeps {
            let draws: Vec<[f64; 2]> = (0..2)
                .map(|_| {
                    let a: f64 = StandardNormal.sample(&mut rng);
                    [a, a + 0.1 * sweep as f64]
                })
                .collect();
            let new = rotation.sweep(draws.iter().map(|u| &u[..]), sweep, &[1.0, 1.0]);
            assert!(new.is_none(), "{sweep} of {sweeps}");
        }
        let later: Vec<&[f64]> = rotation.history[0].iter().map(|c| &c[c.len() / 2..]).collect();
        let summary = diagnostics::summarise(&later);
        // The test concerns the number of draws, not chains that do not move.
        assert!(sweeps < 4 || summary.sd > 0.0);
        assert!(summary.ess_bulk.is_nan(), "{sweeps}: {}", summary.ess_bulk);
    }
}

#[test]
fn too_few_draws_turn_nothing() {
    let mut rotation = Rotation::new(ProposalKind::Guided, Warmup::Sweeps(8), 2, 2);
    let still = [0.0, 1.0];
    assert!((1..=8).all(|sweep| rotation.sweep([&still[..], &still[..]].into_iter(), sweep, &[1.0, 1.0]).is_none()));
}
