//! Scores and information matrices: the queries at a point, and the estimates from their totals.

use super::coding::Coding;
use super::frame::Frame as Shape;
use super::gaussian::GaussianPrior;
use super::information::Information;
use crate::sampler::matrix::Matrix;
use conclave_common::model::{ObservedForm, ScoreModel};
use conclave_common::parameter::LEAST_MAGNITUDE;
use conclave_common::query::MOST_SCALE;
use conclave_common::query::Query;
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP};
use conclave_privacy::pass::GRADIENT_SCALE;
use conclave_privacy::pass::hold::DIAGONAL;

/// Maximum number of corners that are weighed one by one.
const MOST_POINTS: usize = 24_000;
/// Part of a frame's length that the listed corners fill. Between two corners, a record may lie a little farther out.
pub(crate) const FILLED: f64 = 0.98;

/// A pending query for a score.
#[derive(Debug, Clone)]
pub(crate) struct PendingScore {
    /// Point of the query, in coded coordinates.
    at: Vec<f64>,
    shape: Shape,
    noise: NoiseScale,
}

/// A pending query for an information matrix.
#[derive(Debug, Clone)]
pub(crate) struct PendingInformation {
    /// Point of the query, in coded coordinates.
    at: Vec<f64>,
    /// Scales of the linear predictor and of the family's own parameter.
    scales: [f64; 2],
    noise: NoiseScale,
    /// Relation of the released information to the observed one.
    form: ObservedForm,
}

/// A query for a gradient at a point, before its noise is chosen.
pub(crate) struct GradientQuery {
    /// theta.
    pub(crate) theta: Vec<f64>,
    /// Numbers that encode the frame.
    pub(crate) frame: Vec<f64>,
    at: Vec<f64>,
    shape: Shape,
}

/// Returns the scales of the information at a point: of the linear predictor and of the family's own parameter.
pub(crate) fn information_scales(scores: &dyn ScoreModel, theta: &[f64]) -> [f64; 2] {
    // A record's share of the scale, which is rounded, is at most 1.
    scores.most_information(theta).map(|most| if most > LEAST_MAGNITUDE { most.min(MOST_SCALE) } else { 1.0 })
}

/// Returns the coded gradients at a point of single records at the corners of the declared columns; `None` if they are too many
/// to list.
pub(crate) fn coded_extremes(scores: &dyn ScoreModel, coding: &Coding, theta: &[f64]) -> Option<Vec<Vec<f64>>> {
    let points = scores.extreme_gradients(theta).filter(|points| points.len() <= MOST_POINTS)?;
    Some(points.iter().map(|z| coding.gradient(z)).collect())
}

/// Returns the greatest length of a record's coded gradient at a point.
pub(crate) fn longest(scores: &dyn ScoreModel, theta: &[f64]) -> f64 {
    let [of_coefficients, of_own] = scores.gradient_bound(theta);
    (of_coefficients * of_coefficients + of_own * of_own).sqrt()
}

/// Encodes a frame of coded gradients as a query's numbers.
pub(crate) fn frame_numbers(coding: &Coding, shape: &Shape) -> Vec<f64> {
    let rows = coding.of_gradient(&shape.matrix);
    let shift = shape.matrix.apply(&shape.centre);
    rows.entries().iter().copied().chain(shift.into_iter().map(|b| -b)).map(plain).collect()
}

/// Replaces a tiny number by 0, because subnormal numbers slow a processor down.
pub(crate) fn plain(x: f64) -> f64 {
    if x.abs() < LEAST_MAGNITUDE { 0.0 } else { x }
}

impl GradientQuery {
    /// Builds the query at a point: the gradient in a frame that is shaped for the expected covariance.
    pub(crate) fn new(
        scores: &dyn ScoreModel,
        coding: &Coding,
        (theta, at): (Vec<f64>, Vec<f64>),
        weight: &Matrix,
        centred: bool,
    ) -> Self {
        let shape = match coded_extremes(scores, coding, &theta) {
            Some(points) => Shape::shaped(&points, weight, centred),
            None => Shape::ball(at.len(), longest(scores, &theta)),
        };
        let shape = shape.shrunk(FILLED.recip());
        let frame = frame_numbers(coding, &shape);
        Self { theta, frame, at, shape }
    }

    /// Returns the covariance of the score's noise if each released component has noise of this sd, in units of the largest
    /// contribution of a record.
    pub(crate) fn score_noise(&self, sd: f64) -> Matrix {
        self.shape.noise(sd)
    }

    /// Returns the query for the gradient at this noise scale, and its pending state.
    pub(crate) fn ask(self, noise: NoiseScale) -> (Query, PendingScore) {
        let kind = QueryKind::Gradient { parameters: self.theta.len() as u32 };
        let query = Query { chain: 0, kind, from: self.theta, to: self.frame, noise };
        (query, PendingScore { at: self.at, shape: self.shape, noise })
    }
}

impl PendingScore {
    pub(crate) fn at(&self) -> &[f64] {
        &self.at
    }

