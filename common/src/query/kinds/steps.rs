//! The kinds that sum a step's log ratios, or a function of them.

use super::release_kind::{ReleaseKind, Unpriced};
use crate::model::{Leverage, Summand};
use crate::query::contribution::{contribution, record_bound, sampled_contribution};
use crate::query::error::QueryError;
use crate::query::terms::QueryTerms;
use conclave_privacy::mechanism::{QueryKind, Sensitivity};
use conclave_privacy::pass::{Step, Summed};

impl Unpriced<'_> {
    fn check_step(&self) -> Result<(), QueryError> {
        let same = self.from.len() == self.to.len();
        if self.from.is_empty() || !same { Err(QueryError::Points) } else { Ok(()) }
    }

    /// Returns whether the weights of the job's records follow the step.
    fn weighs_step(&self) -> bool {
        let takes = || self.model.scores().is_some_and(|scores| scores.takes_leverage());
        let has_order = self.model.parameter_names().len() == self.from.len();
        has_order && Leverage::after_point(self.to, self.from.len()).is_some() && self.weighs() && takes()
    }
}

impl QueryTerms {
    /// Returns a step's sum under this clamp.
    fn step<'a>(&self, (from, to): (&'a [f64], &'a [f64]), clamp: Sensitivity, of: Summed) -> Summand<'a> {
        Summand::Step(Step { centre: self.centre, of, ..Step::new(from, to, clamp) })
    }

    /// The terms of a function of ratios that are clamped at `clamp`: the sensitivity bounds its sum.
    fn of_clamped(kind: QueryKind, sensitivity: Sensitivity, clamp: Sensitivity) -> Self {
        Self { clamp, summed: sensitivity.max(clamp).units(), ..Self::of(kind, sensitivity) }
    }
}

/// The log ratios, each unit clamped at the charged sensitivity. Each record's may have a leverage weight.
pub(super) struct Ratio;

impl ReleaseKind for Ratio {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        if !query.weighs_step() {
            query.check_step()?;
        }
        let part = contribution(query.model, &query.spec.privacy, query.unit, query.from, query.to)?;
        Ok(QueryTerms { centre: part.centre, ..QueryTerms::of(query.kind, part.sensitivity) })
    }

    fn summand<'a>(&self, terms: &QueryTerms, points: (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        if let Some((to, leverage)) = Leverage::after_point(points.1, points.0.len()) {
            return Some(Summand::LeverageRatio { ends: [points.0, to], leverage, centre: terms.centre, clamp: charged });
        }
        Some(terms.step(points, charged, Summed::Ratios))
    }
}

/// The log ratios over a sample, each unit clamped at the step's own bound and at the charged sensitivity.
pub(super) struct SampledRatio;

impl ReleaseKind for SampledRatio {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        query.check_step()?;
        let part = sampled_contribution(query.model, &query.spec.privacy, query.unit, query.from, query.to)?;
        let [clamp, sensitivity] = part.ok_or(QueryError::NoSampleClip)?;
        Ok(QueryTerms { greatest: clamp.units(), ..QueryTerms::of_clamped(query.kind, sensitivity, clamp) })
    }

    fn summand<'a>(&self, terms: &QueryTerms, points: (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        Some(terms.step(points, terms.clamp.min(charged), Summed::Ratios))
    }
}

/// The number of units that the ratio's clamp cuts.
pub(super) struct ClipCount;

impl ReleaseKind for ClipCount {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        query.check_step()?;
        let part = Ratio.price(query)?;
        query.spec.privacy.clip.ok_or(QueryError::NoClip)?;
        let sensitivity = Sensitivity::from_units(QueryKind::COUNT_UNIT)?;
        Ok(QueryTerms { centre: part.centre, ..QueryTerms::of_clamped(query.kind, sensitivity, part.clamp) })
    }

    fn summand<'a>(&self, terms: &QueryTerms, points: (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        terms.is_charged(charged).then(|| terms.step(points, terms.clamp, Summed::Clipped))
    }
}

/// The squares of the clamped ratios. They lie between 0 and their largest value, so one unit moves their sum by at most that, under
/// either adjacency.
pub(super) struct SecondMoment;

impl ReleaseKind for SecondMoment {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        query.check_step()?;
        let clamp = query.unit.sensitivity(record_bound(query.model, &query.spec.privacy, query.from, query.to)?)?;
        Ok(QueryTerms::of_clamped(query.kind, Sensitivity::from_units(QueryKind::SQUARE_UNITS)?, clamp))
    }

    fn summand<'a>(&self, terms: &QueryTerms, points: (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        terms.is_charged(charged).then(|| terms.step(points, terms.clamp, Summed::Squares))
    }
}
