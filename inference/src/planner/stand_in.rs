//! A stand-in for a job's likelihood, made of a guess of the posterior.

use super::outcome::PlanError;
use crate::sampler::{Matrix, as_released};
use conclave_common::job::{JobSpec, PlanSpec};
use conclave_common::model::Model;
use conclave_common::parameter::{Interval, Transform};
use conclave_privacy::pass::{Frame, GRADIENT_SCALE};

/// Relative step of the finite differences.
const MOVED: f64 = 1e-4;

/// A guess of the record counts and of the posterior's first two moments, on the scale on which priors are declared.
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
    /// Creates a guess with independent parameters of these standard deviations.
    #[must_use]
    pub fn independent(records: Vec<u64>, mean: Vec<f64>, sd: &[f64]) -> Self {
        let row = |i: usize| (0..sd.len()).map(|j| if i == j { sd[i] * sd[i] } else { 0.0 }).collect();
        Self { records, mean, covariance: (0..sd.len()).map(row).collect() }
    }

    /// Creates a guess around `theta`, with independent unconstrained values of these standard deviations.
    pub(super) fn around(spec: &JobSpec, records: Vec<u64>, theta: &[f64], sd: &[f64]) -> Self {
        let transform = spec.transform();
        let slopes = slopes(&transform.unconstrain(theta), |u| transform.constrain(u));
        let entry = |a: usize, b: usize| slopes.iter().zip(sd).map(|(slope, sd)| slope[a] * sd * sd * slope[b]).sum();
        let covariance = (0..theta.len()).map(|a| (0..theta.len()).map(|b| entry(a.min(b), a.max(b))).collect()).collect();
        Self { records, mean: theta.to_vec(), covariance }
    }

    /// Creates the guess in a job's `[plan]`, for these record counts; `None` if the plan contains no posterior.
    #[must_use]
    pub fn of_plan(plan: &PlanSpec, records: Vec<u64>) -> Option<Self> {
        let moments = plan.posterior.as_ref()?;
        let sd: Vec<f64> = moments.iter().map(|m| m.sd).collect();
        let mut guess = Self::independent(records, moments.iter().map(|m| m.mean).collect(), &sd);
        for (i, j, correlation) in plan.correlations.iter().flatten() {
            let covariance = correlation * sd[*i] * sd[*j];
            guess.covariance[*i][*j] = covariance;
            guess.covariance[*j][*i] = covariance;
        }
        Some(guess)
    }

    pub(super) fn is_independent(&self) -> bool {
        is_diagonal(&self.covariance)
    }

    /// Adjusts the guess to other record counts: the covariance shrinks in proportion as their total grows.
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
            return fail(format!("a record count above 0 is required for each of {} parties", spec.parties.len()));
        }
        if self.mean.len() != d || self.covariance.len() != d || self.covariance.iter().any(|row| row.len() != d) {
            return fail(format!("a mean and a covariance are required for {d} parameters"));
        }
        if !self.mean.iter().chain(self.covariance.iter().flatten()).all(|x| x.is_finite()) {
            return fail("it contains a value that is not finite".to_owned());
        }
        Ok(())
    }
}

/// Log likelihood of all records together, as the chains see it.
///
/// With the prior it gives a posterior that is normal in the chains' unconstrained values and has the moments of the guess.
pub(super) struct StandIn<'a> {
    spec: &'a JobSpec,
    transform: Transform,
    /// Centre of the posterior, unconstrained.
    mean: Vec<f64>,
    /// Negative Hessian of the log density.
    precision: Vec<Vec<f64>>,
    /// Conditional posterior sd of each coordinate.
    pub(super) conditional_sd: Vec<f64>,
}

impl<'a> StandIn<'a> {
    pub(super) fn new(spec: &'a JobSpec, guess: &Guess) -> Result<Self, PlanError> {
        guess.check(spec)?;
        let transform = spec.transform();
        let boxes = transform.unconstrained_box(&spec.support);
        let inside = |(u, within): (f64, &Interval)| u.clamp(within.min, within.max);
        let mean: Vec<f64> = transform.unconstrain(&guess.mean).into_iter().zip(&boxes).map(inside).collect();
        let precision =
            covariance(&transform, &mean, &guess.covariance).and_then(|covariance| inverse(&covariance)).ok_or_else(|| {
                PlanError::Guess("the covariance is not positive definite: set sds above 0 and weaker correlations".to_owned())
            })?;
        let conditional_sd = precision.iter().enumerate().map(|(j, row)| row[j].sqrt().recip()).collect();
        Ok(Self { spec, transform, mean, precision, conditional_sd })
    }

    /// Mean and precision of the posterior in unconstrained values.
    pub(super) fn moments(&self) -> (&[f64], &[Vec<f64>]) {
        (&self.mean, &self.precision)
    }

