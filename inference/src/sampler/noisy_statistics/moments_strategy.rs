//! The strategy for linear regression: second moments once, then either a score of clipped residuals or second moments again,
//! whichever is more informative. The residuals' tails are asked before such a score, at two clips, and choose its own. A job by table
//! has one release, the moments of combinations of levels.

use std::any::Any;

use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::gaussian::{Fit, GaussianPrior, roots};
use super::linear::SecondStage;
use super::linear_releases::{Linear, ResidualStage, Sigma};
use super::moments::{CLEAR, DETERMINED, Moments};
use super::moments_form::MomentsForm;
use super::moments_units::MomentsUnits;
use super::obstacle::Obstacle;
use super::own_answer::OwnAnswerError;
use super::refit::{RefitError, RetainedCoefficients};
use super::residual_queries::{PendingResidual, PendingTail};
use super::residual_tails::{FAR, NEAR, ResidualSquares, ResidualTails, TAIL_SHARE, Tail};
use super::strategy::Strategy;
use crate::sampler::error::SamplerError;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Query, Round};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::Frame;

/// Share of the budget for the first release, if the job states none.
const FIRST: f64 = 0.25;

/// Effect of a clip on a mean, in posterior sds, above which a run warns.
const LEAST_MOVED: f64 = 0.1;

/// A pending query.
#[derive(Debug, Clone)]
enum Pending {
    Moments(NoiseScale),
    Tail(PendingTail),
    Residual(PendingResidual),
}

/// A release so far.
#[derive(Debug, Clone)]
enum Released {
    Moments(Moments),
    Tail(Tail),
    Residual(ResidualStage),
}

/// Linear regression from its second moments.
#[derive(Clone)]
pub(crate) struct MomentsStrategy {
    pub(super) units: MomentsUnits,
    pub(super) sigma: Sigma,
    /// Prior in the moments' coordinates.
    pub(super) prior: GaussianPrior,
    pub(super) form: MomentsForm,
    pub(super) most_squares: f64,
    pub(super) first: f64,
    /// True if the residuals' tails may be asked: they are means over a number of records that has to be public.
    asks_tails: bool,
    /// The pending query and its share of the budget.
    pending: Option<(Pending, f64)>,
    /// The releases, each with the theta of its query and its share of the budget.
    released: Vec<(Released, Vec<f64>, f64)>,
    moments: Option<Moments>,
    /// The sum of squared residuals, once their tails are released.
    squares: Option<ResidualSquares>,
    /// Set if a score of residuals was released that does not apply to this model.
    without_residual: bool,
    stages: Vec<Stage>,
}

impl MomentsStrategy {
    /// Returns the strategy before its first round.
    ///
    /// # Errors
    /// The model has no moments.
    pub(crate) fn new(target: &Target, scores: &dyn ScoreModel, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let units = MomentsUnits::of(scores, target.space.dimension()).ok_or(SamplerError::NoScores)?;
        let form = MomentsForm::new(scores, parties);
        let sigma = units.sigma(&target.spec);
        if sigma == Sigma::Unknown && !form.has_count() {
            return Err(SamplerError::NoCount);
        }
        let shares = target.spec.release.stages.as_ref();
        let first = if form.is_by_cells() { 1.0 } else { shares.map_or(FIRST, |shares| shares[0]) };
        let asks_tails = sigma == Sigma::Unknown && form.records.is_some() && target.spec.release.stages.is_none();
        Ok(Self {
            prior: units.prior(&GaussianPrior::of(&target.space)),
            units,
            sigma,
            form,
            most_squares: scores.most_squares() as f64,
            first,
            asks_tails,
            pending: None,
            released: Vec::new(),
            moments: None,
            squares: None,
            without_residual: false,
            stages: Vec::new(),
        })
    }

