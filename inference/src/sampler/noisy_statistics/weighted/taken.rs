//! The answers of each round of a weighted regression.

use super::answered::Answered;
use super::bounded_stage::{Ahead, BoundedStage, Located, PlainOutlook};
use super::dispersion_score::DispersionScore;
use super::exposures::Exposures;
use super::half_way::HalfWay;
use super::plan::Facts;
use super::progress::{Phase, Progress};
use super::queries::{Counts, QueryPoint, read_counts, read_vector};
use super::residual_table::ResidualTable;
use super::setting::{OF_DISPERSION, OF_INFORMATION};
use super::squares::Squares;
use super::strategy::WeightedStrategy;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::score_strategy::ScoreStrategy;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::query::Round;
use conclave_privacy::mechanism::QueryKind;

impl WeightedStrategy {
    /// Takes the answers of a round at a point, after which this share of the budget is left. Returns true after the last one.
    pub(super) fn take(&mut self, target: &Target, (point, left): (QueryPoint, f64), round: &Round, totals: &Totals) -> bool {
        let asked = self.progress.phase;
        match asked {
            Phase::Count | Phase::Exposures | Phase::Outcomes | Phase::Tails => {
                let query = &round.queries[0];
                let table = read_counts(&self.facts, query.kind, query.noise, totals.components());
                match asked {
                    Phase::Tails => self.take_tails(target, table, left),
                    _ => self.take_counts(asked, &table),
                }
                false
            }
            Phase::HalfWay => self.take_half_way(round, totals),
            Phase::Dispersion => {
                let read = self.read_dispersion(round, totals);
                if let (Some(answered), Some(score)) = (&mut self.answered, read) {
                    answered.take_dispersion(score, &self.facts, &self.progress);
                }
                true
            }
            Phase::Squares => {
                let most = self.most_residual(target);
                let Some(answered) = &mut self.answered else { return false };
                let (sums, sd) = read_vector(&self.facts, round.queries[0].noise, totals.components());
                answered.take_squares(&point.theta, (sums.last().copied().unwrap_or(0.0), sd), most, &self.progress);
                Squares::bounds(&answered.squares).is_some()
            }
            _ => {
                match self.held.take() {
                    Some((stage, at)) => {
                        self.progress.dispersion = self.read_dispersion(round, totals);
                        self.take_stage(target, (stage, None), (at, left));
                    }
                    None if asked == Phase::Locate && self.locates_dispersion() => {
                        self.held = Some((self.stage(&point, round, totals).0, point));
                    }
                    None => {
                        let stage = self.stage(&point, round, totals);
                        self.take_stage(target, stage, (point, left));
                    }
                }
                asked == Phase::Last && !self.facts.own && !self.facts.is_curved()
            }
        }
    }

    /// Reads a stage from the answers to its queries. The last stage of a binary outcome has the information that the search expects.
    fn stage(&self, point: &QueryPoint, round: &Round, totals: &Totals) -> (BoundedStage, Option<Counts>) {
        let mut answers = round.queries.iter().zip(totals.by_query());
        let (mut score, mut information, mut beside) = ((Vec::new(), 0.0), None, None);
        for (query, answer) in &mut answers {
            match query.kind {
                QueryKind::Gradient { .. } => score = point.read_score(&self.facts, query.noise, answer),
                QueryKind::Curvature { .. } => {
                    information = Some(point.read_information(&self.facts, false, query.noise, answer))
                }
                kind => beside = Some(read_counts(&self.facts, kind, query.noise, answer)),
            }
        }
        let expected = || self.progress.expected_information().map(|matrix| (matrix, 0.0));
        let order = self.facts.order;
        let (information, information_sd) = information.or_else(expected).unwrap_or((Matrix::zeros(order), 0.0));
        let stage = BoundedStage {
            at: point.theta[..order].to_vec(),
            frame: self.progress.frame.clone(),
            score: score.0,
            score_sd: score.1,
            information,
            information_sd,
            inflation: 1.0,
            squared_slopes: None,
            clipped: vec![0.0; order],
            clip_bias: 0.0,
            information_point: self.progress.at_own_point(&self.facts),
        };
        (stage, beside)
    }

    /// Takes the answers of a stage, which is an answer by itself if the job ends there.
    fn take_stage(&mut self, target: &Target, (stage, beside): (BoundedStage, Option<Counts>), (point, left): (QueryPoint, f64)) {
        let most_residual = self.most_residual(target);
        let (facts, progress) = (&self.facts, &mut self.progress);
        let (competitor, own) = (self.competitor.as_ref(), of_dispersion(facts, progress));
        let plain = |at: &Located<'_>| plain_outlook(target, competitor, own, at);
        let ahead = Ahead { left, most_residual, plain: &plain };
        match (progress.phase, progress.limits, beside) {
            (Phase::Last, Some(_), Some(beside)) if facts.is_curved() => {
                let reserved = if facts.own { self.reserved * OF_DISPERSION / (OF_DISPERSION + OF_INFORMATION) } else { 0.0 };
                self.half_way = Some(HalfWay::new((stage, point), beside, reserved, (facts, progress)));
                progress.phase = Phase::HalfWay;
            }
            (Phase::Last, Some(limits), Some(beside)) => {
                self.answered = Some(Answered::of_last(stage, limits, &beside, (facts, progress)));
                progress.phase = Phase::Squares;
            }
            (Phase::Learn, ..) => {
                progress.take_learning(facts, &stage, &ahead);
                self.answered = Some(Answered::of_search(stage, facts));
                self.hand_over(target, left);
            }
            (_, _, beside) => {
                let table = beside.map(|counts| ResidualTable::new(&counts.cells, counts.sd));
                progress.take_locating(facts, &stage, table, &ahead);
                self.answered = Some(Answered::of_search(stage, facts));
                self.hand_over(target, left);
            }
        }
    }

