//! Score stages: what is asked at a point, and what the totals say of it.

use super::coding::Coding;
use super::frame::Frame as Shape;
use super::gaussian::GaussianPrior;
use super::stage::ScoreStage;
use crate::mechanism::{NoiseScale, QueryKind, STEP};
use crate::model::{DIAGONAL, GRADIENT_SCALE, ScoreModel};
use crate::parameter::LEAST_MAGNITUDE;
use crate::query::vector::MOST_SCALE;
use crate::sampler::matrix::Matrix;
use crate::sampler::round::Query;

/// Corners beyond this many are not weighed one by one.
const MOST_POINTS: usize = 12_000;
/// The part of a frame's length that the listed corners are to fill: between two corners a record may lie a little
/// farther out.
const FILLED: f64 = 0.98;

/// What was asked of the parties at one point.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The point in coded coordinates.
    at: Vec<f64>,
    shape: Shape,
    /// What information is counted in, of the linear predictor and of the family's own parameter.
    scales: [f64; 2],
    /// Scales of the noise of the gradient and of the curvature.
    noise: [NoiseScale; 2],
}

/// What the two queries of a stage say, before their noise is decided.
pub(crate) struct Question {
    /// theta.
    pub(crate) theta: Vec<f64>,
    /// The frame's numbers.
    pub(crate) frame: Vec<f64>,
    pub(crate) scales: [f64; 2],
    at: Vec<f64>,
    shape: Shape,
}

impl Question {
    /// The question at a point: the gradient in a frame that is shaped for the covariance that is expected, and the
    /// information.
    pub(crate) fn new(
        scores: &dyn ScoreModel,
        coding: &Coding,
        (theta, at): (Vec<f64>, Vec<f64>),
        weight: &Matrix,
        centred: bool,
    ) -> Self {
        let points = scores.extreme_gradients(&theta).filter(|points| points.len() <= MOST_POINTS);
        let coded = points.map(|points| points.iter().map(|z| coding.gradient(z)).collect::<Vec<_>>());
        let shape = match coded {
            Some(points) => Shape::shaped(&points, weight, centred),
            None => {
                let [of_coefficients, of_own] = scores.gradient_bound(&theta);
                Shape::ball(at.len(), (of_coefficients * of_coefficients + of_own * of_own).sqrt())
            }
        };
        let shape = shape.shrunk(FILLED.recip());
        let rows = coding.of_gradient(&shape.matrix);
        let shift = shape.matrix.apply(&shape.centre);
        // A tiny number takes a processor longer: it is 0.
        let plain = |x: f64| if x.abs() < LEAST_MAGNITUDE { 0.0 } else { x };
        let frame = rows.entries().iter().copied().chain(shift.into_iter().map(|b| -b)).map(plain).collect();
        // What a record's share of the scale is rounded to is at most 1.
        let scales = scores.most_information(&theta).map(|most| if most > LEAST_MAGNITUDE { most.min(MOST_SCALE) } else { 1.0 });
        Self { theta, frame, scales, at, shape }
    }

    /// The covariance of the noise of the score, where each component of what is released has noise of this sd, in units of what
    /// a record contributes at most.
    pub(crate) fn score_noise(&self, sd: f64) -> Matrix {
        self.shape.noise(sd)
    }

    /// The two queries, at these scales of noise.
    pub(crate) fn ask(self, noise: [NoiseScale; 2]) -> (Vec<Query>, Asked) {
        let parameters = self.theta.len() as u32;
        let gradient = Query {
            chain: 0,
            kind: QueryKind::Gradient { parameters },
            from: self.theta.clone(),
            to: self.frame,
            noise: noise[0],
        };
        let curvature = Query {
            chain: 1,
            kind: QueryKind::Curvature { parameters },
            from: self.theta,
            to: self.scales.to_vec(),
            noise: noise[1],
        };
        (vec![gradient, curvature], Asked { at: self.at, shape: self.shape, scales: self.scales, noise })
    }
}

impl Asked {
    /// The stage that the totals over `parties` make; `centred` is the number of records of those that take the
    /// frame's centre off each, all of them or none.
    pub(crate) fn stage(&self, gradient: &[i128], curvature: &[i128], parties: usize, records: f64, own: bool) -> ScoreStage {
        let sums: Vec<f64> = gradient.iter().map(|total| *total as f64 / GRADIENT_SCALE).collect();
        let parties = (parties as f64).sqrt();
        let noise = parties * self.noise[0].units() as f64 / GRADIENT_SCALE;
        let order = self.at.len();
        let units = self.noise[1].sd();
        ScoreStage {
            at: self.at.clone(),
            score: self.shape.total(&sums, records),
            score_noise: self.shape.noise(noise),
            information: triangle(order, curvature, |j| self.scale(j, order, own)),
            information_sd: parties * units * self.scales[0],
            own_sd: own.then(|| parties * units * self.scales[1]),
        }
    }

    fn scale(&self, j: usize, order: usize, own: bool) -> f64 {
        self.scales[usize::from(own && j + 1 == order)]
    }
}

/// The symmetric matrix of a released upper triangle; entry (i, j) is multiplied by the root of both scales.
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

/// The covariance that is expected before anything is released: that of a design whose numeric predictors are even
/// over their bounds and whose levels are equally frequent.
pub(crate) fn expected_covariance(
    scores: &dyn ScoreModel,
    theta: &[f64],
    records: f64,
    prior: &GaussianPrior,
    coding: &[bool],
) -> Matrix {
    let order = theta.len();
    let most = scores.most_information(theta);
    let variance = |j: usize| {
        let mut unit = vec![0.0; order];
        unit[j] = 1.0;
        if j >= scores.coefficients() {
            return most[1];
        }
        let (low, high) = scores.range(&unit);
        // Even over the range: its square's mean. 1 for the intercept and for what is coded.
        let square = if coding.get(j).copied().unwrap_or(false) { 1.0 } else { (low * low + low * high + high * high) / 3.0 };
        most[0] * square
    };
    let information: Vec<f64> = (0..order).map(|j| records * variance(j) + prior.precision[j]).collect();
    Matrix::diagonal(&information.iter().map(|x| x.max(f64::MIN_POSITIVE).recip()).collect::<Vec<_>>())
}
