//! The strategy of weighted regressions.

use super::answered::Answered;
use super::bounded_stage::BoundedStage;
use super::plan::Facts;
use super::progress::{Phase, Progress};
use super::queries::{Counts, QueryPoint, read_counts, read_vector};
use super::residual_table::ResidualTable;
use super::setting::{CLIP, Lengths, Limits, OF_INFORMATION, TRACE};
use super::squares::LogSigma;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::noisy_statistics::answer::{Answer, Inference, Stage};
use crate::sampler::noisy_statistics::gaussian::{GaussianPrior, roots};
use crate::sampler::noisy_statistics::obstacle::Obstacle;
use crate::sampler::noisy_statistics::refit::{RefitError, RetainedCoefficients};
use crate::sampler::noisy_statistics::strategy::Strategy;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::model::ScoreModel;
use conclave_common::query::{PartyMetadata, Query, Round};
use conclave_common::schema::{Family, ModelSpec};

/// Share of the budget for the table of outcomes.
const OUTCOMES_SHARE: f64 = 0.02;
/// Parts of a learning stage for the information: of the first one, and of a later one.
const OF_LEARNING: [f64; 2] = [0.6, 0.5];
/// Parts of a locating stage for the information and for the table of residuals.
const OF_LOCATING: f64 = 0.3;
/// Part of the last stage for the sums of squares.
const OF_SQUARES: f64 = 0.1;
/// Part of the sums of squares for that of the lower clip, whose noise is that of the other one.
const NEAR_PART: f64 = 0.06;
/// Share of the budget for the table beside the last stage, and where it counts unusable rows.
const BESIDE_SHARE: [f64; 2] = [0.01, 0.02];

/// A weighted regression.
#[derive(Clone)]
pub(crate) struct WeightedStrategy {
    facts: Facts,
    progress: Progress,
    /// The pending queries, and the budget before them.
    pending: Option<(QueryPoint, f64)>,
    /// The answer by the latest stage.
    answered: Option<Answered>,
    /// Share of the budget for the sums of squares.
    reserved: f64,
    stages: Vec<Stage>,
}

impl WeightedStrategy {
    /// Returns the strategy before its first round; `None` where an unweighted one serves better, since the noise hides every frame.
    ///
    /// # Errors
    /// [`SamplerError::Protects`].
    pub(crate) fn new(
        target: &Target,
        scores: &dyn ScoreModel,
        parties: &[PartyMetadata],
        budget: &Allotment,
    ) -> Result<Option<Self>, SamplerError> {
        let Some(facts) = Facts::new(target, scores, parties, budget)? else { return Ok(None) };
        let progress = Progress::new(&facts, public_log_sigma(target, facts.order));
        Ok(Some(Self { facts, progress, pending: None, answered: None, reserved: 0.0, stages: Vec::new() }))
    }

    /// Returns coordinates, and theta inside the parameter box.
    fn theta(&self, target: &Target, coefficients: &[f64], log_sigma: f64) -> Vec<f64> {
        let own = self.facts.own.then_some(log_sigma);
        let u: Vec<f64> = coefficients.iter().copied().chain(own).collect();
        target.space.theta_inside(&target.spec, &u)
    }

    /// Moves the search's point into the parameter box.
    fn stay_inside(&mut self, target: &Target) {
        let theta = self.theta(target, &self.progress.coefficients, self.progress.log_sigma);
        let u = target.space.coordinates(&theta);
        self.progress.coefficients = u[..self.facts.order].to_vec();
        if let Some(log_sigma) = u.get(self.facts.order) {
            self.progress.log_sigma = *log_sigma;
        }
    }

    /// Asks the queries of a stage: information and table take their parts of its share, and the score takes the rest.
    fn ask_stage(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let (left, phase) = (budget.left(), self.progress.phase);
        let (share, of_information, limits) = match phase {
            Phase::Learn => {
                let later = usize::from(self.stages.len() > 1);
                (self.facts.learn_share, OF_LEARNING[later], (CLIP, 1.0))
            }
            Phase::Locate => (Progress::locating_share(&self.facts, CLIP), OF_LOCATING, (CLIP, TRACE)),
            _ => (left, OF_INFORMATION, self.progress.limits.map_or((CLIP, TRACE), Limits::of_influence)),
        };
        let theta = self.theta(target, &self.progress.coefficients, self.progress.log_sigma);
        let point = QueryPoint::new(theta, &self.progress.frame, limits);
        let information = point.information((target, budget), share * of_information)?;
        let (beside, reserved) = match phase {
            Phase::Locate => {
                let table = point.residuals((target, budget), &ResidualTable::edges(), share * OF_LOCATING)?;
                (Some(table), 0.0)
            }
            Phase::Last => {
                let reserved = if self.facts.own { OF_SQUARES * left } else { 0.0 };
                (self.ask_beside(&point, (target, budget))?, reserved)
            }
            _ => (None, 0.0),
        };
        self.reserved = reserved;
        let of_score = share - (left - budget.left()) - reserved;
        let score = point.score((target, budget), of_score)?;
        self.pending = Some((point, left));
        Ok([Some(score), Some(information), beside].into_iter().flatten().enumerate().map(numbered).collect())
    }