    /// Returns the gradient at `theta` in the frame of these numbers, in lattice units. Each component is the sum over all
    /// records and a constant per record.
    pub(super) fn gradient(&self, theta: &[f64], numbers: &[f64]) -> Vec<(f64, f64)> {
        let at = self.transform.unconstrain(theta);
        let Some(frame) = Frame::new(numbers, at.len()) else { return Vec::new() };
        let slope = |j: usize| {
            let by = MOVED * self.conditional_sd[j];
            let moved = |by: f64| {
                let mut u = at.clone();
                u[j] += by;
                self.log_ratio(theta, &self.transform.constrain(&u))
            };
            (moved(by) - moved(-by)) / (2.0 * by)
        };
        let gradient: Vec<f64> = (0..at.len()).map(slope).collect();
        let component = |k: usize| -> f64 { frame.row(k).iter().zip(&gradient).map(|(row, slope)| row * slope).sum() };
        (0..at.len()).map(|k| (GRADIENT_SCALE * component(k), GRADIENT_SCALE * frame.shift()[k])).collect()
    }

    /// Returns the information counted in these scales, in the form of [`Self::gradient`]; `None` for a model without scores.
    pub(super) fn information(&self, model: &dyn Model, scales: &[f64]) -> Option<Vec<(f64, f64)>> {
        let totals = as_released(
            model.scores()?.as_ref(),
            &self.transform.constrain(&self.mean),
            &self.precision,
            scales.try_into().ok()?,
        );
        Some(totals.into_iter().map(|total| (total, 0.0)).collect())
    }

    /// Returns the log likelihood ratio of `to` against `from`.
    pub(super) fn log_ratio(&self, from: &[f64], to: &[f64]) -> f64 {
        let [at, towards] = [from, to].map(|theta| self.transform.unconstrain(theta));
        // Computes -1/2 (to - from)' A (to + from - 2 m) in one product, without cancellation.
        let step: Vec<f64> = towards.iter().zip(&at).map(|(t, f)| t - f).collect();
        let sum: Vec<f64> = towards.iter().zip(&at).zip(&self.mean).map(|((t, f), m)| t + f - 2.0 * m).collect();
        let product: f64 =
            self.precision.iter().zip(&step).map(|(row, s)| s * row.iter().zip(&sum).map(|(a, x)| a * x).sum::<f64>()).sum();
        // The prior's information is not part of the likelihood.
        let prior = |theta: &[f64], u: &[f64]| self.spec.log_prior(theta) + self.transform.log_jacobian(u);
        -0.5 * product - (prior(to, &towards) - prior(from, &at))
    }
}

/// Covariance of the unconstrained values at `u` that corresponds to the covariance `of_theta` of theta; `None` if there is none.
///
/// Sds without correlations are taken for the sds of independent unconstrained values: parameters that sum to 1 cannot be
/// independent themselves.
fn covariance(transform: &Transform, u: &[f64], of_theta: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let d = u.len();
    let parameters = transform.parameters();
    if is_diagonal(of_theta) {
        // A parameter depends on its own unconstrained value and on the previous ones.
        let slopes = slopes(u, |u| transform.constrain(u));
        let mut variances: Vec<f64> = Vec::with_capacity(d);
        for (k, parameter) in parameters.iter().enumerate() {
            let before: f64 = variances.iter().enumerate().map(|(j, v)| slopes[j][*parameter].powi(2) * v).sum();
            let all = of_theta[*parameter][*parameter];
            // If the sds are impossible for shares of a whole, the value itself gets a tenth of the variance.
            variances.push((all - before).max(0.1 * all) / slopes[k][*parameter].powi(2));
        }
        let square = |i: usize, j: usize| if i == j { variances[i] } else { 0.0 };
        return Some((0..d).map(|i| (0..d).map(|j| square(i, j)).collect()).collect());
    }
    let theta = transform.constrain(u);
    let slopes = slopes(&theta, |theta| transform.unconstrain(theta));
    let entry = |i: usize, j: usize| -> f64 {
        let rows = of_theta.iter().zip(&slopes);
        rows.map(|(row, slope)| slope[i] * row.iter().zip(&slopes).map(|(c, other)| c * other[j]).sum::<f64>()).sum()
    };
    Some((0..d).map(|i| (0..d).map(|j| entry(i.min(j), i.max(j))).collect()).collect())
}

fn is_diagonal(matrix: &[Vec<f64>]) -> bool {
    matrix.iter().enumerate().all(|(i, row)| row.iter().enumerate().all(|(j, c)| i == j || *c == 0.0))
}

/// Derivatives of the values of a smooth map by its arguments, `[argument][value]`, by central differences.
fn slopes(at: &[f64], map: impl Fn(&[f64]) -> Vec<f64>) -> Vec<Vec<f64>> {
    let one = |j: usize| {
        let h = MOVED * at[j].abs().max(MOVED);
        let moved = |by: f64| {
            let mut moved = at.to_vec();
            moved[j] += by;
            map(&moved)
        };
        let (up, down) = (moved(h), moved(-h));
        up.iter().zip(&down).map(|(up, down)| (up - down) / (2.0 * h)).collect()
    };
    (0..at.len()).map(one).collect()
}

/// Inverts a symmetric positive definite matrix; `None` for any other matrix.
fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let d = matrix.len();
    let factor = Matrix::from_fn(d, |i, j| matrix[i][j]).cholesky()?;
    let columns: Vec<Vec<f64>> = (0..d).map(|j| factor.solve(Matrix::identity(d).row(j))).collect();
    Some((0..d).map(|i| columns.iter().map(|column| column[i]).collect()).collect())
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
