//! Non-private references for logistic regression on pooled data.

/// Mode and marginal standard deviations of a posterior by Newton's method on a numerical Hessian of `log_posterior`.
///
/// Good to O(1/n): for large pooled data the posterior mean and sd equal these to far less than what is asserted.
pub fn laplace(log_posterior: &dyn Fn(&[f64]) -> f64, start: &[f64]) -> (Vec<f64>, Vec<f64>) {
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
    let sd = (0..d).map(|i| covariance[i][i].sqrt()).collect();
    (theta, sd)
}

/// Inverse of a small symmetric positive definite matrix by Gauss–Jordan elimination.
fn invert(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
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