    /// Asks beside the last stage for the table of lengths, or of residuals where the lengths do not matter: either counts the usable
    /// records.
    fn ask_beside(&self, point: &QueryPoint, of: (&Target, &mut Allotment)) -> Result<Option<Query>, SamplerError> {
        let share = BESIDE_SHARE[usize::from(self.facts.may_be_inert)];
        let asked = match self.progress.limits {
            Some(Limits::Weighted(setting)) => point.lengths(of, &Lengths::edges(setting), share)?,
            _ => point.residuals(of, &[0.0], share)?,
        };
        Ok(Some(asked))
    }

    /// Returns the point of the next sum of squares, whose sigma is the clip over the root of 2.
    fn point_of_squares(&self, target: &Target) -> Option<Vec<f64>> {
        let answered = self.answered.as_ref()?;
        let far = self.progress.far_clip().max(self.facts.quiet_clip(self.reserved));
        let clip = if answered.squares.is_empty() { 0.5 * far } else { far };
        Some(self.theta(target, &answered.fit.mean, self.progress.log_sigma + libm::log(clip / std::f64::consts::SQRT_2)))
    }

    /// Reads a stage from the answers to its queries.
    fn stage(&self, point: &QueryPoint, round: &Round, totals: &Totals) -> (BoundedStage, Option<Counts>) {
        let answers: Vec<&[i128]> = totals.by_query().collect();
        let noise = |at: usize| round.queries[at].noise;
        let (score, score_sd) = point.read_score(&self.facts, noise(0), answers[0]);
        let (information, information_sd) = point.read_information(&self.facts, noise(1), answers[1]);
        let beside = round.queries.get(2).map(|query| read_counts(&self.facts, query.kind, query.noise, answers[2]));
        let at = point.theta[..self.facts.order].to_vec();
        let frame = self.progress.frame.clone();
        (
            BoundedStage {
                at,
                frame,
                score,
                score_sd,
                information,
                information_sd,
                inflation: 1.0,
                clipped: vec![0.0; self.facts.order],
            },
            beside,
        )
    }

    /// Records the posterior after a stage.
    fn record(&mut self, target: &Target, (theta, share): (Vec<f64>, f64), fit: Option<(Vec<f64>, Matrix)>, last: bool) {
        let (mean, sd) = self.shown(target, fit);
        self.stages.push(Stage { theta, share, mean, sd, last });
    }

    /// Returns the mean and the sds of a stage's record; without a fit, the search's point and the prior's sds.
    fn shown(&self, target: &Target, fit: Option<(Vec<f64>, Matrix)>) -> (Vec<f64>, Vec<f64>) {
        /// Sd of a flat prior.
        const WIDE: f64 = 1e3;
        let prior = || self.facts.prior.precision[..self.facts.order].iter().map(|p| p.sqrt().recip().min(WIDE)).collect();
        let (coefficients, mut sd) = match fit {
            Some((mean, covariance)) => (mean, roots(&covariance)),
            None => (self.progress.coefficients.clone(), prior()),
        };
        let own = self.answered.as_ref().map_or(LogSigma::located(&self.progress), |answered| answered.log_sigma(&self.progress));
        sd.extend(self.facts.own.then_some(own.variance.sqrt()));
        (self.theta(target, &coefficients, own.mean), sd)
    }

    /// Returns the coefficients' mean and covariance after the latest stage.
    fn fit(&self) -> Option<(Vec<f64>, Matrix)> {
        let Answered { stage, fit, .. } = self.answered.as_ref()?;
        Some((fit.mean.clone(), stage.frame.covariance(&fit.covariance)))
    }

    /// Takes the answers of a stage, which is an answer by itself if the job ends there.
    fn take_stage(&mut self, stage: BoundedStage, beside: Option<Counts>, left: f64) {
        let (facts, progress) = (&self.facts, &mut self.progress);
        match (progress.phase, progress.limits, beside) {
            (Phase::Last, Some(limits), Some(beside)) => {
                self.answered = Some(Answered::of_last(stage, limits, &beside, (facts, progress)));
                progress.phase = Phase::Squares;
            }
            (Phase::Learn, ..) => {
                progress.take_learning(facts, &stage);
                self.answered = Some(Answered::of_search(stage, facts));
            }
            (_, _, beside) => {
                let table = beside.map(|counts| ResidualTable::new(&counts.cells, counts.sd));
                progress.take_locating(facts, &stage, table, left);
                self.answered = Some(Answered::of_search(stage, facts));
            }
        }
    }
}

