//! The queries of each round of a weighted regression, and their shares of the budget.

use super::count_facts::CountFacts;
use super::dispersion::PendingDispersion;
use super::exposures::Exposures;
use super::half_way::VARIANCE_SHARE;
use super::progress::Phase;
use super::queries::QueryPoint;
use super::residual_table::ResidualTable;
use super::setting::{Lengths, Limits, OF_DISPERSION, OF_INFORMATION, TRACE, part_for_squares};
use super::strategy::WeightedStrategy;
use super::tail_queries::PendingTails;
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::target::Target;
use conclave_common::query::Query;

/// Share of the budget for the number of records.
const COUNT_SHARE: f64 = 0.01;
/// Share of the budget for the table of outcomes.
const OUTCOMES_SHARE: f64 = 0.02;
/// Parts of a learning stage for the information: of the first one, and of a later one.
const OF_LEARNING: [f64; 2] = [0.6, 0.5];
/// Parts of a locating stage for the information and for the table of residuals.
const OF_LOCATING: f64 = 0.3;
/// Share of the budget for the table of outcomes of a count.
const COUNTS_SHARE: f64 = 0.03;
/// Share of the budget for the table beside the last stage, and where it counts unusable rows.
const BESIDE_SHARE: [f64; 2] = [0.01, 0.02];

impl WeightedStrategy {
    /// Asks the queries of the next round of a search that the releases have not ended for an unweighted one.
    pub(super) fn ask_round(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let left = budget.left();
        if let Some(point) = self.held.as_ref().map(|(_, point)| point.clone()) {
            // Score and score of the dispersion are one kind, which a party answers once in a round.
            let queries = self.ask_dispersion((target, budget), &point.theta, self.reserved)?;
            self.pending = Some((point, left));
            return Ok(queries);
        }
        let (point, queries) = match (self.progress.phase, &self.half_way) {
            (Phase::Count, _) => self.ask_table((target, budget), &[0.0], COUNT_SHARE)?,
            (Phase::Exposures, _) => self.ask_exposures(target, budget)?,
            (Phase::Outcomes, _) => self.ask_outcomes(target, budget)?,
            (Phase::Tails, _) => self.ask_tails((target, budget))?,
            (Phase::HalfWay, Some(half_way)) => {
                let queries = half_way.ask(target, budget)?.into_iter().enumerate().map(numbered).collect();
                (half_way.point().clone(), queries)
            }
            (Phase::Dispersion, _) => {
                let theta =
                    self.answered.as_ref().map(|answered| self.theta(target, &answered.fit.mean, self.progress.log_sigma));
                let theta = theta.ok_or(SamplerError::NoRound)?;
                let queries = self.ask_dispersion((target, budget), &theta, left)?;
                (QueryPoint::new(theta, &self.progress.frame, (self.facts.search_clip(), TRACE)), queries)
            }
            (Phase::Squares, _) => {
                let (theta, part) = self.point_of_squares(target, left).ok_or(SamplerError::NoRound)?;
                let query = QueryPoint::squares((target, budget), &theta, part * left)?;
                let point = QueryPoint::new(theta, &self.progress.frame, (self.facts.search_clip(), TRACE));
                (point, vec![query])
            }
            _ => {
                self.stay_inside(target);
                return self.ask_stage(target, budget);
            }
        };
        self.pending = Some((point, left));
        Ok(queries)
    }

    /// Asks for the table of outcomes.
    fn ask_outcomes(&mut self, target: &Target, budget: &mut Allotment) -> Result<(QueryPoint, Vec<Query>), SamplerError> {
        let edges = self.progress.outcome_edges(&self.facts);
        let share = if self.facts.counts.is_some() { COUNTS_SHARE } else { OUTCOMES_SHARE };
        let Some(intercept) = self.facts.counts.as_ref().and_then(CountFacts::least_intercept) else {
            return self.ask_table((target, budget), &edges, share);
        };
        let point =
            QueryPoint::new(self.at_intercept(target, intercept), &self.progress.frame, (self.facts.search_clip(), TRACE));
        let outcomes = point.residuals((target, budget), &edges, share)?;
        Ok((point, vec![outcomes]))
    }