    /// Takes the number of records, or a table of outcomes or exposures.
    fn take_counts(&mut self, asked: Phase, table: &Counts) {
        match (asked, &self.facts.counts) {
            (Phase::Count, _) => {
                self.facts.take_count(&table.cells, table.sd);
                self.progress.take_count(&self.facts);
            }
            (_, None) => self.progress.take_outcomes(&self.facts, table),
            (Phase::Exposures, Some(counts)) => {
                self.progress.take_exposures(Exposures::new(counts, self.progress.log_sigma, &table.cells));
            }
            (_, Some(counts)) => self.progress.take_counts(&self.facts, counts, table),
        }
    }

    /// Takes a table of a count's tails, after the last of which the last stage is chosen.
    fn take_tails(&mut self, target: &Target, table: Counts, left: f64) {
        let most_residual = self.most_residual(target);
        let facts = &self.facts;
        let Some(tails) = self.pending_tails.as_mut().and_then(|pending| pending.take(facts, table)) else { return };
        let (competitor, own) = (self.competitor.as_ref(), of_dispersion(facts, &self.progress));
        let plain = |at: &Located<'_>| plain_outlook(target, competitor, own, at);
        self.progress.take_tails(facts, tails, &Ahead { left, most_residual, plain: &plain });
        self.hand_over(target, left);
    }

    /// Continues with the unweighted competitor, if the releases chose it.
    fn hand_over(&mut self, target: &Target, left: f64) {
        if !self.progress.hands_over {
            return;
        }
        if let (Some(competitor), Some(covariance)) = (&self.competitor, self.progress.covariance()) {
            let own = of_dispersion(&self.facts, &self.progress);
            let (u, covariance) = with_own((&self.progress.coefficients, &covariance), own);
            let distance = self.progress.distance(&self.facts).filter(|_| self.facts.counts.is_some());
            self.chosen = match distance {
                Some(distance) => {
                    let distance = distance.with_last(own.map(|_| self.progress.distance_of_dispersion()));
                    competitor.led_to(target, (&u, &distance), &covariance, left)
                }
                None => competitor.restarted_at(target, &u, &covariance, left),
            };
        }
    }

    /// Takes the answers of a round half way. Returns true after the last one.
    fn take_half_way(&mut self, round: &Round, totals: &Totals) -> bool {
        let (Some(half_way), Some(limits)) = (&mut self.half_way, self.progress.limits) else { return false };
        let Some(stage) = half_way.take((&self.facts, &self.progress), round, totals) else { return false };
        self.answered = Some(Answered::of_last(stage, limits, &half_way.beside, (&self.facts, &self.progress)));
        if self.facts.own {
            self.progress.phase = Phase::Dispersion;
        }
        !self.facts.own
    }

    /// Reads the numbers of the dispersion in a round, if it has some.
    fn read_dispersion(&mut self, round: &Round, totals: &Totals) -> Option<DispersionScore> {
        let answers: Vec<&[i128]> = totals.by_query().collect();
        self.pending_dispersion.take()?.read(&self.facts, round, &answers)
    }

    /// Returns whether a locating stage releases the dispersion of a count too.
    pub(super) fn locates_dispersion(&self) -> bool {
        self.facts.counts.is_some() && self.facts.own
    }
}

/// Returns the logarithm of a count's dispersion and its variance without noise, if it is a parameter.
fn of_dispersion(facts: &Facts, progress: &Progress) -> Option<(f64, f64)> {
    /// Variance before the first release.
    const WIDE: f64 = 1.0;
    let variance = || progress.dispersion.as_ref().map_or(WIDE, DispersionScore::alone);
    (facts.counts.is_some() && facts.own).then(|| (progress.log_sigma, variance()))
}

/// Returns the predicted noise of an unweighted last stage by the competitor, if there is one.
fn plain_outlook(
    target: &Target,
    competitor: Option<&ScoreStrategy>,
    own: Option<(f64, f64)>,
    at: &Located<'_>,
) -> Option<PlainOutlook> {
    let (u, covariance) = with_own((at.coefficients, &at.covariance), own);
    competitor?.outlook_at(target, &u, &covariance, at.left)
}

/// Returns coordinates and their covariance with those of an own parameter.
fn with_own((coefficients, covariance): (&[f64], &Matrix), own: Option<(f64, f64)>) -> (Vec<f64>, Matrix) {
    let u = coefficients.iter().copied().chain(own.map(|(mean, _)| mean)).collect();
    (u, covariance.with_last(own.map(|(_, variance)| variance)))
}
