//! A fit's posterior on other scales than the coordinates', by Gauss-Hermite quadrature.

use super::solution::Estimate;
use crate::sampler::matrix::dot;

/// Points and weights of Gauss-Hermite quadrature for a standard normal variable: exact up to the ninth power.
const POINTS: [(f64, f64); 5] = [
    (-2.856_970_013_872_806, 0.011_257_411_327_720_69),
    (-1.355_626_179_974_266, 0.222_075_922_005_612_6),
    (0.0, 0.533_333_333_333_333_3),
    (1.355_626_179_974_266, 0.222_075_922_005_612_6),
    (2.856_970_013_872_806, 0.011_257_411_327_720_69),
];
/// Length of finite differences, in sds.
const DIFFERENCE: f64 = 1e-3;

/// Mean, sd including noise, and the noise's share of the sd, for one function of the coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures {
    pub(super) mean: f64,
    pub(super) sd: f64,
    pub(super) noise_sd: f64,
}

/// Returns the posterior of every component of `map`, a function of the estimate's coordinates.
///
/// A component is followed along the line of the coordinates' means given the component to first order. This is exact for linear
/// functions, and as accurate as the quadrature for any function of one coordinate. For a simplex, whose parts depend on several
/// coordinates, it is a first-order approximation in the others.
pub(super) fn mapped(estimate: &Estimate, map: &dyn Fn(&[f64]) -> Vec<f64>) -> Vec<Figures> {
    let mean = &estimate.normal.mean;
    let spread = estimate.normal.covariance.clone().plus(&estimate.noise, 1.0);
    let slopes: Vec<Vec<f64>> = (0..mean.len())
        .map(|j| {
            let h = DIFFERENCE * spread[(j, j)].sqrt();
            let side = |sign: f64| {
                let mut point = mean.clone();
                point[j] += sign * h;
                map(&point)
            };
            side(1.0).iter().zip(side(-1.0)).map(|(up, down)| (up - down) / (2.0 * h)).collect()
        })
        .collect();
    let components = slopes.first().map_or(0, Vec::len);
    let one = |i: usize| {
        let gradient: Vec<f64> = slopes.iter().map(|slope| slope[i]).collect();
        let (along, widening) = (spread.apply(&gradient), estimate.widening(&gradient));
        let variance = dot(&gradient, &along);
        let total = variance + widening;
        if variance.is_nan() || variance <= 0.0 {
            return Figures { mean: map(mean)[i], sd: 0.0, noise_sd: 0.0 };
        }
        let values = POINTS.map(|(z, weight)| {
            let length = z * total.sqrt() / variance;
            let point: Vec<f64> = mean.iter().zip(&along).map(|(m, a)| m + length * a).collect();
            (map(&point)[i], weight)
        });
        let middle: f64 = values.iter().map(|(value, weight)| weight * value).sum();
        let sd = values.iter().map(|(value, weight)| weight * (value - middle) * (value - middle)).sum::<f64>().sqrt();
        let noise = (estimate.noise.quadratic(&gradient) + widening) / total;
        Figures { mean: middle, sd, noise_sd: sd * noise.sqrt() }
    };
    (0..components).map(one).collect()
}
