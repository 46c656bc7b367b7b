//! The strategy of weighted regressions.

use std::any::Any;

use super::answered::Answered;
use super::bounded_stage::BoundedStage;
use super::chain_frame::ChainFrame;
use super::dispersion::PendingDispersion;
use super::half_way::HalfWay;
use super::plan::Facts;
use super::progress::{Phase, Progress};
use super::queries::QueryPoint;
use super::squares::LogSigma;
use super::tail_queries::PendingTails;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::noisy_statistics::answer::{Answer, Inference, Stage};
use crate::sampler::noisy_statistics::gaussian::{GaussianPrior, factor, roots};
use crate::sampler::noisy_statistics::obstacle::Obstacle;
use crate::sampler::noisy_statistics::own_answer::OwnAnswerError;
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
    pub(super) competitor: Option<ScoreStrategy>,
    /// The competitor, once the releases chose it.
    pub(super) chosen: Option<ScoreStrategy>,
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
        let left = budget.left();
        let place = (point.theta.clone(), before - left);
        let last = self.take(target, (point, left), round, totals);
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

    fn by_owner(&self) -> Result<&dyn Any, OwnAnswerError> {
        let has_answer = |chosen: &&ScoreStrategy| chosen.search.answer().is_some();
        self.chosen.as_ref().filter(has_answer).map(|chosen| -> &dyn Any { chosen }).ok_or(OwnAnswerError::WEIGHTED)
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