    /// Asks for the table of a count's exposures. A party answers no two tables in one round.
    fn ask_exposures(&mut self, target: &Target, budget: &mut Allotment) -> Result<(QueryPoint, Vec<Query>), SamplerError> {
        let counts = self.facts.counts.as_ref().ok_or(SamplerError::NoRound)?;
        let theta = self.at_intercept(target, Exposures::intercept(counts));
        let point = QueryPoint::new(theta.clone(), &self.progress.frame, (self.facts.search_clip(), TRACE));
        Ok((point, vec![Exposures::ask((target, budget), (&self.facts, counts), theta)?]))
    }

    /// Returns the parameters with this intercept and no other coefficient.
    fn at_intercept(&self, target: &Target, intercept: f64) -> Vec<f64> {
        let at: Vec<f64> = (0..self.facts.order).map(|j| if j == 0 { intercept } else { 0.0 }).collect();
        self.theta(target, &at, self.progress.log_sigma)
    }

    /// Asks for a table of residuals at the search's point.
    fn ask_table(
        &mut self,
        (target, budget): (&Target, &mut Allotment),
        edges: &[f64],
        share: f64,
    ) -> Result<(QueryPoint, Vec<Query>), SamplerError> {
        self.stay_inside(target);
        let theta = self.theta(target, &self.progress.coefficients, self.progress.log_sigma);
        let point = QueryPoint::new(theta, &self.progress.frame, (self.facts.search_clip(), TRACE));
        let query = point.residuals((target, budget), edges, share)?;
        Ok((point, vec![query]))
    }

    /// Asks for the next table of a count's tails at the search's point.
    fn ask_tails(&mut self, (target, budget): (&Target, &mut Allotment)) -> Result<(QueryPoint, Vec<Query>), SamplerError> {
        self.stay_inside(target);
        let theta = self.theta(target, &self.progress.coefficients, self.progress.log_sigma);
        let counts = self.facts.counts.as_ref().ok_or(SamplerError::NoRound)?;
        let of = (&self.facts, counts, &self.progress);
        let pending = self.pending_tails.take().unwrap_or_else(|| PendingTails::new(target, of, &theta));
        let query = pending.ask((target, budget), of, &theta)?;
        self.pending_tails = Some(pending);
        Ok((QueryPoint::new(theta, &self.progress.frame, (self.facts.search_clip(), TRACE)), vec![query]))
    }

    /// Asks the queries of a stage: information and table take their parts of its share, and the score takes the rest.
    fn ask_stage(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let (left, phase, binary) = (budget.left(), self.progress.phase, self.facts.binary);
        let is_count = self.facts.counts.is_some();
        let clip = self.facts.search_clip();
        let (share, of_information, limits) = match phase {
            Phase::Learn => {
                let later = usize::from(self.stages.len() > usize::from(!binary));
                (self.facts.learn_share, OF_LEARNING[later], (clip, 1.0))
            }
            Phase::Locate => (self.progress.locating_share(&self.facts), OF_LOCATING, (clip, TRACE)),
            _ => (left, OF_INFORMATION, self.progress.limits.map_or((clip, TRACE), Limits::of_influence)),
        };
        let theta = self.theta(target, &self.progress.coefficients, self.progress.log_sigma);
        let table = self.facts.counts.as_ref().map(|counts| counts.residuals(target, &theta, self.facts.order, limits.0));
        let point = QueryPoint::new(theta, &self.progress.frame, limits).with_table(table);
        let is_half_way = phase == Phase::Last && self.facts.is_curved();
        let information = if is_half_way { None } else { Some(point.information((target, budget), share * of_information)?) };
        let beside = match phase {
            Phase::Locate if !self.facts.is_curved() => {
                Some(point.residuals((target, budget), &ResidualTable::edges(), share * OF_LOCATING)?)
            }
            Phase::Last => Some(self.ask_beside(&point, (target, budget))?),
            _ => None,
        };
        self.reserved = match phase {
            Phase::Locate if self.locates_dispersion() => OF_DISPERSION * share,
            Phase::Last if binary => OF_INFORMATION * left + VARIANCE_SHARE,
            Phase::Last if is_count => (OF_INFORMATION + if self.facts.own { OF_DISPERSION } else { 0.0 }) * left,
            Phase::Last if self.facts.own => self.part_for_squares(target, left) * left,
            _ => 0.0,
        };
        let of_score = share - (left - budget.left()) - self.reserved;
        let score = point.score((target, budget), of_score)?;
        self.pending = Some((point, left));
        let queries = [Some(score), information, beside].into_iter().flatten().enumerate().map(numbered);
        Ok(queries.collect())
    }

