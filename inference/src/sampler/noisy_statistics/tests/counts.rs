use super::*;

fn rows() -> Vec<Vec<f64>> {
    [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)].map(|(a, b)| vec![1.0, a, b]).to_vec()
}

fn counts(ones: [f64; 4], zeros: [f64; 4], variance: f64) -> Counts {
    Counts { rows: rows(), outcomes: binary(&ones, &zeros), variance, unbiased: false }
}

fn binary(ones: &[f64], zeros: &[f64]) -> Outcomes {
    Outcomes::Binary { ones: ones.to_vec(), zeros: zeros.to_vec() }
}

fn prior() -> GaussianPrior {
    GaussianPrior::independent(vec![0.0; 3], vec![0.16; 3])
}

/// Returns mean and sd of each coefficient on a grid around the mode, under the prior.
fn posterior(about: &Rough, log: impl Fn(&[f64]) -> f64) -> Vec<(f64, f64)> {
    const HALF: i32 = 24;
    let sd: Vec<f64> = about.covariance.diagonal_entries().iter().map(|v| v.sqrt()).collect();
    let at = |j: usize, i: i32| about.mean[j] + 6.0 * sd[j] * f64::from(i) / f64::from(HALF);
    let mut points = Vec::new();
    for i in -HALF..=HALF {
        for j in -HALF..=HALF {
            for k in -HALF..=HALF {
                let theta = vec![at(0, i), at(1, j), at(2, k)];
                let prior: f64 = theta.iter().map(|t| -0.08 * t * t).sum();
                points.push((log(&theta) + prior, theta));
            }
        }
    }
    let greatest = points.iter().map(|(log, _)| *log).fold(f64::NEG_INFINITY, f64::max);
    let sum = |of: &dyn Fn(&[f64]) -> f64| points.iter().map(|(log, theta)| of(theta) * (log - greatest).exp()).sum::<f64>();
    let all = sum(&|_| 1.0);
    let one = |j: usize| {
        let mean = sum(&|theta| theta[j]) / all;
        (mean, (sum(&|theta| (theta[j] - mean).powi(2)) / all).sqrt())
    };
    (0..3).map(one).collect()
}

/// Without noise the pivot gives the posterior of the counts, also for a rare outcome with 29 events, up to a twentieth of an sd
/// in the width.
#[test]
fn without_noise_counts_are_counts() {
    for (ones, zeros) in
        [([9.0, 3.0, 14.0, 3.0], [210.0, 222.0, 215.0, 224.0]), ([85.0, 69.0, 117.0, 106.0], [140.0, 150.0, 100.0, 133.0])]
    {
        let counts = counts(ones, zeros, 1e-9);
        let about = counts.rough(&prior());
        let binomial = |theta: &[f64]| {
            let cell = |((row, k), l): ((&Vec<f64>, &f64), &f64)| -k * softplus(-dot(row, theta)) - l * softplus(dot(row, theta));
            counts.rows.iter().zip(&ones).zip(&zeros).map(cell).sum()
        };
        let (found, exact) = (posterior(&about, |theta| counts.log_likelihood(theta)), posterior(&about, binomial));
        for ((mean, sd), (exact, exact_sd)) in found.into_iter().zip(exact) {
            assert!(
                (mean - exact).abs() < 0.03 * exact_sd && (sd / exact_sd - 1.0).abs() < 0.06,
                "{mean} {sd}: {exact} {exact_sd}"
            );
        }
    }
}

/// Counts that no coefficients explain: the noise moves the mode, and does not decide which cells are explained.
#[test]
fn a_model_that_does_not_hold_is_fitted_as_without_noise() {
    let (ones, zeros) = ([900.0, 100.0, 300.0, 8_000.0], [9_000.0, 4_000.0, 9_000.0, 2_000.0]);
    let exact = counts(ones, zeros, 1e-9).rough(&prior());
    let wide = counts(ones, zeros, 400.0);
    let rough = wide.rough(&prior());
    let sd = rough.covariance.diagonal_entries();
    for ((found, exact), variance) in rough.mean.iter().zip(&exact.mean).zip(&sd) {
        assert!((found - exact).abs() < 0.05 * variance.sqrt(), "{rough:?} {exact:?}");
    }
    // The width includes the noise, and the width without noise does not.
    let own = exact.covariance.diagonal_entries();
    for ((with, without), own) in sd.iter().zip(rough.without_noise.diagonal_entries()).zip(own) {
        assert!(*with > 1.2 * without && (without / own - 1.0).abs() < 0.01, "{with} {without} {own}");
    }
}

/// One cell of 200 records, 80 of which have a 1: the information is 48, and 48² / (48 + 52) with noise of variance 100.
#[test]
fn noise_takes_its_part_of_the_information() {
    let one = |variance| Counts { rows: vec![vec![1.0]], outcomes: binary(&[80.0], &[120.0]), variance, unbiased: false };
    let at = [libm::log(80.0 / 120.0)];
    let pivot = one(100.0).pivot(&at);
    assert!(
        pivot.score[0].abs() < 1e-9
            && (pivot.information[(0, 0)] - 48.0).abs() < 1e-9
            && (pivot.noise[(0, 0)] - 52.0).abs() < 1e-9
    );
    assert!((pivot.remaining_information()[(0, 0)] - 23.04).abs() < 1e-9);
    // A negative number of records counts as none.
    let none = Counts { rows: vec![vec![1.0]], outcomes: binary(&[-8.0], &[3.0]), variance: 100.0, unbiased: false };
    assert_eq!(none.pivot(&[0.0]).information[(0, 0)], 0.0);
    assert!(none.log_likelihood(&[0.3]).is_finite());
}