    fn linear(&self) -> Option<Linear<'_>> {
        let (moments, residual, squares) = (self.moments.as_ref()?, self.residual(), self.squares.as_ref());
        Some(Linear { moments, residual, squares, sigma: self.sigma })
    }

    fn residual(&self) -> Option<&ResidualStage> {
        self.released.iter().find_map(|(released, ..)| if let Released::Residual(stage) = released { Some(stage) } else { None })
    }

    /// Returns the tails of the residuals once both numbers are released.
    fn tails(&self) -> Option<ResidualTails> {
        let tail =
            |(released, ..): &(Released, Vec<f64>, f64)| if let Released::Tail(tail) = released { Some(*tail) } else { None };
        let mut tails = self.released.iter().filter_map(tail);
        ResidualTails::new(tails.next()?, tails.next()?)
    }

    fn asked_tails(&self) -> usize {
        self.released.iter().filter(|(released, ..)| matches!(released, Released::Tail(_))).count()
    }

    fn fit(&self) -> Option<Fit> {
        Some(self.linear()?.fit(&self.prior))
    }

    /// Returns the query after the first moments. Known tails choose the clip.
    fn second_stage(&self, target: &Target, fit: &Fit, budget: &Allotment) -> Result<SecondStage, SamplerError> {
        let Some(linear) = self.linear() else { return Ok(SecondStage::Moments) };
        let Some(tails) = self.tails() else { return Ok(linear.second_stage(fit, self.most_squares, self.first)) };
        let theta = target.space.theta_inside(&target.spec, &target.space.location);
        let frame = vec![0.0; Frame::length(theta.len())];
        let whole = budget.whole_score_sd(&target.spec, target.model.as_ref(), (&theta, &frame))?;
        let clip = linear.clip_by(&tails, self.most_squares.sqrt() * whole / budget.left().sqrt());
        Ok(match linear.is_worthwhile(fit, clip, self.most_squares, self.first) {
            true => SecondStage::Score { clip },
            false => SecondStage::Moments,
        })
    }

    fn ask_moments(&mut self, target: &Target, budget: &mut Allotment, share: f64) -> Result<Vec<Query>, SamplerError> {
        let kind = QueryKind::Moments { order: self.form.released as u32 };
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), share)?;
        self.pending = Some((Pending::Moments(noise), share));
        Ok(vec![Query { chain: 0, kind, from: Vec::new(), to: Vec::new(), noise }])
    }

    fn ask_tail(
        &mut self,
        target: &Target,
        budget: &mut Allotment,
        (fit, clip): (&Fit, f64),
    ) -> Result<Vec<Query>, SamplerError> {
        let (query, pending) = PendingTail::ask((target, &self.units), (budget, TAIL_SHARE), &fit.mean, clip)?;
        self.pending = Some((Pending::Tail(pending), TAIL_SHARE));
        Ok(vec![query])
    }

    /// Asks for the residuals at the fit's mean with all that is left.
    fn ask_residuals(
        &mut self,
        target: &Target,
        budget: &mut Allotment,
        (fit, clip): (&Fit, f64),
    ) -> Result<Vec<Query>, SamplerError> {
        let (share, excess) = (budget.left(), self.tails().map_or(0.0, |tails| tails.excess(clip)));
        let model = (target, &self.units, self.sigma);
        let (query, pending) = PendingResidual::ask(model, (budget, share), &fit.mean, (clip, excess, self.most_squares))?;
        self.pending = Some((Pending::Residual(pending), share));
        Ok(vec![query])
    }

    /// Takes a release, and records a stage: the posterior after all releases so far.
    fn take(&mut self, target: &Target, (released, theta, share): (Released, Vec<f64>, f64), last: bool) {
        self.released.push((released, theta.clone(), share));
        let moments = |(released, ..): &(Released, Vec<f64>, f64)| {
            if let Released::Moments(moments) = released { Some(moments.clone()) } else { None }
        };
        if let Some(tails) = self.tails().filter(|_| self.squares.is_none()) {
            let at = self.units.units(&target.space.coordinates(&theta));
            self.squares = Some(tails.squares(&at[..self.units.coefficients]));
        }
        self.moments = Moments::pooled(&self.released.iter().filter_map(moments).collect::<Vec<_>>());
        let Some(fit) = self.fit() else { return };
        let stage = Stage {
            theta,
            share,
            mean: target.space.theta_inside(&target.spec, &self.units.plain(&fit.mean)),
            sd: roots(&self.units.plain_covariance(&fit.covariance)),
            last,
        };
        self.stages.push(stage);
    }

    /// Returns the largest effect of the residuals' clip on a mean, in posterior sds, as far as the releases show it; `None` if
    /// they show none.
    fn clip_bias(&self, fit: &Fit) -> Option<f64> {
        let moved = self.linear()?.likelihood().clip_bias()?;
        let sds = roots(&fit.covariance);
        Some(moved.iter().zip(&sds).map(|(moved, sd)| moved.abs() / sd).fold(0.0, f64::max)).filter(|most| *most > LEAST_MOVED)
    }
}

