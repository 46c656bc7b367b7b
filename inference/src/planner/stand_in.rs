//! A stand-in for a job's likelihood, made of a guess of the posterior.

use super::outcome::PlanError;
use crate::sampler::as_released;
use conclave_common::job::{JobSpec, PlanSpec};
use conclave_common::model::Model;
use conclave_common::parameter::{Interval, Transform};
use conclave_privacy::pass::{Frame, GRADIENT_SCALE};

/// How far a value is moved to see what moves with it, as a share of it.
const MOVED: f64 = 1e-4;

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

    /// A guess around theta, where the unconstrained values are independent and have these standard deviations.
    pub(super) fn around(spec: &JobSpec, records: Vec<u64>, theta: &[f64], sd: &[f64]) -> Self {
        let transform = spec.transform();
        let slopes = slopes(&transform.unconstrain(theta), |u| transform.constrain(u));
        let entry = |a: usize, b: usize| slopes.iter().zip(sd).map(|(slope, sd)| slope[a] * sd * sd * slope[b]).sum();
        let covariance = (0..theta.len()).map(|a| (0..theta.len()).map(|b| entry(a.min(b), a.max(b))).collect()).collect();
        Self { records, mean: theta.to_vec(), covariance }
    }

    /// The guess of a job's `[plan]`, of these records; `None` where it guesses no posterior.
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

    /// Whether it says nothing of how parameters go together.
    pub(super) fn is_independent(&self) -> bool {
        is_diagonal(&self.covariance)
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

/// The log likelihood of all records together, as far as chains see it: with the prior it makes a posterior that is normal in the
/// unconstrained values that they walk in, of the guess's moments.
pub(super) struct StandIn<'a> {
    spec: &'a JobSpec,
    transform: Transform,
    /// Where the posterior's centre is, unconstrained.
    mean: Vec<f64>,
    /// Minus the Hessian of its log density.
    precision: Vec<Vec<f64>>,
    /// Posterior sd of each coordinate given the others.
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
                PlanError::Guess("the covariance is not positive definite: give sds above 0 and milder correlations".to_owned())
            })?;
        let conditional_sd = precision.iter().enumerate().map(|(j, row)| row[j].sqrt().recip()).collect();
        Ok(Self { spec, transform, mean, precision, conditional_sd })
    }

    /// The posterior's mean and precision, in unconstrained values.
    pub(super) fn moments(&self) -> (&[f64], &[Vec<f64>]) {
        (&self.mean, &self.precision)
    }

    /// What the gradient at theta comes to in a frame of these numbers: the sums over all records, and what each of them adds besides, in
    /// lattice units.
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

    /// What the information comes to, counted in these scales: as [`Self::gradient`]. None of a model that has none.
    pub(super) fn information(&self, model: &dyn Model, scales: &[f64]) -> Option<Vec<(f64, f64)>> {
        let totals = as_released(model.scores()?.as_ref(), &self.precision, scales.try_into().ok()?);
        Some(totals.into_iter().map(|total| (total, 0.0)).collect())
    }

    /// The log likelihood ratio of `to` against `from`.
    pub(super) fn log_ratio(&self, from: &[f64], to: &[f64]) -> f64 {
        let [at, towards] = [from, to].map(|theta| self.transform.unconstrain(theta));
        // -1/2 (to - from)' A (to + from - 2 m): one product, and nothing cancels.
        let step: Vec<f64> = towards.iter().zip(&at).map(|(t, f)| t - f).collect();
        let sum: Vec<f64> = towards.iter().zip(&at).zip(&self.mean).map(|((t, f), m)| t + f - 2.0 * m).collect();
        let product: f64 =
            self.precision.iter().zip(&step).map(|(row, s)| s * row.iter().zip(&sum).map(|(a, x)| a * x).sum::<f64>()).sum();
        // What the prior knows is no part of the likelihood.
        let prior = |theta: &[f64], u: &[f64]| self.spec.log_prior(theta) + self.transform.log_jacobian(u);
        -0.5 * product - (prior(to, &towards) - prior(from, &at))
    }
}

/// The covariance of the unconstrained values where theta has this one around their point `u`; `None` where it has none.
///
/// Sds without correlations are taken for those of independent unconstrained values: parameters that add up to 1 can't be independent
/// themselves.
fn covariance(transform: &Transform, u: &[f64], of_theta: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let d = u.len();
    let parameters = transform.parameters();
    if is_diagonal(of_theta) {
        // A parameter moves with its own unconstrained value and with those before it.
        let slopes = slopes(u, |u| transform.constrain(u));
        let mut variances: Vec<f64> = Vec::with_capacity(d);
        for (k, parameter) in parameters.iter().enumerate() {
            let before: f64 = variances.iter().enumerate().map(|(j, v)| slopes[j][*parameter].powi(2) * v).sum();
            let all = of_theta[*parameter][*parameter];
            // Sds that no shares of a whole could have leave a tenth to the value itself.
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

/// How each value of a smooth map changes with each argument, `[argument][value]`, by central differences.
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
