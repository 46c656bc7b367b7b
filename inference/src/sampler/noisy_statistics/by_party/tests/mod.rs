//! The hierarchy against joint algebra and quadrature.

#![allow(clippy::unwrap_used)]

use conclave_common::parameter::Prior;

use super::factor::Factor;
use super::hierarchy::Hierarchy;
use super::posterior::Posterior;
use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::noisy_statistics::gaussian::GaussianPrior;

/// Factors of parties with four coordinates, different at each.
fn factors(parties: usize) -> Vec<Factor> {
    let one = |i: usize| {
        let f = |a: usize, b: usize| ((1 + i * 7 + a * 5 + b * 3) as f64 * 0.7).sin();
        let root = Matrix::from_fn(4, |a, b| f(a, b) + if a == b { 2.0 + i as f64 } else { 0.0 });
        let pull = (0..4).map(|a| 3.0 * f(a, 9)).collect();
        Factor { precision: root.times(&root.transposed()).symmetrised(), pull }
    };
    (0..parties).map(one).collect()
}

fn hierarchy(varying: &[usize]) -> Hierarchy {
    let prior = GaussianPrior::independent(vec![0.3, -0.2, 0.1, 0.0], vec![0.16, 0.5, 1.0, 0.25]);
    Hierarchy::of(varying.to_vec(), prior, vec![Prior::HalfNormal { sd: 1.0 }; varying.len()])
}

/// The joint Gaussian of the means, the shared coordinates and every party's own, with nothing integrated out: its mean, its
/// covariance, and the log density of the sds up to a constant.
fn joint(varying: &[usize], factors: &[Factor], sds: &[f64]) -> (Vec<f64>, Matrix, f64) {
    let (k, n) = (varying.len(), factors.len());
    let order = 4 + n * k;
    let (prior_mean, prior_precision) = ([0.3, -0.2, 0.1, 0.0], [0.16, 0.5, 1.0, 0.25]);
    let mut precision = Matrix::zeros(order);
    let mut pull = vec![0.0; order];
    for j in 0..4 {
        precision[(j, j)] += prior_precision[j];
        pull[j] += prior_precision[j] * prior_mean[j];
    }
    let mut log = 0.0;
    for (i, factor) in factors.iter().enumerate() {
        let place = |j: usize| varying.iter().position(|at| *at == j).map_or(j, |a| 4 + i * k + a);
        for a in 0..4 {
            pull[place(a)] += factor.pull[a];
            (0..4).for_each(|b| precision[(place(a), place(b))] += factor.precision[(a, b)]);
        }
        for (a, at) in varying.iter().enumerate() {
            let (t, own) = (sds[a].powi(-2), 4 + i * k + a);
            precision[(own, own)] += t;
            precision[(*at, *at)] += t;
            precision[(own, *at)] -= t;
            precision[(*at, own)] -= t;
            log += 0.5 * t.ln();
        }
    }
    let factor = precision.cholesky().unwrap();
    let mean = factor.solve(&pull);
    log += 0.5 * dot(&mean, &pull) - 0.5 * factor.log_determinant();
    log += sds.iter().map(|sd| -0.5 * sd * sd + sd.ln()).sum::<f64>();
    (mean, factor.inverse(), log)
}

/// Integrating the parties' own values out leaves the joint Gaussian's law, for one and for two varying coordinates, and for sds so
/// large that `T - T Q⁻¹ T` would lose all digits.
#[test]
fn the_hierarchy_is_the_joint_gaussian() {
    for varying in [vec![0], vec![0, 2], vec![3, 1]] {
        let (hierarchy, factors) = (hierarchy(&varying), factors(3));
        let constant = |sds: &[f64]| {
            let given = hierarchy.given(factors.iter(), sds);
            given.log_density - joint(&varying, &factors, sds).2
        };
        let first = constant(&vec![0.5; varying.len()]);
        for size in [0.02, 0.3, 1.7, 40.0] {
            let sds: Vec<f64> = (0..varying.len()).map(|a| size * (1.0 + a as f64)).collect();
            let (mean, covariance, _) = joint(&varying, &factors, &sds);
            let given = hierarchy.given(factors.iter(), &sds);
            let common = given.precision.inverse();
            for a in 0..4 {
                assert!((given.mean[a] - mean[a]).abs() < 1e-9, "{varying:?} {size} {a}");
                (0..4).for_each(|b| assert!((common[(a, b)] - covariance[(a, b)]).abs() < 1e-9 * (1.0 + size * size)));
            }
            for (i, part) in factors.iter().enumerate() {
                let own = hierarchy.own(part, &sds);
                let (means, variances) = (own.mean(&given.mean), own.variances(&common));
                for a in 0..varying.len() {
                    let place = 4 + i * varying.len() + a;
                    assert!((means[a] - mean[place]).abs() < 1e-8, "{varying:?} {size} {i}");
                    assert!((variances[a] - covariance[(place, place)]).abs() < 1e-8, "{varying:?} {size} {i}");
                }
            }
            assert!((constant(&sds) - first).abs() < 1e-6, "{varying:?} {size}: {} {first}", constant(&sds));
        }
    }
    // The block of the means stays positive where an sd is huge.
    let (hierarchy, factors) = (hierarchy(&[0]), factors(3));
    let given = hierarchy.given(factors.iter(), &[1e7]);
    assert!((given.precision.inverse()[(0, 0)] - 1.0 / 0.16).abs() < 1e-6);
}

/// The prior that the other parties imply for one, times its own factor, is its posterior.
#[test]
fn a_party_beside_the_others_has_its_own_posterior() {
    let (hierarchy, factors) = (hierarchy(&[0, 2]), factors(3));
    let sds = [0.4, 0.8];
    let beside = hierarchy.beside(factors[1..].iter(), &sds);
    let precision = beside.matrix().plus(&factors[0].precision, 1.0).symmetrised().cholesky().unwrap();
    let pull: Vec<f64> = beside.pull().iter().zip(&factors[0].pull).map(|(a, b)| a + b).collect();
    let mean = precision.solve(&pull);
    let (whole, covariance, _) = joint(&[0, 2], &factors, &sds);
    for (a, place) in [(0, 4), (1, 1), (2, 5), (3, 3)] {
        assert!((mean[a] - whole[place]).abs() < 1e-9, "{a}");
        assert!((precision.inverse()[(a, a)] - covariance[(place, place)]).abs() < 1e-9, "{a}");
    }
}

/// The law of an sd by slices against quadrature on a fine grid: with 20,000 moves the error of the mean is below 0.004, so the bound of
/// 0.02 holds with near certainty; a walk without the term of the change of variable is off by more than .1.
#[test]
fn slices_draw_the_law_of_an_sd() {
    let (hierarchy, factors) = (hierarchy(&[0]), factors(3));
    let posterior = Posterior { hierarchy: &hierarchy, factors: &factors };
    let sds = posterior.sds(20_000);
    let mean = sds.iter().map(|sds| sds[0]).sum::<f64>() / sds.len() as f64;
    let (mut all, mut first) = (0.0, 0.0);
    for step in 0..4000 {
        let log_sd = -12.0 + 14.0 * (f64::from(step) + 0.5) / 4000.0;
        let weight = joint(&[0], &factors, &[log_sd.exp()]).2.exp();
        all += weight;
        first += weight * log_sd.exp();
    }
    assert!((mean - first / all).abs() < 0.02, "{mean} {}", first / all);
}
