//! A noisy information matrix, and the combination of several.

use crate::sampler::matrix::{Matrix, dot};
use conclave_common::model::ObservedForm;

/// Assumed relative change of an information matrix if the linear predictor moves by 1.
const CHANGE: f64 = 0.5;
/// Move of the linear predictor beyond which an information matrix is not informative.
const FARTHEST: f64 = 5.0;

/// Part of the second-order term of counts' coefficients that is not known from released numbers: of the pairs of predictors
/// without the intercept.
const COUNTS_LEFT_OUT: f64 = 0.5;

/// The greatest `|x'direction|` over the public box of a record's design row `x`.
pub(crate) type Reach<'a> = &'a dyn Fn(&[f64]) -> f64;

/// An expected information matrix at a public point, released by the parties and summed over them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Information {
    /// The point, in coordinates.
    pub(crate) at: Vec<f64>,
    /// Symmetric and noisy; it need not be positive definite.
    pub(crate) matrix: Matrix,
    /// Noise sd of an off-diagonal entry; diagonal entries have sqrt 2 times that.
    pub(crate) sd: f64,
    /// Noise sd of the last coordinate if it is the family's own parameter: its diagonal entry has noise of sqrt 2 times this sd.
    /// Its off-diagonal entries are not released and have no noise.
    pub(crate) own_sd: Option<f64>,
    /// Relation to the observed information.
    pub(crate) form: ObservedForm,
}

impl Information {
    /// Returns the covariance of the noise after multiplication by a step: `s_H² (delta delta' + |delta|² I)`. For the family's
    /// own parameter, only its diagonal entry contributes.
    pub(crate) fn propagated_noise(&self, delta: &[f64]) -> Matrix {
        if let ObservedForm::BothEnds { intervals } = self.form {
            return self.propagated_apart(delta, intervals);
        }
        let variance = self.sd * self.sd;
        let coefficients = self.coefficients();
        let length = variance * dot(&delta[..coefficients], &delta[..coefficients]);
        // The intercept's entry was subtracted from the own parameter's, so the two share its noise.
        let shared = matches!(self.form, ObservedForm::Counts { intercept: true, .. });
        Matrix::from_fn(delta.len(), |i, j| match (i < coefficients && j < coefficients, self.own_sd) {
            (true, _) => variance * (delta[i] * delta[j]) + if i == j { length } else { 0.0 },
            (false, Some(own)) if i == j => 2.0 * own * own * (delta[i] * delta[i]),
            (false, Some(_)) if shared && i.min(j) == 0 => -2.0 * variance * (delta[i] * delta[j]),
            (false, _) => 0.0,
        })
    }

    /// Returns the same where the products of the first coordinates are 0 and have no noise.
    fn propagated_apart(&self, delta: &[f64], first: usize) -> Matrix {
        let variance = self.sd * self.sd;
        let noisy = |i: usize, j: usize| i == j || i >= first || j >= first;
        let row = |i: usize| (0..delta.len()).filter(|j| noisy(i, *j)).map(|j| delta[j] * delta[j]).sum::<f64>();
        Matrix::from_fn(delta.len(), |i, j| match (i == j, noisy(i, j)) {
            (true, _) => variance * (row(i) + delta[i] * delta[i]),
            (false, true) => variance * delta[i] * delta[j],
            (false, false) => 0.0,
        })
    }

    /// Returns whether this is the mean of the information at its point and at the answer.
    pub(crate) fn is_of_both_ends(&self) -> bool {
        matches!(self.form, ObservedForm::BothEnds { .. })
    }

    /// Combines several by their precision, at the mean of their points. Returns `None` for an empty slice.
    pub(crate) fn pooled(parts: &[Self]) -> Option<Self> {
        Self::weighed(parts, &parts.iter().map(|part| part.sd * part.sd).collect::<Vec<_>>())
    }

    /// Estimates the information at a point from several, weighted by their noise and their distance from the point. Returns
    /// `None` for an empty slice.
    pub(crate) fn near(parts: &[Self], at: &[f64], reach: Reach<'_>) -> Option<Self> {
        let variance = |part: &Self| {
            let path: Vec<f64> = part.at.iter().zip(at).map(|(from, to)| to - from).collect();
            let changed = CHANGE * libm::expm1(reach(&path).min(FARTHEST)) * part.size();
            part.sd * part.sd + changed * changed
        };
        Self::weighed(parts, &parts.iter().map(variance).collect::<Vec<_>>())
    }

