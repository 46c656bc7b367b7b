//! The queries about the tails of a count.

use super::count_facts::CountFacts;
use super::count_law::CountLaw;
use super::plan::Facts;
use super::predictor_table::PredictorTable;
use super::progress::Progress;
use super::queries::{Counts, QueryPoint};
use super::setting::TRACE;
use super::tails::{EDGES, Expected, Tails};
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::target::Target;
use conclave_common::query::Query;

/// Share of the budget for the table of residuals, and for that of linear predictors, whose counts are multiplied by small shares.
const SHARES: [f64; 2] = [0.045, 0.005];
/// Distance from a typical linear predictor up to which others have cells of their own.
const FAR: f64 = 5.0;

/// The queries about the tails, one in a round: a party answers no two tables in one round.
#[derive(Debug, Clone)]
pub(super) struct PendingTails {
    law: CountLaw,
    /// `None` for a job without an intercept.
    predictors: Option<PredictorTable>,
    /// The table of residuals, once it is released.
    residuals: Option<Counts>,
}

impl PendingTails {
    /// Prepares the tables at a point.
    pub(super) fn new(target: &Target, (facts, counts, progress): (&Facts, &CountFacts, &Progress), theta: &[f64]) -> Self {
        let law = counts.law(theta.get(facts.order).map_or(0.0, |a| libm::log(*a)));
        let ([low, high], typical) = (counts.ends(target, theta, facts.order), progress.typical_predictor(counts));
        let near = (low.max(typical - FAR), high.min(typical + FAR));
        // The typical record may lie outside the public range of a point that is off.
        let (low, high) = if near.0 < near.1 { near } else { (low, high) };
        Self { law, predictors: facts.has_intercept.then(|| PredictorTable::new(law, [low, high])), residuals: None }
    }

    /// Asks for the next table at that point.
    pub(super) fn ask(
        &self,
        (target, budget): (&Target, &mut Allotment),
        (facts, counts, progress): (&Facts, &CountFacts, &Progress),
        theta: &[f64],
    ) -> Result<Query, SamplerError> {
        let clip = facts.search_clip();
        match (&self.residuals, &self.predictors) {
            (Some(_), Some(table)) => {
                let centres = counts.residuals(target, theta, facts.order, clip);
                let point = QueryPoint::of_intercept(theta.to_vec(), clip, centres);
                point.lengths((target, budget), table.informations(), SHARES[1])
            }
            _ => {
                let point = QueryPoint::new(theta.to_vec(), &progress.frame, (clip, TRACE));
                point.residuals((target, budget), &EDGES, SHARES[0])
            }
        }
    }

    /// Takes a table. Returns the tails after the last one.
    pub(super) fn take(&mut self, facts: &Facts, table: Counts) -> Option<Tails> {
        let Some(residuals) = &self.residuals else {
            let tails = self.predictors.is_none().then(|| Tails::new(&table, &Expected::nothing(), facts.records));
            self.residuals = Some(table);
            return tails;
        };
        let expected = Expected::new(self.law, self.predictors.as_ref()?, &table);
        Some(Tails::new(residuals, &expected, facts.records))
    }
}
