//! The public facts of a count's outcome.

use super::count_law::{CountLaw, CountTable};
use crate::sampler::target::Target;
use conclave_common::model::{ScoreModel, SlopeTable};
use conclave_common::schema::ModelSpec;

/// Least linear predictor of a table: below it, hardly any record has a count above 0.
pub(super) const LEAST_PREDICTOR: f64 = -12.0;
/// Greatest mean count, in units of the largest declared one: `e²`.
const BEYOND_MOST: f64 = 2.0;
/// Least width of a table.
const LEAST_WIDTH: f64 = 0.5;

/// The public facts of a count.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CountFacts {
    /// The largest declared count.
    pub(super) most: f64,
    /// True if the dispersion is a parameter.
    pub(super) own: bool,
    /// The range of the offset, or of the logarithm of the exposure, if there is one.
    pub(super) offset: Option<[f64; 2]>,
}

impl CountFacts {
    /// Returns the facts, if the outcome is a count.
    pub(super) fn of(target: &Target, scores: &dyn ScoreModel) -> Option<Self> {
        let ModelSpec::Regression(regression) = &target.spec.model else { return None };
        let outcome = target.spec.columns.get(&regression.outcome)?;
        // In counts: a column's range is scaled.
        let most = outcome.centre() + outcome.half_width();
        let offset = regression.design.offset.is_some().then(|| scores.offset_range().into());
        scores.centres_by_table().then(|| Self { most, own: scores.parameters() > scores.coefficients(), offset })
    }

    /// Returns the law at a logarithm of the dispersion.
    pub(super) fn law(&self, log_dispersion: f64) -> CountLaw {
        CountLaw { dispersion: if self.own { libm::exp(log_dispersion) } else { 0.0 } }
    }

    /// Returns the ends of a table at a point: the public range of the linear predictor, where it matters.
    pub(super) fn ends(&self, target: &Target, theta: &[f64], order: usize) -> [f64; 2] {
        let Some(scores) = target.model.scores() else { return [0.0, LEAST_WIDTH] };
        let ((low, high), (from, to)) = (scores.range(theta, &theta[..order]), scores.offset_range());
        let most = libm::log(self.most.max(1.0)) + BEYOND_MOST;
        let low = (low + from).clamp(LEAST_PREDICTOR, most - LEAST_WIDTH);
        [low, (high + to).clamp(low + LEAST_WIDTH, most)]
    }

    /// Returns the table of standardised counts at a point.
    pub(super) fn residuals(&self, target: &Target, theta: &[f64], order: usize, clip: f64) -> CountTable {
        self.law(theta.get(order).map_or(0.0, |a| libm::log(*a))).residuals(self.ends(target, theta, order), clip)
    }

    /// Returns the intercept at which the mean of every record is the least that a kernel distinguishes, whatever its offset is. There, a
    /// standardised count is a multiple of the count itself.
    pub(super) fn least_intercept(&self) -> Option<f64> {
        self.offset.map(|[_, high]| -SlopeTable::FARTHEST - 1.0 - high)
    }

    /// Returns whether a search can start: an offset needs an intercept whose box reaches [`Self::least_intercept`].
    pub(super) fn can_start(&self, target: &Target, has_intercept: bool) -> bool {
        let reaches = |least: f64| has_intercept && target.spec.support.first().is_some_and(|box_| box_.min < least);
        self.least_intercept().is_none_or(reaches)
    }

    /// Returns the number of cells of the table of outcomes: 0, and one for every power of two up to the largest count.
    pub(super) fn cells(&self) -> usize {
        2 + libm::log2(self.most.max(1.0)).floor() as usize
    }
}
