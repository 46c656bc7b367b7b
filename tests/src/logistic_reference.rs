//! Non-private references for logistic regression on pooled data. Nothing here is shared with the service: this file alone reads,
//! scales and weighs the records.

use std::collections::BTreeMap;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

/// Records of all parties together; equal records are stored once, with their counts.
pub struct Pooled {
    /// Predictors on the model's scale (intercept first), number of records, number of outcomes equal to one.
    cells: Vec<(Vec<f64>, f64, f64)>,
    records: u64,
}

impl Pooled {
    /// Reads CSV files. A predictor has a name and bounds, which scale it to [-1, 1]; without bounds it is 0/1 and stays
    /// unscaled.
    pub fn read<P: AsRef<Path>>(files: &[P], outcome: &str, predictors: &[(&str, Option<(f64, f64)>)]) -> Self {
        let mut counts = BTreeMap::<Vec<u64>, (f64, f64)>::new();
        let mut records = 0;
        for file in files {
            let text = std::fs::read_to_string(file).expect("a CSV file");
            let mut lines = text.lines();
            let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
            let at = |name: &str| header.iter().position(|h| *h == name).unwrap_or_else(|| panic!("no column {name}"));
            let columns: Vec<usize> = predictors.iter().map(|p| at(p.0)).collect();
            let outcome = at(outcome);
            for line in lines {
                let values: Vec<f64> = line.split(',').map(|v| v.parse().expect("a number")).collect();
                let scaled = predictors.iter().zip(&columns).map(|((_, bounds), column)| match *bounds {
                    Some((min, max)) => 2.0 * (values[*column].clamp(min, max) - min) / (max - min) - 1.0,
                    None => values[*column],
                });
                let cell = counts.entry(scaled.map(f64::to_bits).collect()).or_default();
                cell.0 += 1.0;
                cell.1 += values[outcome];
                records += 1;
            }
        }
        let cell = |(bits, (n, ones)): (Vec<u64>, (f64, f64))| {
            (std::iter::once(1.0).chain(bits.into_iter().map(f64::from_bits)).collect(), n, ones)
        };
        Self { cells: counts.into_iter().map(cell).collect(), records }
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the log posterior density up to a constant, under independent normal(0, `prior_sd`) priors.
    pub fn log_posterior(&self, theta: &[f64], prior_sd: f64) -> f64 {
        let prior: f64 = theta.iter().map(|t| -0.5 * (t / prior_sd).powi(2)).sum();
        let likelihood = self.cells.iter().map(|(x, n, ones)| {
            let eta: f64 = x.iter().zip(theta).map(|(x, t)| x * t).sum();
            let softplus = eta.max(0.0) + (-eta.abs()).exp().ln_1p();
            ones * eta - n * softplus
        });
        prior + likelihood.sum::<f64>()
    }
}

/// Runs plain random-walk Metropolis from the mode with a joint normal step of this covariance, scaled by 2.38²/d (Roberts,
/// Gelman & Gilks 1997). Returns `[parameter][chain][draw]` without the first tenth.
pub fn metropolis(
    log_posterior: &(dyn Fn(&[f64]) -> f64 + Sync),
    mode: &[f64],
    covariance: &[Vec<f64>],
    (chains, draws): (u64, usize),
    seed: u64,
) -> Vec<Vec<Vec<f64>>> {
    let d = mode.len();
    let root = cholesky(covariance);
    let one = |chain: u64| -> Vec<Vec<f64>> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        rng.set_stream(chain);
        let mut step = |theta: &[f64]| -> Vec<f64> {
            let z: Vec<f64> = (0..d).map(|_| StandardNormal.sample(&mut rng)).collect();
            let scale = 2.38 / (d as f64).sqrt();
            theta.iter().zip(&root).map(|(t, row)| t + scale * row.iter().zip(&z).map(|(r, z)| r * z).sum::<f64>()).collect()
        };
        let mut theta = step(mode);
        let mut here = log_posterior(&theta);
        let mut decisions = ChaCha20Rng::seed_from_u64(seed.wrapping_add(1));
        decisions.set_stream(chain);
        let mut kept = vec![Vec::with_capacity(draws); d];
        for i in 0..draws + draws / 10 {
            let to = step(&theta);
            let there = log_posterior(&to);
            if (1.0 - decisions.random::<f64>()).ln() < there - here {
                (theta, here) = (to, there);
            }
            if i >= draws / 10 {
                kept.iter_mut().zip(&theta).for_each(|(k, t)| k.push(*t));
            }
        }
        kept
    };
    let runs: Vec<Vec<Vec<f64>>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..chains).map(|chain| scope.spawn(move || one(chain))).collect();
        handles.into_iter().map(|h| h.join().expect("a chain")).collect()
    });
    (0..d).map(|j| runs.iter().map(|run| run[j].clone()).collect()).collect()
}

