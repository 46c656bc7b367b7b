#![allow(clippy::unwrap_used)]
use super::*;

fn totals(total: f64, records: f64, noise_sd: f64) -> FamilyTotals {
    FamilyTotals { totals: vec![total], noise_variance: vec![noise_sd * noise_sd], records, records_variance: 0.0 }
}

/// Computes mean and variance of a clamped record by a fine sum over its density.
fn summed(density: impl Fn(f64) -> f64, clamp: impl Fn(f64) -> f64, from: f64, to: f64) -> (f64, f64) {
    let steps = 200_000;
    let width = (to - from) / f64::from(steps);
    let (mut mass, mut mean, mut square) = (0.0, 0.0, 0.0);
    for i in 0..steps {
        let x = from + (f64::from(i) + 0.5) * width;
        let (p, y) = (density(x) * width, clamp(x));
        mass += p;
        mean += p * y;
        square += p * y * y;
    }
    (mean / mass, square / mass - mean * mean / mass / mass)
}

#[test]
fn a_clamped_normal_has_the_moments_of_the_sum_over_its_density() {
    for (mean, sd, min, max) in [(0.1, 0.3, -1.0, 1.0), (0.9, 0.3, -1.0, 1.0), (-1.4, 0.5, -1.0, 1.0), (0.0, 5.0, -1.0, 1.0)] {
        let (m, v) = clamped_normal(mean, sd, min, max);
        let density = |x: f64| libm::exp(-0.5 * (x - mean) * (x - mean) / sd / sd);
        let (expected, variance) = summed(density, |x| x.clamp(min, max), mean - 9.0 * sd, mean + 9.0 * sd);
        assert!((m - expected).abs() < 1e-6 && (v - variance).abs() < 1e-6, "{mean} {sd}: {m} {expected}, {v} {variance}");
    }
    let (m, v) = clamped_normal(0.2, 0.3, f64::NEG_INFINITY, f64::INFINITY);
    assert!((m - 0.2).abs() < 1e-12 && (v - 0.09).abs() < 1e-12);
}

#[test]
fn a_clamped_poisson_has_the_moments_of_its_probabilities() {
    for (rate, max) in [(1.5, 8), (0.01, 3), (12.0, 10), (700.0, 720), (650.0, 500)] {
        let (m, v) = clamped_poisson(rate, max);
        let (mut mean, mut square) = (0.0, 0.0);
        for k in 0..2000_u32 {
            let p = libm::exp(f64::from(k) * libm::log(rate) - rate - libm::lgamma(f64::from(k) + 1.0));
            let y = f64::from(k.min(max));
            mean += p * y;
            square += p * y * y;
        }
        let variance = square - mean * mean;
        assert!(
            (m / mean - 1.0).abs() < 1e-9 && (v - variance).abs() < 1e-6 * (1.0 + variance),
            "{rate} {max}: {m} {mean} {v} {variance}"
        );
    }
}

#[test]
fn shares_have_a_multinomials_covariance() {
    let record = Family::Multinomial.record(Clamping::Modelled, &[0.2, 0.5, 0.3]);
    assert!((record.covariance[(0, 0)] - 0.16).abs() < 1e-15 && (record.covariance[(0, 1)] + 0.1).abs() < 1e-15);
    // The totals of all levels sum to a known number, so only the noise makes the covariance regular.
    let seen = |noise: f64| FamilyTotals {
        totals: vec![20.0, 50.0, 30.0],
        noise_variance: vec![noise; 3],
        records: 100.0,
        records_variance: 0.0,
    };
    for noise in [0.0, 1e-6, 10.0] {
        let at = |p: [f64; 3]| seen(noise).log_likelihood(Family::Multinomial, Clamping::Modelled, &p);
        assert!(at([0.2, 0.5, 0.3]) > at([0.35, 0.35, 0.3]) && at([0.2, 0.5, 0.3]).is_finite());
    }
}

#[test]
fn the_likelihood_is_a_normal_one_with_its_determinant() {
    let seen = FamilyTotals { totals: vec![32.0], noise_variance: vec![9.0], records: 100.0, records_variance: 4.0 };
    let variance: f64 = 100.0 * 0.21 + 9.0 + 4.0 * 0.09;
    let found = seen.log_likelihood(Family::Bernoulli, Clamping::Modelled, &[0.3]);
    assert!((found - (-0.5 * 4.0 / variance - 0.5 * variance.ln())).abs() < 1e-12);
    assert_eq!(seen.log_likelihood(Family::Bernoulli, Clamping::Modelled, &[f64::NAN]), f64::NEG_INFINITY);
}

