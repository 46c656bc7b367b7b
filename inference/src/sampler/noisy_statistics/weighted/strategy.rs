//! The strategy of weighted regressions.

use super::answered::Answered;
use super::bounded_stage::{Ahead, BoundedStage, Located, PlainOutlook};
use super::chain_frame::ChainFrame;
use super::dispersion::PendingDispersion;
use super::dispersion_score::DispersionScore;
use super::exposures::Exposures;
use super::half_way::HalfWay;
use super::plan::Facts;
use super::progress::{Phase, Progress};
use super::queries::{Counts, QueryPoint, read_counts, read_vector};
use super::residual_table::ResidualTable;
use super::setting::{OF_DISPERSION, OF_INFORMATION};
use super::squares::{LogSigma, Squares};
use super::tail_queries::PendingTails;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::noisy_statistics::answer::{Answer, Inference, Stage};
use crate::sampler::noisy_statistics::gaussian::{GaussianPrior, factor, roots};
use crate::sampler::noisy_statistics::obstacle::Obstacle;
use crate::sampler::noisy_statistics::refit::{RefitError, RetainedCoefficients};
use crate::sampler::noisy_statistics::score_strategy::{Found, ScoreStrategy};
use crate::sampler::noisy_statistics::strategy::Strategy;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::Weights;
use conclave_common::model::ScoreModel;
use conclave_common::query::{PartyMetadata, Query, Round};
use conclave_common::schema::{Family, ModelSpec};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;

/// A weighted regression.
#[derive(Clone)]
pub(crate) struct WeightedStrategy {
    pub(super) facts: Facts,
    pub(super) progress: Progress,
    /// The pending queries, and the budget before them.
    pub(super) pending: Option<(QueryPoint, f64)>,
    /// The answer by the latest stage.
    pub(super) answered: Option<Answered>,
    /// Share of the budget for the releases after the last score.
    pub(super) reserved: f64,
    pub(super) stages: Vec<Stage>,
    /// The last stage of a binary outcome, once its score is released.
    pub(super) half_way: Option<HalfWay>,
    /// The pending queries about the dispersion.
    pub(super) pending_dispersion: Option<PendingDispersion>,
    /// A locating stage and its point, until the dispersion there is released.
    pub(super) held: Option<(BoundedStage, QueryPoint)>,
    /// The pending tables of a count's tails.
    pub(super) pending_tails: Option<PendingTails>,
    /// The unweighted competitor of a binary outcome or a count.
    competitor: Option<ScoreStrategy>,
    /// The competitor, once the releases chose it.
    chosen: Option<ScoreStrategy>,
}

impl WeightedStrategy {
    /// Returns the strategy before its first round; `None` where an unweighted one serves better, since the noise hides every frame.
    ///
    /// # Errors
    /// [`SamplerError::UnknownCount`].
    pub(crate) fn new(
        target: &Target,
        scores: &dyn ScoreModel,
        parties: &[PartyMetadata],
        budget: &Allotment,
    ) -> Result<Option<Self>, SamplerError> {
        let Some(facts) = Facts::new(target, scores, parties, budget)? else { return Ok(None) };
        let progress = Progress::new(&facts, public_log_sigma(target, facts.order));
        let competitor = facts.is_curved().then(|| ScoreStrategy::new(target, scores, parties, budget)).transpose()?;
        Ok(Some(Self {
            facts,
            progress,
            pending: None,
            answered: None,
            reserved: 0.0,
            stages: Vec::new(),
            half_way: None,
            pending_dispersion: None,
            held: None,
            pending_tails: None,
            competitor,
            chosen: None,
        }))
    }

    /// Returns the strategy as the search of weighted chains; `None` as for [`Self::new`], and under `auto` where a party's number of
    /// records is not public.
    ///
    /// # Errors
    /// [`SamplerError::Protects`].
    pub(crate) fn of_chains(
        target: &Target,
        scores: &dyn ScoreModel,
        parties: &[PartyMetadata],
        part: &Allotment,
    ) -> Result<Option<Self>, SamplerError> {
        let other = (0..parties.len()).find(|at| parties[*at].unit() != PrivacyUnit::row(Adjacency::Replace));
        match (other, target.spec.weights) {
            (Some(_), Weights::Auto) => return Ok(None),
            (Some(at), _) => {
                let (party, unit) = (target.spec.parties.get(at).cloned().unwrap_or_default(), parties[at].unit().to_string());
                return Err(SamplerError::Protects { algorithm: "a weighted chain (model.weights)", party, unit });
            }
            (None, _) => {}
        }
        let strategy = Self::new(target, scores, parties, part)?;
        let of_chains = |mut strategy: Self| {
            // Whether the chains are weighted is decided after the search.
            strategy.facts.may_be_plain = false;
            strategy
        };
        Ok(strategy.map(of_chains))
    }