    /// Computes the score from the totals over `parties`, and the covariance of its noise. `records` is the number of records
    /// that subtract the frame's centre: all of them, or 0.
    pub(crate) fn score(&self, gradient: &[i128], parties: usize, records: f64) -> (Vec<f64>, Matrix) {
        let sums: Vec<f64> = gradient.iter().map(|total| *total as f64 / GRADIENT_SCALE).collect();
        let noise = (parties as f64).sqrt() * self.noise.units() as f64 / GRADIENT_SCALE;
        (self.shape.total(&sums, records), self.shape.noise(noise))
    }
}

impl PendingInformation {
    /// Returns the query for the information of a model at a point, `(theta, at)`, with `chain` as its number in the round.
    pub(crate) fn ask(
        scores: &dyn ScoreModel,
        (theta, at): (Vec<f64>, Vec<f64>),
        scales: [f64; 2],
        noise: NoiseScale,
        chain: u32,
    ) -> (Query, Self) {
        let kind = QueryKind::Curvature { parameters: theta.len() as u32 };
        let form = scores.observed(&theta);
        (Query { chain, kind, from: theta, to: scales.to_vec(), noise }, Self { at, scales, noise, form })
    }

    /// Builds the information matrix from the totals over `parties`.
    ///
    /// The products of a coefficient's and the family's own parameter's vectors are 0 for every record, so what is released there
    /// is noise and is left out.
    pub(crate) fn information(&self, curvature: &[i128], parties: usize, own: bool) -> Information {
        let (order, sd) = (self.at.len(), (parties as f64).sqrt() * self.noise.sd());
        let scale = |j: usize| self.scales[usize::from(own && j + 1 == order)];
        let mut matrix = triangle(order, curvature, scale);
        let (sd, mut own_sd) = (sd * self.scales[0], own.then(|| sd * self.scales[1]));
        if let (Some(own_sd), Some(last)) = (&mut own_sd, order.checked_sub(1)) {
            for j in 0..last {
                (matrix[(j, last)], matrix[(last, j)]) = (0.0, 0.0);
            }
            if let ObservedForm::Counts { intercept: true, .. } = self.form {
                matrix[(last, last)] -= matrix[(0, 0)];
                *own_sd = libm::hypot(*own_sd, sd);
            }
        }
        if let ObservedForm::BothEnds { intervals } = self.form {
            // No record is in two intervals.
            let pairs = (0..intervals).flat_map(|j| (0..intervals).map(move |k| (j, k))).filter(|(j, k)| j != k);
            pairs.for_each(|pair| matrix[pair] = 0.0);
        }
        Information { at: self.at.clone(), matrix, sd, own_sd, form: self.form }
    }
}

/// Builds the symmetric matrix of a released upper triangle; entry (i, j) is multiplied by the root of both scales.
pub(crate) fn triangle(order: usize, totals: &[i128], scale: impl Fn(usize) -> f64) -> Matrix {
    let mut matrix = Matrix::zeros(order);
    let mut totals = totals.iter();
    for i in 0..order {
        for j in i..order {
            let value = totals.next().map_or(0.0, |total| STEP * *total as f64) * (scale(i) * scale(j)).sqrt();
            let value = if i == j { value / DIAGONAL } else { value };
            matrix[(i, j)] = value;
            matrix[(j, i)] = value;
        }
    }
    matrix
}

/// Returns the totals, in lattice units, as which an information matrix in a model's own coordinates would be released at `theta` in these
/// scales. It is the inverse of [`PendingInformation::information`].
pub(crate) fn as_released(scores: &dyn ScoreModel, theta: &[f64], plain: &[Vec<f64>], scales: [f64; 2]) -> Vec<f64> {
    let (order, own) = (plain.len(), scores.parameters() > scores.coefficients());
    let mut coded =
        Coding::new(&scores.coding(), scores.intercepts(), order).moments(&Matrix::from_fn(order, |i, j| plain[i][j]));
    if let ObservedForm::Counts { intercept: true, .. } = scores.observed(theta) {
        coded[(order - 1, order - 1)] += coded[(0, 0)];
    }
    let scale = |j: usize| scales[usize::from(own && j + 1 == order)];
    let entry = |i: usize, j: usize| {
        let value = coded[(i, j)] / (scale(i) * scale(j)).sqrt() / STEP;
        if i == j { DIAGONAL * value } else { value }
    };
    (0..order).flat_map(|i| (i..order).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect()
}

/// Returns the covariance that is expected before the first release: that of a design whose numeric predictors are uniform over
/// their bounds and whose levels are equally frequent.
pub(crate) fn expected_covariance(scores: &dyn ScoreModel, theta: &[f64], records: f64, prior: &GaussianPrior) -> Matrix {
    let of_one = scores.even_information(theta);
    let variance = |(one, precision): (&f64, &f64)| (records * one + precision).max(f64::MIN_POSITIVE).recip();
    Matrix::diagonal(&of_one.iter().zip(&prior.precision).map(variance).collect::<Vec<_>>())
}

#[cfg(test)]
#[path = "tests/scores.rs"]
mod tests;