/// Compares binomial and normal likelihoods of a noisy count on a grid of probabilities: returns the total variation distance of
/// the posteriors under a flat prior, and the distance of their means in sds.
fn against_enumeration(records: u32, count: f64, s: f64) -> (f64, f64) {
    let n = f64::from(records);
    let reach = 12.0 * s;
    let grid: Vec<f64> = {
        let most = ((count + 6.0 * (s + count.sqrt() + 2.0)) / n).min(1.0);
        (0..2000).map(|i| most * (f64::from(i) + 0.5) / 2000.0).collect()
    };
    let exact = |p: f64| -> f64 {
        let from = (count - reach).max(0.0).ceil();
        let mut sum = 0.0;
        let mut k = from;
        while k <= (count + reach).min(n) {
            let choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
            let binomial = choose + k * libm::log(p) + (n - k) * libm::log1p(-p);
            sum += libm::exp(binomial - 0.5 * (count - k) * (count - k) / s / s);
            k += 1.0;
        }
        sum
    };
    let near = |p: f64| libm::exp(totals(count, n, s).log_likelihood(Family::Bernoulli, Clamping::Modelled, &[p]));
    let normalised = |density: &dyn Fn(f64) -> f64| -> Vec<f64> {
        let values: Vec<f64> = grid.iter().map(|p| density(*p)).collect();
        let total: f64 = values.iter().sum();
        values.iter().map(|v| v / total).collect()
    };
    let (exact, near) = (normalised(&exact), normalised(&near));
    let distance = 0.5 * exact.iter().zip(&near).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let mean = |mass: &[f64]| grid.iter().zip(mass).map(|(p, m)| p * m).sum::<f64>();
    let m = mean(&exact);
    let variance: f64 = grid.iter().zip(&exact).map(|(p, w)| w * (p - m) * (p - m)).sum();
    (distance, (mean(&near) - m) / variance.sqrt())
}

#[test]
fn the_normal_approximation_is_as_near_as_the_page_says() {
    // Total variation .004, .022, .029 and .004; the means differ by a few hundredths of an sd.
    for (records, count, s, most) in
        [(100, 10.0, 4.9, 0.01), (100, 10.0, 1.54, 0.05), (1000, 5.0, 1.54, 0.06), (100_000, 30_000.0, 4.9, 0.006)]
    {
        let (distance, off) = against_enumeration(records, count, s);
        println!("n {records} count {count} s {s}: total variation {distance:.4}, mean off {off:.4} sd");
        assert!(distance < most && off.abs() < 0.1, "n {records} count {count} s {s}: {distance} {off}");
    }
}

#[test]
fn the_clamp_is_undone() {
    // Mean .9, sd .3, clamped at 1: the records' mean is about .825, and theta is recovered from it.
    let family = Family::GaussianMean { sd: 0.3, min: -1.0, max: 1.0 };
    let (clamped, _) = clamped_normal(0.9, 0.3, -1.0, 1.0);
    let within = Interval { min: -3.0, max: 3.0 };
    let seen = totals(1e4 * clamped, 1e4, 5.0);
    assert!((family.start(Clamping::Modelled, &seen, within).0 - 0.9).abs() < 1e-9);
    assert!((family.start(Clamping::Ignored, &seen, within).0 - clamped).abs() < 1e-9);
    let at = |theta: f64| seen.log_likelihood(family, Clamping::Modelled, &[theta]);
    assert!(at(0.9) > at(0.89) && at(0.9) > at(0.91));
    let (theta, sd) = Family::Bernoulli.start(Clamping::Modelled, &totals(3000.0, 1e4, 20.0), Interval { min: 0.0, max: 1.0 });
    assert!((theta - 0.3).abs() < 1e-9 && (sd - (2100.0_f64 + 400.0).sqrt() / 1e4).abs() < 1e-6);
    let (theta, sd) = Family::Bernoulli.start(Clamping::Modelled, &totals(-50.0, 1e4, 20.0), Interval { min: 0.0, max: 1.0 });
    assert!(theta < 1e-9 && sd > 0.0 && sd <= 1.0);
}
