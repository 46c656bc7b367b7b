//! Location of the answer, estimated from all stages released so far.
//!
//! A stage far from the answer carries little information about it, and its bias exceeds its noise. Each stage's residual
//! therefore gets an allowance that grows with its distance: `(a |H₊^½ delta|)² H₊ / d` in every direction and once more along
//! `H₊ delta`, where `a` is the possible change of a record's weight. Near the answer the allowance vanishes, and the stages'
//! noises average out.
//!
//! The result is a point for the next query, and never an answer: the stages share the records' own variance, which is counted
//! once per stage.

use super::gaussian::{GaussianPrior, Solution, factor, iterate_to_fixed_point, positive_part};
use super::guide::Guide;
use super::information::{Information, Reach};
use super::stage::ScoreStage;
use crate::sampler::matrix::{Matrix, dot};

/// Sd of a stage's error, as a part of the possible change of the records' weights.
const ALLOWED: f64 = 0.2;
/// Change of the linear predictor above which larger changes are treated alike.
const FARTHEST: f64 = 30.0;

/// The estimated location of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Located {
    /// Mean, in coordinates.
    pub(crate) mean: Vec<f64>,
    /// Covariance of the location.
    pub(crate) covariance: Matrix,
    /// Part of the covariance that is due to noise and distance.
    pub(crate) noise: Matrix,
}

/// One stage with the information that all stages provide about its point.
struct Part<'a> {
    stage: &'a ScoreStage,
    information: Information,
    positive: Matrix,
    /// `g̃ + H̃ at`: the residual at 0.
    origin: Vec<f64>,
}

impl Part<'_> {
    /// Returns the spread of the residual if the answer is `mean`.
    fn spread(&self, mean: &[f64], reach: Reach<'_>) -> Matrix {
        let delta: Vec<f64> = mean.iter().zip(&self.stage.at).map(|(to, at)| to - at).collect();
        let allowed = ALLOWED * libm::expm1(reach(&delta).min(FARTHEST));
        let falls = self.positive.apply(&delta);
        let around = allowed * allowed * dot(&falls, &delta).max(0.0) / delta.len() as f64;
        self.positive
            .clone()
            .scaled(1.0 + around)
            .plus(&self.stage.score_noise, 1.0)
            .plus(&self.information.propagated_noise(&delta), 1.0)
            .plus(&Matrix::outer(&falls, allowed * allowed), 1.0)
            .symmetrised()
    }
}

/// Estimates the answer's location from these stages and a prior, and from a guide if there is one, starting at `start`.
pub(crate) fn locate(
    stages: &[ScoreStage],
    (prior, guide): (&GaussianPrior, Option<&Guide>),
    start: &[f64],
    reach: Reach<'_>,
) -> Located {
    let all: Vec<Information> = stages.iter().map(|stage| stage.information.clone()).collect();
    let part = |stage| {
        let stage: &ScoreStage = stage;
        let information = Information::near(&all, &stage.at, reach).unwrap_or_else(|| stage.information.clone());
        let origin = information.matrix.apply(&stage.at).iter().zip(&stage.score).map(|(h, g)| h + g).collect();
        Part { stage, positive: positive_part(&information.matrix), information, origin }
    };
    let parts: Vec<Part<'_>> = stages.iter().map(part).collect();
    let mut known = prior.matrix();
    let mut pulled = prior.pull();
    let guided = guide.map(|guide| (guide, guide.precision()));
    if let Some((guide, precision)) = &guided {
        known = known.plus(precision, 1.0);
        pulled.iter_mut().zip(precision.apply(&guide.mean)).for_each(|(sum, x)| *sum += x);
    }
    let solve = |mean: &[f64]| {
        let (mut precision, mut pull) = (known.clone(), pulled.clone());
        for part in &parts {
            let weighted = part.information.matrix.times(&factor(&part.spread(mean, reach)).inverse());
            precision = precision.plus(&weighted.times(&part.information.matrix), 1.0);
            pull.iter_mut().zip(weighted.apply(&part.origin)).for_each(|(sum, x)| *sum += x);
        }
        let covariance = factor(&precision.symmetrised()).inverse();
        Solution { delta: covariance.apply(&pull), gain: covariance.clone(), covariance }
    };
    let (solution, _) = iterate_to_fixed_point(start, solve);
    let noise = |sum: Matrix, part: &Part<'_>| {
        let spread = part.spread(&solution.delta, reach);
        let gain = solution.covariance.times(&part.information.matrix).times(&factor(&spread).inverse());
        let beside = spread.plus(&part.positive, -1.0);
        sum.plus(&gain.times(&beside).times(&gain.transposed()).symmetrised(), 1.0)
    };
    let of_guide = guided.map_or_else(
        || Matrix::zeros(start.len()),
        |(guide, precision)| {
            let gain = solution.covariance.times(&precision);
            gain.times(&guide.error).times(&gain.transposed()).symmetrised()
        },
    );
    let noise = parts.iter().fold(of_guide, noise);
    Located { mean: solution.delta, covariance: solution.covariance, noise }
}

#[cfg(test)]
#[path = "tests/locate.rs"]
mod tests;