    /// Returns the location of the weighted posterior and the frame of its chains, once everything is released. `centred` is the number
    /// of records whose gradients unweighted chains would centre.
    pub(crate) fn found(&self, target: &Target, centred: f64) -> Option<Found> {
        let Answered { stage, fit, .. } = self.answered.as_ref()?;
        let coding = self.facts.coding.clone();
        let theta = self.theta(target, &fit.mean, self.progress.log_sigma);
        let sharp = fit.definite && stage.information_noise() <= Inference::most_weighted_rho(true);
        let coded = |matrix: &Matrix| coding.coded_covariance(&stage.frame.covariance(matrix));
        let noise = stage.eigenvalue_noise();
        let clear = stage.information.map_eigenvalues(|value| value.max(noise));
        let precision = clear.plus(&stage.frame.precision(&self.facts.prior.precision[..self.facts.order]), 1.0);
        Some(Found {
            mean: coding.coded(&target.space.coordinates(&theta)),
            covariance: coded(&factor(&precision).inverse()),
            error: coded(&fit.noise),
            centred,
            sharp,
            frame: Some(ChainFrame::new(self.answered.as_ref()?, &self.facts, &self.progress)),
            coding,
        })
    }

    /// Returns coordinates, and theta inside the parameter box.
    pub(super) fn theta(&self, target: &Target, coefficients: &[f64], log_sigma: f64) -> Vec<f64> {
        let own = self.facts.own.then_some(log_sigma);
        let u: Vec<f64> = coefficients.iter().copied().chain(own).collect();
        target.space.theta_inside(&target.spec, &u)
    }

    /// Moves the search's point into the parameter box.
    pub(super) fn stay_inside(&mut self, target: &Target) {
        let theta = self.theta(target, &self.progress.coefficients, self.progress.log_sigma);
        let u = target.space.coordinates(&theta);
        self.progress.coefficients = u[..self.facts.order].to_vec();
        if let Some(log_sigma) = u.get(self.facts.order) {
            self.progress.log_sigma = *log_sigma;
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
            self.chosen = competitor.restarted_at(target, &u, &covariance, left);
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
        match &mut self.chosen {
            Some(chosen) => chosen.ask(target, budget),
            None => self.ask_round(target, budget),
        }
    }

    fn absorb(&mut self, target: &Target, round: &Round, totals: &Totals, budget: &Allotment) -> bool {
        if let Some(chosen) = &mut self.chosen {
            return chosen.absorb(target, round, totals, budget);
        }
        let Some((point, before)) = self.pending.take() else { return false };
        let (left, asked) = (budget.left(), self.progress.phase);
        let place = (point.theta.clone(), before - left);
        let last = match asked {
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
        };
        self.record(target, place, self.fit(), last);
        last
    }

    /// Judges the last stage before its queries, by the information of the stage before.
    fn obstacle(&self, target: &Target, budget: &Allotment) -> Option<Obstacle> {
        if let Some(chosen) = &self.chosen {
            return chosen.obstacle(target, budget);
        }
        let rho = self.progress.information_noise;
        let limit = Inference::most_weighted_rho(self.facts.is_curved());
        let beyond = self.progress.phase == Phase::Last && rho > limit;
        beyond.then_some(Obstacle::Information { rho, limit })
    }

    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>> {
        match &self.chosen {
            Some(chosen) if chosen.answer(target).is_some() => chosen.answer(target),
            _ => Some(self.answered.as_ref()?.answer(&self.facts, &self.progress)),
        }
    }

    fn inference(&self, target: &Target) -> Option<Inference> {
        if let Some(inference) = self.chosen.as_ref().and_then(|chosen| chosen.inference(target)) {
            let stages = self.stages.iter().chain(&inference.stages).cloned().collect();
            return Some(Inference { stages, ..inference });
        }
        Some(self.answered.as_ref()?.inference(self.stages.clone(), &self.facts, &self.progress))
    }

    /// Only priors may change: the weights are those of the whole model.
    fn refit(&self, target: &Target, retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        if !retained.all {
            return Err(RefitError::DroppedFromScores);
        }
        let mut strategy = self.clone();
        strategy.facts.prior = GaussianPrior::of(&target.space);
        strategy.chosen = self.chosen.as_ref().map(|chosen| chosen.refitted(target)).transpose()?;
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