/// Computes the mode and covariance of a posterior by Newton's method on a numerical Hessian of `log_posterior`.
///
/// The approximation is good to O(1/n): for large pooled data, the posterior mean and sd differ from these by far less than the
/// asserted tolerances.
pub fn laplace_covariance(log_posterior: &dyn Fn(&[f64]) -> f64, start: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let d = start.len();
    let mut theta = start.to_vec();
    let mut covariance = vec![vec![0.0; d]; d];
    let mut h = 1e-2;
    for iteration in 0..30 {
        let at = |i: usize, a: f64, j: usize, b: f64| {
            let mut t = theta.clone();
            t[i] += a;
            t[j] += b;
            log_posterior(&t)
        };
        let gradient: Vec<f64> = (0..d).map(|i| (at(i, h, i, 0.0) - at(i, -h, i, 0.0)) / (2.0 * h)).collect();
        let second = |i, j| at(i, h, j, h) - at(i, h, j, -h) - at(i, -h, j, h) + at(i, -h, j, -h);
        let hessian: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| -second(i, j) / (4.0 * h * h)).collect()).collect();
        covariance = invert(&hessian);
        let step: Vec<f64> = covariance.iter().map(|row| row.iter().zip(&gradient).map(|(c, g)| c * g).sum()).collect();
        theta.iter_mut().zip(&step).for_each(|(t, s)| *t += s.clamp(-1.0, 1.0));
        let sd = (0..d).map(|i| covariance[i][i].sqrt()).fold(f64::INFINITY, f64::min);
        h = (0.3 * sd).max(1e-4);
        if iteration > 5 && step.iter().all(|s| s.abs() < 1e-4 * sd) {
            break;
        }
    }
    (theta, covariance)
}

/// Computes the mode and the marginal standard deviations; see [`laplace_covariance`].
pub fn laplace(log_posterior: &dyn Fn(&[f64]) -> f64, start: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mode, covariance) = laplace_covariance(log_posterior, start);
    let sd = (0..mode.len()).map(|i| covariance[i][i].sqrt()).collect();
    (mode, sd)
}

/// Computes the lower triangular root of a small symmetric positive definite matrix.
pub fn cholesky(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let d = matrix.len();
    let mut root = vec![vec![0.0; d]; d];
    for i in 0..d {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| root[i][k] * root[j][k]).sum();
            root[i][j] = if i == j { (matrix[i][i] - sum).sqrt() } else { (matrix[i][j] - sum) / root[j][j] };
        }
    }
    root
}

/// Computes the inverse of a small symmetric positive definite matrix by Gauss–Jordan elimination.
pub fn invert(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let d = matrix.len();
    let identity = |i: usize, j: usize| f64::from(u8::from(i == j));
    let mut a: Vec<Vec<f64>> =
        (0..d).map(|i| matrix[i].iter().copied().chain((0..d).map(|j| identity(i, j))).collect()).collect();
    for i in 0..d {
        let pivot = a[i][i];
        a[i].iter_mut().for_each(|x| *x /= pivot);
        let row = a[i].clone();
        for (k, other) in a.iter_mut().enumerate() {
            if k != i {
                let factor = other[i];
                other.iter_mut().zip(&row).for_each(|(x, r)| *x -= factor * r);
            }
        }
    }
    a.into_iter().map(|row| row[d..].to_vec()).collect()
}