    /// Asks the score of the dispersion at a point with a share of the budget.
    fn ask_dispersion(&mut self, of: (&Target, &mut Allotment), theta: &[f64], share: f64) -> Result<Vec<Query>, SamplerError> {
        let counts = self.facts.counts.as_ref().ok_or(SamplerError::NoRound)?;
        let (pending, queries) = PendingDispersion::ask(of, (&self.facts, counts, &self.progress), theta, share)?;
        self.pending_dispersion = Some(pending);
        Ok(queries)
    }

    /// Asks beside the last stage for the table of lengths, or of residuals where the lengths do not matter: either counts the usable
    /// records.
    fn ask_beside(&self, point: &QueryPoint, of: (&Target, &mut Allotment)) -> Result<Query, SamplerError> {
        let share = BESIDE_SHARE[usize::from(self.facts.may_be_inert)];
        match self.progress.limits {
            Some(Limits::Weighted(setting)) => point.lengths(of, &Lengths::edges(setting), share),
            _ => point.residuals(of, &[0.0], share),
        }
    }

    /// Returns the largest residual within the declared bounds, at the latest answer or at the search's point, in located sds.
    pub(super) fn most_residual(&self, target: &Target) -> f64 {
        let coefficients = self.answered.as_ref().map_or(&self.progress.coefficients, |answered| &answered.fit.mean);
        let theta = self.theta(target, coefficients, self.progress.log_sigma);
        let (low, high) = target.model.scores().map_or((0.0, 0.0), |scores| scores.range(&theta, &theta[..self.facts.order]));
        let (centre, half) = self.facts.outcome;
        (centre + half - low).max(high - centre + half) * libm::exp(-self.progress.log_sigma)
    }

    /// Returns the part of the last stage for the sums of squares, by which the mean squared error of coefficients and log sigma is
    /// least, in posterior sds.
    fn part_for_squares(&self, target: &Target, left: f64) -> f64 {
        let (of_sigma, _) = self.progress.error_of_squares(&self.facts, self.most_residual(target), left);
        let of_coefficients = self.progress.noise_of_last(&self.facts, left) * (self.facts.order as f64).sqrt();
        part_for_squares(of_sigma, of_coefficients)
    }

    /// Returns the point of the next sum of squares, whose sigma is the clip over the root of 2, and its part of the remaining budget.
    fn point_of_squares(&self, target: &Target, left: f64) -> Option<(Vec<f64>, f64)> {
        let answered = self.answered.as_ref()?;
        let most = self.most_residual(target);
        let (clip, part) = self.progress.next_squares(&self.facts, &answered.squares, (most, left));
        Some((self.theta(target, &answered.fit.mean, self.progress.log_sigma + libm::log(clip / std::f64::consts::SQRT_2)), part))
    }
}

fn numbered((chain, query): (usize, Query)) -> Query {
    Query { chain: chain as u32, ..query }
}