    /// Returns the mean of several with weights inverse to these variances.
    fn weighed(parts: &[Self], variances: &[f64]) -> Option<Self> {
        let first = parts.first()?;
        let least = variances.iter().copied().fold(f64::INFINITY, f64::min);
        // The weights are equal if a variance is 0 or NaN.
        let raw: Vec<f64> = variances.iter().map(|v| if *v > 0.0 && least > 0.0 { least / v } else { 1.0 }).collect();
        let all: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / all).collect();
        let mut pooled = Self {
            at: vec![0.0; first.at.len()],
            matrix: Matrix::zeros(first.matrix.order()),
            sd: 0.0,
            own_sd: first.own_sd.map(|_| 0.0),
            form: parts.last().map_or(first.form, |last| last.form),
        };
        for (part, weight) in parts.iter().zip(&weights) {
            pooled.at.iter_mut().zip(&part.at).for_each(|(sum, x)| *sum += weight * x);
            pooled.matrix = pooled.matrix.plus(&part.matrix, *weight);
            pooled.sd = libm::hypot(pooled.sd, weight * part.sd);
            pooled.own_sd = pooled.own_sd.map(|sd| libm::hypot(sd, weight * part.own_sd.unwrap_or(0.0)));
        }
        Some(pooled)
    }

    /// Returns the observed information half way along the path from a point with this score to the answer, where this
    /// information was released. `records` is their number, or a guess.
    ///
    /// The midpoint rule is of the third order for the observed information alone; the expected one leaves a term of second order
    /// wherever the parameters are not canonical. Half way, about half of the score is left. The released information differs
    /// from the observed one by terms linear in that remainder; see [`ObservedForm`].
    pub(crate) fn observed_half_way(&self, score: &[f64], records: f64) -> Self {
        if self.form == ObservedForm::Canonical || self.is_of_both_ends() {
            return self.clone();
        }
        Self { matrix: self.matrix.clone().plus(&self.terms_of(score, records), 1.0), ..self.clone() }
    }

    /// Returns the covariance of the residual's noise that is due to the score's: directly, and through the terms of
    /// [`Information::observed_half_way`] multiplied by this step.
    pub(crate) fn noise_of_score(&self, noise: &Matrix, step: &[f64], records: f64) -> Matrix {
        if self.form == ObservedForm::Canonical || self.is_of_both_ends() {
            return noise.clone();
        }
        let order = step.len();
        let unit = |k: usize| (0..order).map(|j| f64::from(u8::from(j == k))).collect::<Vec<f64>>();
        let through: Vec<Vec<f64>> = (0..order).map(|k| self.terms_of(&unit(k), records).apply(step)).collect();
        let map = Matrix::from_fn(order, |i, k| f64::from(u8::from(i == k)) - through[k][i]);
        map.times(noise).times(&map.transposed()).symmetrised()
    }

    /// Returns the difference between the observed and the released information where half of this score is left.
    fn terms_of(&self, score: &[f64], records: f64) -> Matrix {
        let mut terms = Matrix::zeros(score.len());
        let last = score.len().saturating_sub(1);
        let half = |j: usize| 0.5 * score[j];
        let mut add = |i: usize, j: usize, value: f64| {
            terms[(i, j)] += value;
            if i != j {
                terms[(j, i)] += value;
            }
        };
        match self.form {
            ObservedForm::Canonical | ObservedForm::BothEnds { .. } => {}
            ObservedForm::HeavyTails { mixed, .. } => (0..last).for_each(|j| add(j, last, mixed * half(j))),
            ObservedForm::Counts { size, intercept, .. } => {
                // The mean of mu / (kappa + mu) over the records. An intercept's entry is the sum of kappa mu / (kappa + mu).
                let filled = if intercept { (self.matrix[(0, 0)] / (size * records)).clamp(0.0, 1.0) } else { 0.5 };
                (0..last).for_each(|j| add(j, last, filled * half(j)));
                if intercept {
                    (0..last).for_each(|j| add(0, j, filled * half(j)));
                    add(last, last, -(1.0 - filled) * half(0));
                }
                add(last, last, half(last));
            }
            ObservedForm::Times => {
                add(0, 0, -half(0));
                add(0, 1, -half(1));
            }
        }
        terms
    }

    /// Returns the largest relative change of a record's slope per unit of the linear predictor's move that
    /// [`Information::observed_half_way`] leaves out.
    pub(crate) fn left_out(&self) -> f64 {
        match self.form {
            ObservedForm::Counts { most, .. } => 0.5 * COUNTS_LEFT_OUT * most,
            _ => 0.0,
        }
    }

    /// Returns the rate at which the score's expectation bends along the logarithm of the family's own parameter: its second
    /// derivative in the true value over its first. 0 without such a parameter.
    ///
    /// A statistic of scatter is nearly linear in the parameter itself where that is small, so its logarithm is known better where
    /// it is larger. For heavy tails the rate is `2 (nu - 1) / (nu + 5)`, exactly. For counts `exp(-0.58 a)` is within 0.1 of the
    /// rate for dispersions `a` from 0.3 to 5 and mean counts from 0.7 to 10.
    pub(crate) fn own_bend(&self) -> f64 {
        match self.form {
            ObservedForm::HeavyTails { mixed, .. } => 2.0 * mixed - 2.0,
            ObservedForm::Counts { size, .. } => libm::exp(-0.58 / size),
            ObservedForm::Canonical | ObservedForm::BothEnds { .. } | ObservedForm::Times => 0.0,
        }
    }

    /// Returns the mean of the coefficients' diagonal entries, at least the noise.
    fn size(&self) -> f64 {
        let coefficients = self.coefficients();
        let sum: f64 = self.matrix.diagonal_entries()[..coefficients].iter().sum();
        (sum / coefficients.max(1) as f64).max(self.sd)
    }

    fn coefficients(&self) -> usize {
        self.at.len() - usize::from(self.own_sd.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACH: Reach<'static> = &|d| d.iter().map(|x| x.abs()).sum();

    fn information(at: f64, value: f64, sd: f64) -> Information {
        Information {
            at: vec![at, 0.0],
            matrix: Matrix::identity(2).scaled(value),
            sd,
            own_sd: None,
            form: ObservedForm::Canonical,
        }
    }

    #[test]
    fn the_more_precise_counts_for_more() {
        let Some(pooled) = Information::pooled(&[information(0.0, 10.0, 1.0), information(1.0, 20.0, 2.0)]) else { return };
        assert!((pooled.matrix[(0, 0)] - 12.0).abs() < 1e-12 && (pooled.at[0] - 0.2).abs() < 1e-12);
        // 1 / (1 + 1/4).
        assert!((pooled.sd * pooled.sd - 0.8).abs() < 1e-12);
        assert_eq!(Information::pooled(&[]), None);
    }

    #[test]
    fn what_is_far_off_hardly_counts() {
        let parts = [information(0.0, 100.0, 1.0), information(4.0, 400.0, 1.0)];
        let Some(near) = Information::near(&parts, &[0.1, 0.0], REACH) else { return };
        assert!((near.matrix[(0, 0)] - 100.0).abs() < 0.1, "{near:?}");
        // Exact releases have equal weights, and nothing is lost.
        let exact = [information(0.0, 1.0, 0.0), information(0.0, 3.0, 0.0)];
        assert_eq!(Information::near(&exact, &[0.0, 0.0], REACH).map(|all| all.matrix[(0, 0)]), Some(2.0));
    }

    /// Half of the score is left half way. The terms are those of `ObservedForm`.
    #[test]
    fn the_observed_information_differs_by_half_of_the_score() {
        let with = |form| Information { form, ..information(0.0, 100.0, 1.0) };
        let score = [8.0, -4.0];
        let terms = |form| with(form).observed_half_way(&score, 1000.0).matrix.plus(&Matrix::identity(2).scaled(-100.0), 1.0);
        assert_eq!(terms(ObservedForm::Canonical).entries(), [0.0; 4]);
        assert_eq!(terms(ObservedForm::HeavyTails { mixed: 1.5, unit: 1.0 }).entries(), [0.0, 6.0, 6.0, 0.0]);
        assert_eq!(terms(ObservedForm::Times).entries(), [-4.0, 2.0, 2.0, 0.0]);
        // Of 1000 records, an intercept's 100 of a size of .2: a share of .5.
        let counts = ObservedForm::Counts { size: 0.2, most: 0.9, intercept: true };
        assert_eq!(terms(counts).entries(), [2.0, 2.0, 2.0, -2.0 - 2.0]);
        // With the step (0, d) noise of the score passes through these terms.
        let noise = Matrix::diagonal(&[4.0, 9.0]);
        let through = with(ObservedForm::Times).noise_of_score(&noise, &[1.0, 0.0], 1000.0);
        // Half of the unit vectors' terms: (-1/2, 0) of the first, (0, -1/2) of the second.
        assert_eq!(through.entries(), [9.0, 0.0, 0.0, 20.25]);
        assert_eq!(with(ObservedForm::Canonical).noise_of_score(&noise, &[1.0, 0.0], 1000.0), noise);
    }

    #[test]
    fn noise_goes_through_a_step_as_it_does_through_a_matrix() {
        // A symmetric matrix with entries of sd s, sqrt 2 s on the diagonal, times (1, 2).
        let through = information(0.0, 1.0, 0.5).propagated_noise(&[1.0, 2.0]);
        assert_eq!(through.entries(), [0.25 * 6.0, 0.25 * 2.0, 0.25 * 2.0, 0.25 * 9.0]);
        // Without noise in the product of the first two of three coordinates, (1, 2, 3).
        let apart = Information { form: ObservedForm::BothEnds { intervals: 2 }, ..information(0.0, 1.0, 0.5) };
        let through = apart.propagated_noise(&[1.0, 2.0, 3.0]);
        assert_eq!(
            through.entries(),
            [0.25 * 11.0, 0.0, 0.25 * 3.0, 0.0, 0.25 * 17.0, 0.25 * 6.0, 0.25 * 3.0, 0.25 * 6.0, 0.25 * 23.0]
        );
        let own = Information { own_sd: Some(3.0), ..information(0.0, 1.0, 0.5) }.propagated_noise(&[1.0, 2.0]);
        assert_eq!(own.entries(), [0.5, 0.0, 0.0, 72.0]);
    }
}
