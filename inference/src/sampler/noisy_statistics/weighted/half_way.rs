//! The last stage of a binary outcome or a count. Its information is asked half way to the answer that the released score leads to expect: there
//! its error is of the third order of the step.

use super::bounded_stage::{BoundedStage, InformationPoint};
use super::plan::Facts;
use super::progress::Progress;
use super::queries::{Counts, QueryPoint};
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::dot;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::noisy_statistics::information::Information;
use crate::sampler::noisy_statistics::schedule::FIRST_PART;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::model::ObservedForm;
use conclave_common::query::{Query, Round};

/// Share of the budget for the score's variance.
pub(super) const VARIANCE_SHARE: f64 = 0.01;
/// Longest step to the answer, in radii.
const LONGEST: f64 = 1.2;
/// Bounds of the ratio of the score's variance to the information.
const INFLATION: (f64, f64) = (0.05, 1.0);
/// Sds of the released variance by which it counts as larger.
const MARGIN: f64 = 2.0;

/// A last stage whose score is released.
#[derive(Debug, Clone)]
pub(super) struct HalfWay {
    stage: BoundedStage,
    point: QueryPoint,
    /// Half of the step to the answer, in the frame's coordinates.
    step: Vec<f64>,
    /// The part of the information that is released.
    first: Option<Information>,
    /// True if the outcome is binary.
    binary: bool,
    /// Share of the budget for what is not the information.
    reserved: f64,
    pub(super) beside: Counts,
}

impl HalfWay {
    /// Takes a stage with the information that the search leads to expect, and the counts beside its score.
    /// `reserved` is the share of the budget for what follows the information of a count.
    pub(super) fn new(
        (stage, point): (BoundedStage, QueryPoint),
        beside: Counts,
        reserved: f64,
        (facts, progress): (&Facts, &Progress),
    ) -> Self {
        let step = half_step(&stage, facts, progress);
        let reserved = if facts.binary { VARIANCE_SHARE } else { reserved };
        Self { stage, point, step, first: None, binary: facts.binary, reserved, beside }
    }

    /// Asks for a part of the information, the second time with the whole remaining budget beside the score's variance. One parameter
    /// has no query for that: its variance counts as the information, which is at least as large.
    pub(super) fn ask(&self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let moved = self.stage.frame.coefficients(&self.step);
        let coefficients: Vec<f64> = self.stage.at.iter().zip(moved).map(|(at, step)| at + step).collect();
        if self.first.is_none() {
            let share = FIRST_PART * (budget.left() - self.reserved);
            return Ok(vec![self.point.information_half_way((target, budget), &coefficients, share)?]);
        }
        let variance = match coefficients.len() {
            1 => None,
            // The information of a count counts as the variance, too.
            _ if !self.binary => None,
            _ => Some(self.point.variance_half_way((target, budget), &coefficients, VARIANCE_SHARE)?),
        };
        let left = budget.left() - if self.binary { 0.0 } else { self.reserved };
        let information = self.point.information_half_way((target, budget), &coefficients, left)?;
        Ok(std::iter::once(information).chain(variance).collect())
    }

    /// Reads the answers. Returns the stage once both parts are released.
    pub(super) fn take(
        &mut self,
        (facts, progress): (&Facts, &Progress),
        round: &Round,
        totals: &Totals,
    ) -> Option<BoundedStage> {
        let answers: Vec<&[i128]> = totals.by_query().collect();
        let (matrix, sd) = self.point.read_information(facts, true, round.queries[0].noise, answers[0]);
        let whole: f64 = matrix.diagonal_entries().iter().sum();
        let part = Information { at: self.step.clone(), matrix, sd, own_sd: None, form: ObservedForm::Canonical };
        let Some(first) = self.first.take() else {
            self.step = half_step(&self.with_information(part.clone()), facts, progress);
            self.first = Some(part);
            return None;
        };
        let variance = answers.get(1).map(|variance| self.point.read_variance(facts, round.queries[1].noise, variance));
        let inflation = variance.map_or(INFLATION.1, |(variance, sd)| inflation(variance + MARGIN * sd, whole));
        let pooled = Information::pooled(&[first, part])?;
        let squared_slopes = variance.map(|(variance, _)| variance);
        Some(BoundedStage { inflation, squared_slopes, ..self.with_information(pooled) })
    }

    /// Returns the stage with an information whose point is a step in the frame's coordinates.
    fn with_information(&self, Information { at: step, matrix, sd, .. }: Information) -> BoundedStage {
        let information_point = self.stage.information_point.clone().map(|of| InformationPoint { step, ..of });
        BoundedStage { information: matrix, information_sd: sd, information_point, ..self.stage.clone() }
    }

    /// Returns the query point.
    pub(super) fn point(&self) -> &QueryPoint {
        &self.point
    }
}

/// Returns half of a stage's step to its answer, of which the whole is at most [`LONGEST`].
fn half_step(stage: &BoundedStage, facts: &Facts, progress: &Progress) -> Vec<f64> {
    let (step, radius) = (stage.fit(&facts.prior).step, (progress.radius(facts) * facts.order as f64).sqrt());
    let part = 0.5 * (LONGEST * radius / dot(&step, &step).sqrt()).min(1.0);
    step.iter().map(|x| if x.is_finite() { part * x } else { 0.0 }).collect()
}

/// Returns the ratio of a score's variance to the information; the largest one if the trace of the information is not positive.
fn inflation(variance: f64, whole: f64) -> f64 {
    if whole > 0.0 { (variance / whole).clamp(INFLATION.0, INFLATION.1) } else { INFLATION.1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise that hides the information does not narrow the interval.
    #[test]
    fn a_hidden_information_does_not_narrow_the_interval() {
        assert_eq!((inflation(10.0, 40.0), inflation(50.0, 40.0), inflation(-1.0, 40.0)), (0.25, 1.0, 0.05));
        assert_eq!([-5.0, 0.0, f64::NAN].map(|whole| inflation(10.0, whole)), [1.0; 3]);
    }
}
