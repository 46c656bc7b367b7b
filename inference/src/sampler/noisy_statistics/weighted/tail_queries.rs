//! The queries about the tails of a count.

use super::count_facts::CountFacts;
use super::count_law::CountLaw;
use super::plan::Facts;
use super::predictor_table::PredictorTable;
use super::progress::Progress;
use super::queries::{Counts, QueryPoint, read_counts};
use super::setting::TRACE;
use super::tails::{EDGES, Expected, Tails};
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::query::{Query, Round};

/// Share of the budget for the table of residuals, and for that of linear predictors, whose counts are multiplied by small shares.
const SHARES: [f64; 2] = [0.045, 0.005];
/// Distance from a typical linear predictor up to which others have cells of their own.
const FAR: f64 = 5.0;

/// The pending queries about the tails.
#[derive(Debug, Clone)]
pub(super) struct PendingTails {
    law: CountLaw,
    /// `None` for a job without an intercept.
    predictors: Option<PredictorTable>,
}

impl PendingTails {
    /// Asks for both tables at a point.
    pub(super) fn ask(
        (target, budget): (&Target, &mut Allotment),
        (facts, counts, progress): (&Facts, &CountFacts, &Progress),
        theta: &[f64],
    ) -> Result<(Self, Vec<Query>), SamplerError> {
        let law = counts.law(theta.get(facts.order).map_or(0.0, |a| libm::log(*a)));
        let ([low, high], typical) = (counts.ends(target, theta, facts.order), progress.typical_predictor(counts));
        let near = (low.max(typical - FAR), high.min(typical + FAR));
        // The typical record may lie outside the public range of a point that is off.
        let (low, high) = if near.0 < near.1 { near } else { (low, high) };
        let predictors = facts.has_intercept.then(|| PredictorTable::new(law, [low, high]));
        let point = QueryPoint::new(theta.to_vec(), &progress.frame, (facts.search_clip(), TRACE));
        let mut queries = vec![point.residuals((target, budget), &EDGES, SHARES[0])?];
        if let Some(table) = &predictors {
            let clip = facts.search_clip();
            let centres = counts.residuals(target, theta, facts.order, clip);
            let point = QueryPoint::of_intercept(theta.to_vec(), clip, centres);
            let query = point.lengths((target, budget), table.informations(), SHARES[1])?;
            queries.push(Query { chain: 1, ..query });
        }
        Ok((Self { law, predictors }, queries))
    }

    /// Reads the answers.
    pub(super) fn read(&self, facts: &Facts, round: &Round, totals: &Totals) -> Option<Tails> {
        let mut tables = round.queries.iter().zip(totals.by_query());
        let mut next = || -> Option<Counts> {
            let (query, answer) = tables.next()?;
            Some(read_counts(facts, query.kind, query.noise, answer))
        };
        let residuals = next()?;
        let expected = match &self.predictors {
            Some(table) => Expected::new(self.law, table, &next()?),
            None => Expected::nothing(),
        };
        Some(Tails::new(&residuals, &expected, facts.records))
    }
}
