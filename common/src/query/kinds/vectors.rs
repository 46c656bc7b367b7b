//! The vectors of a model with scores: gradients, curvature and second moments.
//!
//! A price does not depend on a query's numbers. These only scale a record's contribution before it is held to its public length: a
//! wrong scale costs accuracy, never privacy.

use super::release_kind::{ReleaseKind, Unpriced};
use crate::job::Weights;
use crate::model::{Influence, Leverage, ScoreModel, Summand};
use crate::parameter::LEAST_MAGNITUDE;
use crate::query::error::QueryError;
use crate::query::terms::QueryTerms;
use conclave_privacy::mechanism::{GRADIENT_UNITS, QueryKind, Sensitivity};
use conclave_privacy::pass::Frame;
use conclave_privacy::pass::hold::Moves;

/// The largest scale of a curvature. It keeps a record's scaled information from becoming subnormal, since arithmetic on
/// subnormal numbers takes a time that depends on the record.
pub const MOST_SCALE: f64 = 1.0 / LEAST_MAGNITUDE;

/// The number of lattice units in a product of two numbers of magnitude 1.
const PRODUCT_UNITS: u64 = 1 << 32;

impl<'m> Unpriced<'m> {
    /// Returns the model's scores, where a job that releases once may query them.
    pub(super) fn scores(&self) -> Result<Box<dyn ScoreModel + 'm>, QueryError> {
        self.check_release()?;
        self.model.scores().ok_or_else(|| self.misfit())
    }

    /// Returns the frame and the limits of a query of bounded influence, where the job may ask it.
    pub(super) fn influence(&self, numbers: &'m [f64]) -> Option<Influence<'m>> {
        Influence::new(numbers, self.from.len()).filter(|influence| self.takes(influence))
    }

    /// Returns the same with a point half way to the answer.
    pub(super) fn half_way(&self, numbers: &'m [f64]) -> Option<Influence<'m>> {
        Influence::half_way(numbers, self.from.len()).filter(|influence| self.takes(influence))
    }

    /// Returns whether the job weights records, and a table states the expectations where the model needs it, and only there.
    fn takes(&self, influence: &Influence<'_>) -> bool {
        self.weighs() && self.model.scores().is_some_and(|scores| scores.centres_by_table() == influence.has_table())
    }

    /// Returns whether the job weights records and the model has scores of bounded influence.
    pub(super) fn weighs(&self) -> bool {
        self.spec.weights != Weights::Never && self.model.scores().is_some_and(|scores| scores.bounds_influence())
    }

    /// Returns the terms of a sum of products whose records' traces are at most `squares`.
    fn products(&self, squares: u64) -> Result<QueryTerms, QueryError> {
        let sensitivity = Moves::trace(squares, self.records()).sensitivity(self.unit)?;
        let greatest = PRODUCT_UNITS * u64::from(self.records());
        Ok(QueryTerms { size: squares, greatest, summed: greatest, ..QueryTerms::of(self.kind, sensitivity) })
    }
}

/// The gradient at a point, over all units or over a sample.
pub(super) struct Gradient;

impl ReleaseKind for Gradient {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        let scores = query.scores()?;
        let fits = query.kind.length() == scores.parameters() && query.from.len() == scores.parameters();
        let order = query.from.len();
        let levered = || Leverage::new(query.to, order).is_some() && query.weighs() && scores.takes_leverage();
        let framed = Frame::new(query.to, order).is_some() || query.influence(query.to).is_some() || levered();
        if !(fits && framed) {
            return Err(query.misfit());
        }
        Ok(QueryTerms::of(query.kind, query.unit.sensitivity(Sensitivity::from_units(GRADIENT_UNITS)?)?))
    }

    fn summand<'a>(&self, terms: &QueryTerms, (at, to): (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        let fits = at.len() == terms.length() && terms.is_charged(charged);
        if let Some(influence) = Influence::new(to, at.len()) {
            return fits.then_some(Summand::BoundedGradient { at, influence });
        }
        if let Some(leverage) = Leverage::new(to, at.len()) {
            return fits.then_some(Summand::LeverageGradient { at, leverage });
        }
        Frame::new(to, at.len()).filter(|_| fits).map(|frame| Summand::Gradient { at, frame })
    }
}

/// The information at a point.
///
/// Bounded influence has two more forms. Coordinates of a second point after R ask for the information there, with the weights of the
/// first point. A matrix of one row, where there are more parameters, is the variance of the score.
pub(super) struct Curvature;

/// Returns whether a query of bounded influence asks for the variance of a score.
fn is_of_variance(components: usize, parameters: usize) -> bool {
    components == 1 && parameters > 1
}

fn scales(to: &[f64]) -> Option<[f64; 2]> {
    let scales: [f64; 2] = to.try_into().ok()?;
    scales.iter().all(|scale| *scale > 0.0 && *scale <= MOST_SCALE).then_some(scales)
}

impl ReleaseKind for Curvature {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        let (scores, QueryKind::Curvature { parameters }) = (query.scores()?, query.kind) else { return Err(query.misfit()) };
        let (order, own) = (scores.parameters(), scores.parameters() - scores.coefficients());
        if query.from.len() != order {
            return Err(query.misfit());
        }
        let is_bounded = query.influence(query.to).or_else(|| query.half_way(query.to)).is_some();
        if is_bounded && (parameters as usize == order || is_of_variance(parameters as usize, order)) {
            return query.products(1);
        }
        if parameters as usize != order {
            return Err(query.misfit());
        }
        scales(query.to).ok_or_else(|| query.misfit())?;
        query.products(scores.most_squares() + own as u64)
    }

    fn summand<'a>(&self, terms: &QueryTerms, (at, to): (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        let (is_charged, order) = (terms.is_charged(charged), at.len());
        let fits = order * (order + 1) / 2 == terms.length() && is_charged;
        if let Some(influence) = Influence::new(to, order).or_else(|| Influence::half_way(to, order)) {
            return match is_of_variance(terms.length(), order) {
                true => is_charged.then_some(Summand::BoundedVariance { at, influence }),
                false => fits.then_some(Summand::BoundedCurvature { at, influence }),
            };
        }
        scales(to).filter(|_| fits).map(|scales| Summand::Curvature { at, scales, squares: terms.size })
    }
}

/// The second moments of predictors and outcome.
pub(super) struct Moments;

impl ReleaseKind for Moments {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        let (scores, QueryKind::Moments { order }) = (query.scores()?, query.kind) else { return Err(query.misfit()) };
        let fits = query.from.is_empty() && query.to.is_empty() && scores.moments_outcome().is_some();
        if !fits || order as usize != scores.moments_order() {
            return Err(query.misfit());
        }
        query.products(scores.moments_squares())
    }

    fn summand<'a>(&self, terms: &QueryTerms, (from, to): (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        let QueryKind::Moments { order } = terms.kind() else { return None };
        let fits = from.is_empty() && to.is_empty() && terms.is_charged(charged);
        fits.then_some(Summand::Moments { order: order as usize, squares: terms.size })
    }
}