impl Strategy for MomentsStrategy {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let Some(fit) = self.fit() else {
            let share = if self.first >= 1.0 { budget.left() } else { self.first };
            return self.ask_moments(target, budget, share);
        };
        match self.second_stage(target, &fit, budget)? {
            SecondStage::Score { .. } if self.asks_tails && self.asked_tails() < 2 => {
                let near = NEAR * self.linear().map_or(f64::NAN, |linear| linear.upper_sigma(&fit));
                let clip = if self.asked_tails() == 0 { near } else { FAR * near };
                self.ask_tail(target, budget, (&fit, clip))
            }
            SecondStage::Score { clip } => self.ask_residuals(target, budget, (&fit, clip)),
            SecondStage::Moments => self.ask_moments(target, budget, budget.left()),
        }
    }

    fn absorb(&mut self, target: &Target, _round: &Round, totals: &Totals, _budget: &Allotment) -> bool {
        let Some((pending, share)) = self.pending.take() else { return false };
        let (totals, parties) = (totals.components(), self.form.parties);
        let records = self.form.records.unwrap_or(f64::NAN);
        let last = match pending {
            Pending::Moments(_) => self.moments.is_some() || self.first >= 1.0,
            Pending::Tail(_) => false,
            Pending::Residual(_) => true,
        };
        let released = match pending {
            Pending::Moments(noise) => (Released::Moments(self.form.moments(totals, noise)), Vec::new()),
            Pending::Tail(tail) => (Released::Tail(tail.tail(totals, parties, records)), tail.theta),
            Pending::Residual(residual) => (Released::Residual(residual.stage(totals, parties)), residual.theta),
        };
        self.take(target, (released.0, released.1, share), last);
        last
    }

    /// Judges the second release by the noise of the first. A score of residuals leaves the moments as they are; moments lower their
    /// noise, but not what half the limit, one and a half sds of it, admits.
    fn obstacle(&self, target: &Target, budget: &Allotment) -> Option<Obstacle> {
        let (fit, moments) = (self.fit()?, self.moments.as_ref()?);
        let (least, limit) = moments.smallest(DETERMINED);
        match self.second_stage(target, &fit, budget).ok()? {
            SecondStage::Score { .. } => (least < limit).then_some(Obstacle::Moments { least, limit }),
            SecondStage::Moments => {
                let limit_at_end = limit * (self.first / (self.first + budget.left())).sqrt();
                let least = least + 0.5 * limit;
                (least < limit_at_end).then_some(Obstacle::Moments { least, limit: limit_at_end })
            }
        }
    }

    fn answer<'a>(&'a self, _target: &'a Target) -> Option<Answer<'a>> {
        let fit = self.fit()?;
        let likelihood = self.linear()?.likelihood();
        Some(Answer {
            mean: self.units.plain(&fit.mean),
            covariance: self.units.plain_covariance(&fit.covariance),
            log_likelihood: Box::new(move |u| likelihood.log(&self.units.units(u))),
        })
    }

    fn inference(&self, _target: &Target) -> Option<Inference> {
        let (fit, moments) = (self.fit()?, self.moments.as_ref()?);
        let with = self.units.plain_covariance(&fit.covariance).diagonal_entries();
        let without = self.units.plain_covariance(&fit.without_noise).diagonal_entries();
        let shares = fit.covariance.diagonal_entries().into_iter().zip(&self.prior.precision).map(|(v, p)| v * p);
        let (least, limit) = moments.smallest(CLEAR);
        // Without clear moments the release does not determine the posterior's shape, and so not its width without noise.
        let clear = least >= limit;
        let mut inference = Inference::new(self.stages.clone(), &with, &without, fit.definite && clear)
            .with_prior_check(shares.fold(0.0, f64::max))
            .with_moments_check(moments.smallest(DETERMINED), self.form.is_by_cells())
            .with_width_check();
        if let Some(tails) = self.tails() {
            inference = inference.with_clipped_share(tails.share());
        }
        if let Some(moved) = self.clip_bias(&fit) {
            inference.warnings.push(format!(
                "the last release limited the residuals, and so moved a mean by about {moved:.1} posterior sds against the first release: the \
                 outcome has heavier tails than a normal law, and the intervals are widened by that"
            ));
        }
        if self.without_residual {
            inference.warnings.push(
                "the second release, a score of residuals at a point of the larger model, does not apply to this model and was left out: the \
                 posterior is based on the second moments only, and is wider than that of a separate job"
                    .to_owned(),
            );
        }
        Some(inference)
    }

    fn by_owner(&self) -> Result<&dyn Any, OwnAnswerError> {
        Err(OwnAnswerError::MOMENTS)
    }

    /// Restricts the moments and their noise to the remaining predictors. A score of residuals applies to the whole model only.
    fn refit(&self, target: &Target, retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        let scores = target.model.scores().ok_or(SamplerError::NoScores)?;
        let units = MomentsUnits::of(scores.as_ref(), target.space.dimension()).ok_or(SamplerError::NoScores)?;
        let mut strategy = Self {
            prior: units.prior(&GaussianPrior::of(&target.space)),
            units,
            released: Vec::new(),
            moments: None,
            squares: None,
            without_residual: self.residual().is_some() && !retained.all,
            stages: Vec::new(),
            ..self.clone()
        };
        let whole = self.stages.last().is_some_and(|stage| stage.last);
        let kept: Vec<_> = self.released.iter().filter(|(of, ..)| retained.all || matches!(of, Released::Moments(_))).collect();
        for (round, (released, theta, share)) in kept.iter().enumerate() {
            let released = match released {
                Released::Moments(moments) => Released::Moments(moments.restricted(&retained.coefficients)),
                of_residuals => of_residuals.clone(),
            };
            strategy.take(target, (released, theta.clone(), *share), whole && round + 1 == kept.len());
        }
        Ok(Box::new(strategy))
    }
}
