//! A normal stand-in for a job's likelihood.

use super::outcome::PlanError;
use crate::job::JobSpec;

/// A guess of what there is: record counts, and the posterior's first two moments on the scale that
/// priors are declared on.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Guess {
    /// Records per party, in the job's order.
    pub records: Vec<u64>,
    /// Posterior mean, one value per parameter.
    pub mean: Vec<f64>,
    /// Posterior covariance.
    pub covariance: Vec<Vec<f64>>,
}

impl Guess {
    /// A guess with independent parameters of these standard deviations.
    #[must_use]
    pub fn independent(records: Vec<u64>, mean: Vec<f64>, sd: &[f64]) -> Self {
        let row = |i: usize| (0..sd.len()).map(|j| if i == j { sd[i] * sd[i] } else { 0.0 }).collect();
        Self { records, mean, covariance: (0..sd.len()).map(row).collect() }
    }

    /// The posterior that other record counts would give: the covariance shrinks as the records grow.
    #[must_use]
    pub fn with_records(mut self, records: Vec<u64>) -> Self {
        let total = |counts: &[u64]| counts.iter().map(|n| *n as f64).sum::<f64>().max(1.0);
        let ratio = total(&self.records) / total(&records);
        self.covariance.iter_mut().flatten().for_each(|c| *c *= ratio);
        self.records = records;
        self
    }

    fn check(&self, spec: &JobSpec) -> Result<(), PlanError> {
        let d = spec.dimension();
        let fail = |what: String| Err(PlanError::Guess(what));
        if self.records.len() != spec.parties.len() || self.records.contains(&0) {
            return fail(format!("it needs a record count above 0 for each of {} parties", spec.parties.len()));
        }
        if self.mean.len() != d || self.covariance.len() != d || self.covariance.iter().any(|row| row.len() != d) {
            return fail(format!("it needs a mean and a covariance of {d} parameters"));
        }
        if !self.mean.iter().chain(self.covariance.iter().flatten()).all(|x| x.is_finite()) {
            return fail("it holds a value that is not finite".to_owned());
        }
        Ok(())
    }
}

/// The log likelihood of all records together, as a parabola.
pub(super) struct StandIn {
    mean: Vec<f64>,
    /// Minus its Hessian.
    information: Vec<Vec<f64>>,
    /// Posterior sd of each coordinate given the others.
    pub(super) conditional_sd: Vec<f64>,
}

impl StandIn {
    pub(super) fn new(spec: &JobSpec, guess: &Guess) -> Result<Self, PlanError> {
        guess.check(spec)?;
        let posterior = inverse(&guess.covariance)
            .ok_or_else(|| PlanError::Guess("the covariance is not positive definite: give sds above 0".to_owned()))?;
        let d = guess.mean.len();
        let conditional_sd = (0..d).map(|j| posterior[j][j].sqrt().recip()).collect();
        let mut information = posterior;
        for (j, row) in information.iter_mut().enumerate() {
            // What the prior knows is no part of the likelihood, as long as that leaves something.
            let rest = row[j] - prior_curvature(spec, &guess.mean, j, guess.covariance[j][j].sqrt());
            if rest.is_finite() && rest > 0.0 {
                row[j] = rest.min(row[j]);
            }
        }
        Ok(Self { mean: guess.mean.clone(), information, conditional_sd })
    }

    /// The log likelihood ratio of `to` against `from`.
    pub(super) fn log_ratio(&self, from: &[f64], to: &[f64]) -> f64 {
        // -1/2 (to - from)' A (to + from - 2 m): one product, and nothing cancels.
        let step: Vec<f64> = to.iter().zip(from).map(|(t, f)| t - f).collect();
        let sum: Vec<f64> = to.iter().zip(from).zip(&self.mean).map(|((t, f), m)| t + f - 2.0 * m).collect();
        let product: f64 =
            self.information.iter().zip(&step).map(|(row, s)| s * row.iter().zip(&sum).map(|(a, x)| a * x).sum::<f64>()).sum();
        -0.5 * product
    }
}

/// Minus the second derivative of the log prior in coordinate `j`, over a distance of the posterior's size.
fn prior_curvature(spec: &JobSpec, mean: &[f64], j: usize, sd: f64) -> f64 {
    let at = |shift: f64| {
        let mut theta = mean.to_vec();
        theta[j] += shift * sd;
        spec.log_prior(&theta)
    };
    -(at(0.5) + at(-0.5) - 2.0 * at(0.0)) / (0.25 * sd * sd)
}

/// The inverse of a symmetric positive definite matrix by Cholesky; `None` for any other.
fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let d = matrix.len();
    let mut lower = vec![vec![0.0; d]; d];
    for i in 0..d {
        for j in 0..=i {
            let rest = matrix[i][j] - (0..j).map(|k| lower[i][k] * lower[j][k]).sum::<f64>();
            lower[i][j] = if i == j { rest.sqrt() } else { rest / lower[j][j] };
        }
        if !(lower[i][i].is_finite() && lower[i][i] > 0.0) {
            return None;
        }
    }
    let mut out = vec![vec![0.0; d]; d];
    for column in 0..d {
        let mut x: Vec<f64> = (0..d).map(|i| f64::from(u8::from(i == column))).collect();
        for i in 0..d {
            let rest = x[i] - (0..i).map(|k| lower[i][k] * x[k]).sum::<f64>();
            x[i] = rest / lower[i][i];
        }
        for i in (0..d).rev() {
            let rest = x[i] - (i + 1..d).map(|k| lower[k][i] * x[k]).sum::<f64>();
            x[i] = rest / lower[i][i];
        }
        out.iter_mut().zip(x).for_each(|(row, value)| row[column] = value);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses() {
        let matrix = vec![vec![4.0, 1.0], vec![1.0, 2.0]];
        let inverse = inverse(&matrix).unwrap_or_default();
        for (i, row) in matrix.iter().enumerate() {
            for j in 0..2 {
                let product: f64 = row.iter().zip(&inverse).map(|(a, b)| a * b[j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
        assert_eq!(super::inverse(&[vec![1.0, 2.0], vec![2.0, 1.0]]), None);
    }
}
