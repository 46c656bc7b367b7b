//! The exposures of a count that are fixed by design: their means, by a released table.

use super::count_facts::CountFacts;
use super::plan::Facts;
use super::predictor_table::PredictorTable;
use super::queries::QueryPoint;
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::target::Target;
use conclave_common::query::Query;

/// Share of the budget for their table.
const SHARE: f64 = 0.005;

/// The mean exposure and the mean of its square.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Exposures {
    pub(super) mean: f64,
    pub(super) square: f64,
}

impl Exposures {
    /// Those of records without an exposure.
    pub(super) const NONE: Self = Self { mean: 1.0, square: 1.0 };

    /// Returns the intercept at which the table is asked: there, no mean exceeds 1, so informations differ as means do.
    pub(super) fn intercept(counts: &CountFacts) -> f64 {
        counts.offset.map_or(0.0, |[_, high]| -high)
    }

    fn table(counts: &CountFacts, log_dispersion: f64) -> PredictorTable {
        let [low, high] = counts.offset.unwrap_or([0.0, 0.0]);
        PredictorTable::new(counts.law(log_dispersion), [low - high, 0.0])
    }

    /// Asks for the table at a point with that intercept and no other coefficient.
    pub(super) fn ask(
        (target, budget): (&Target, &mut Allotment),
        (facts, counts): (&Facts, &CountFacts),
        theta: Vec<f64>,
    ) -> Result<Query, SamplerError> {
        let log_dispersion = theta.get(facts.order).map_or(0.0, |a| libm::log(*a));
        let centres = counts.residuals(target, &theta, facts.order, facts.search_clip());
        let point = QueryPoint::of_intercept(theta, facts.search_clip(), centres);
        point.lengths((target, budget), Self::table(counts, log_dispersion).informations(), SHARE)
    }

    /// Reads the means from the numbers of records in the cells of the table.
    pub(super) fn new(counts: &CountFacts, log_dispersion: f64, held: &[f64]) -> Self {
        let (Some([low, high]), table) = (counts.offset, Self::table(counts, log_dispersion)) else { return Self::NONE };
        let (least, most) = (libm::exp(low), libm::exp(high));
        let all = table.sum(held, |_| 1.0).max(1.0);
        let mean = (table.sum(held, |eta| libm::exp(eta + high)) / all).clamp(least, most);
        let square = table.sum(held, |eta| libm::exp(2.0 * (eta + high))) / all;
        Self { mean, square: square.clamp(mean * mean, mean * most) }
    }
}
