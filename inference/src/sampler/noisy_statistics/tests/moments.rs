#![allow(clippy::unwrap_used)]
use super::*;
use crate::sampler::noisy_statistics::moments_noise::Tie;

fn example(sd: f64, shift: f64, records: Records) -> Moments {
    let matrix = Matrix::from_fn(3, |i, j| if i == j { 100.0 + shift } else { 10.0 * (i + j) as f64 + shift });
    Moments { matrix, noise: MomentsNoise::new(3, sd, &[]), records }
}

#[test]
fn two_releases_are_pooled_by_their_budgets() {
    let pooled = Moments::pooled(&[example(2.0, 0.0, Records::First), example(1.0, 5.0, Records::First)]).unwrap();
    assert!((pooled.matrix[(0, 0)] - 104.0).abs() < 1e-12 && (pooled.noise.sd() - 0.8_f64.sqrt()).abs() < 1e-12);
    assert_eq!(pooled.records, Records::First);
    assert!(Moments::pooled(&[]).is_none());
    let mut other = example(1.0, 0.0, Records::First);
    other.noise = MomentsNoise::new(3, 1.0, &[Tie::Known { at: (0, 0) }]);
    assert!(Moments::pooled(&[example(1.0, 0.0, Records::First), other]).is_none());
}

#[test]
fn the_least_eigenvalue_stands_beside_its_limit() {
    let (least, limit) = example(2.0, 0.0, Records::Exact(100.0)).smallest(CLEAR);
    assert!((least - 90.0).abs() < 1e-9 && (limit - 12.0 * 2.0_f64.sqrt()).abs() < 1e-12);
}