fn numbered((chain, query): (usize, Query)) -> Query {
    Query { chain: chain as u32, ..query }
}

/// Returns the logarithm of the known sd of the residuals, or of the middle of its box.
fn public_log_sigma(target: &Target, order: usize) -> f64 {
    let known = match &target.spec.model {
        ModelSpec::Regression(regression) => match regression.family {
            Family::Linear { sd } => sd.zip(target.spec.columns.get(&regression.outcome)).map(|(sd, y)| sd / y.half_width()),
            _ => None,
        },
        _ => None,
    };
    let start = target.space.theta_inside(&target.spec, &target.space.location);
    libm::log(known.or_else(|| start.get(order).copied()).unwrap_or(1.0))
}

impl Strategy for WeightedStrategy {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        self.stay_inside(target);
        let (left, theta) = (budget.left(), self.theta(target, &self.progress.coefficients, self.progress.log_sigma));
        let point = QueryPoint::new(theta, &self.progress.frame, (CLIP, TRACE));
        match self.progress.phase {
            Phase::Outcomes => {
                let edges = self.progress.outcome_edges(&self.facts);
                let query = point.residuals((target, budget), &edges, OUTCOMES_SHARE)?;
                self.pending = Some((point, left));
                Ok(vec![query])
            }
            Phase::Squares => {
                let theta = self.point_of_squares(target).ok_or(SamplerError::NoRound)?;
                let first = self.answered.as_ref().is_none_or(|answered| answered.squares.is_empty());
                let share = if first { NEAR_PART * left } else { left };
                let query = QueryPoint::squares((target, budget), &theta, share)?;
                self.pending = Some((point.at(theta), left));
                Ok(vec![query])
            }
            _ => self.ask_stage(target, budget),
        }
    }

    fn absorb(&mut self, target: &Target, round: &Round, totals: &Totals, budget: &Allotment) -> bool {
        let Some((point, before)) = self.pending.take() else { return false };
        let (left, asked) = (budget.left(), self.progress.phase);
        let place = (point.theta.clone(), before - left);
        match asked {
            Phase::Outcomes => {
                let query = &round.queries[0];
                let counts = read_counts(&self.facts, query.kind, query.noise, totals.components());
                self.progress.take_outcomes(&self.facts, &counts);
                self.record(target, place, None, false);
                false
            }
            Phase::Squares => {
                let Some(answered) = &mut self.answered else { return false };
                let (sums, sd) = read_vector(&self.facts, round.queries[0].noise, totals.components());
                answered.take_squares(&point.theta, (sums.last().copied().unwrap_or(0.0), sd), &self.progress);
                let last = answered.squares.len() > 1;
                self.record(target, place, self.fit(), last);
                last
            }
            _ => {
                let (stage, beside) = self.stage(&point, round, totals);
                self.take_stage(stage, beside, left);
                let last = asked == Phase::Last && !self.facts.own;
                self.record(target, place, self.fit(), last);
                last
            }
        }
    }

    /// Judges the last stage before its queries, by the information of the stage before.
    fn obstacle(&self, _target: &Target, _budget: &Allotment) -> Option<Obstacle> {
        let rho = self.progress.information_noise;
        let beyond = self.progress.phase == Phase::Last && rho > Inference::WEIGHTED_RHO;
        beyond.then_some(Obstacle::Information { rho, limit: Inference::WEIGHTED_RHO })
    }

    fn answer<'a>(&'a self, _target: &'a Target) -> Option<Answer<'a>> {
        Some(self.answered.as_ref()?.answer(&self.facts, &self.progress))
    }

    fn inference(&self, _target: &Target) -> Option<Inference> {
        Some(self.answered.as_ref()?.inference(self.stages.clone(), &self.facts, &self.progress))
    }

    /// Only priors may change: the weights are those of the whole model.
    fn refit(&self, target: &Target, retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        if !retained.all {
            return Err(RefitError::DroppedFromScores);
        }
        let mut strategy = self.clone();
        strategy.facts.prior = GaussianPrior::of(&target.space);
        if let Some(answered) = &mut strategy.answered {
            answered.fit = answered.stage.fit(&strategy.facts.prior);
            let (mean, sd) = strategy.shown(target, strategy.fit());
            if let Some(last) = strategy.stages.last_mut() {
                (last.mean, last.sd) = (mean, sd);
            }
        }
        Ok(Box::new(strategy))
    }
}
